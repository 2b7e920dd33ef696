//! The phrases of an instruction that describe the product, and which of them a product's texts lack.
//!
//! A [`Phrase`] is a run of words between punctuation and common words: `find me a hand poured nail polish with honey
//! oil` has the phrases `hand poured nail polish` and `honey oil`. One of them ends in the kind of the product: the
//! first that neither a comma nor `and` follows. Where the kind begins is not known, and titles name it in their own
//! way.
//!
//! A product's [`ReadTexts`] are its title and the lines that were read. Words are compared by
//! [stem](webshop_env::stem). A word of a phrase is found with its neighbor in the phrase: where the two stand side by side
//! in the title, so that `rubber sole` is not found in `rubber lining, mesh sole`, or in any order in one clause of a
//! line, which ends with a semicolon or a point (`free of cruelty by design`). It is also found if
//!
//! - the phrase has no other word, and a text has it;
//! - the phrase holds the kind, and the title has the word and all after it that pages have;
//! - no page of the episode has the word, and it is the only one of its phrase or the phrase holds the kind. Then it
//!   tells no product from another: it may be a word of the request, or a kind that titles call otherwise.

use std::collections::BTreeSet;

use crate::instruction::{Instruction, Named, stems};

/// Words that are part of no phrase: articles, pronouns, prepositions, auxiliaries, and what requests are made of.
const COMMON: &str = "a about after again all already also am an and any are around as at available be \
    because been before birthday both bought broke brother budget but buy by can color colored colour come \
    comes coming contain contains could daughter day days do does dollars during each ever every father \
    feature features find for friend friend's from get gift give good got has have having hello help her hi \
    him his hoping how husband i i'd i'll i'm if in include includes including interested into is it item \
    items its just kind like look looking make makes many may me might more most mother moving much must my \
    nd need needed needs new no nor not now of off old on one ones only onto option options or order other \
    our out over pair place please pls prefer preferably preference price priced product products purchase \
    purpose purposes really require required requires sale same saw searching see seeking seems set she \
    shop shopping should show sister size sized so some somebody someone something somewhere son soon still \
    such suitable sure than thank thanks that that's the their them then there these they thing think \
    thinking this those time tired too trying type types up us use used uses using variety very want wanted \
    wanting wants was we week weekend well what when where which while who whose wife will wish with within \
    without would yet you you'd your";

/// Words after which possessions and times follow, not what the product should have: `for my kitchen`.
const OWNED: [&str; 3] = ["my", "our", "his"];

/// A word that texts and phrases may have in between: `easy to clean` is `easy clean`.
const SKIPPED: &str = "to";

/// A run of words that the product should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phrase {
    /// As stems.
    pub(crate) words: Vec<String>,
    /// The words as the instruction has them, one for each stem.
    pub(crate) texts: Vec<String>,
    /// Whether it ends in the kind of the product.
    pub(crate) holds_kind: bool,
}

/// The texts of one product that were read, as stems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadTexts {
    title: Vec<String>,
    clauses: Vec<BTreeSet<String>>,
}

impl ReadTexts {
    /// A product of which only the title was read.
    pub(crate) fn of_title(title: &str) -> Self {
        Self { title: compared(title), clauses: Vec::new() }
    }

    /// Adds the lines of a page.
    pub(crate) fn read(&mut self, lines: &[String]) {
        let clauses = lines.iter().flat_map(|line| line.split([';', '.']));
        self.clauses.extend(clauses.map(|clause| compared(clause).into_iter().collect()));
    }

    /// The number of words of `phrase` that are not found; `seen` are the stems of all pages of the episode.
    pub(crate) fn n_missing(&self, phrase: &Phrase, seen: &BTreeSet<String>) -> usize {
        self.missing(phrase, seen).len()
    }

    /// The places in `phrase` of the words that are not found; `seen` are the stems of all pages of the episode.
    pub(crate) fn missing(&self, phrase: &Phrase, seen: &BTreeSet<String>) -> Vec<usize> {
        let words = &phrase.words;
        let stands = |words: &[String]| {
            self.title.windows(words.len()).any(|window| window == words)
                || self.clauses.iter().any(|clause| words.iter().all(|word| clause.contains(word)))
        };
        let mut is_found = vec![words.len() == 1 && stands(words); words.len()];
        for at in 1..words.len() {
            if stands(&words[at - 1..=at]) {
                is_found[at - 1..=at].fill(true);
            }
        }
        if phrase.holds_kind {
            let is_kind = |word: &&String| self.title.contains(word) || !seen.contains(*word);
            let n_kind = words.iter().rev().take_while(is_kind).count();
            is_found[words.len() - n_kind..].fill(true);
        }
        let may_say_nothing = phrase.holds_kind || words.len() == 1;
        let counts = |word: &String| !may_say_nothing || seen.contains(word);
        (0..words.len()).filter(|&at| !is_found[at] && counts(&words[at])).collect()
    }
}

/// The stems of a text without [`SKIPPED`].
fn compared(text: &str) -> Vec<String> {
    let mut words = stems(text);
    words.retain(|word| word != SKIPPED);
    words
}

impl Instruction {
    /// The phrases. Words in the places of `named`, which name option values, and those of `option_names` are no part
    /// of a phrase.
    pub(crate) fn phrases(&self, named: &[Named], option_names: &[&str]) -> Vec<Phrase> {
        let common: BTreeSet<&str> = COMMON.split_whitespace().collect();
        let names: BTreeSet<String> = option_names.iter().flat_map(|name| stems(name)).collect();
        let mut phrases = vec![Phrase::default()];
        let (mut is_owned, mut has_kind) = (false, false);
        let words = self.words().iter().enumerate().filter(|(_, word)| word.text != SKIPPED);
        for (at, word) in words {
            let is_value = named.iter().any(|of| (of.start..of.end).contains(&at));
            let is_common = common.contains(word.text.as_str());
            let is_border = is_value || is_common || word.stems().all(|stem| names.contains(&stem));
            let last = phrases.last_mut().expect("one was pushed");
            if is_border && word.text != "and" && !word.starts_clause && !last.words.is_empty() && !has_kind {
                (last.holds_kind, has_kind) = (true, true);
            }
            if is_border || word.starts_clause {
                phrases.push(Phrase::default());
                is_owned = is_border && OWNED.contains(&word.text.as_str());
            }
            if !is_border && !is_owned {
                let phrase = phrases.last_mut().expect("one was pushed");
                phrase.words.extend(word.stems());
                phrase.texts.extend(word.parts().map(String::from));
            }
        }
        phrases.retain(|phrase| !phrase.words.is_empty());
        if let Some(last) = phrases.last_mut().filter(|_| !has_kind) {
            last.holds_kind = true;
        }
        phrases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrases(text: &str, lists: &[(&str, &[&str])]) -> Vec<String> {
        let instruction = Instruction::parse(text);
        let values: Vec<Vec<&str>> = lists.iter().map(|(_, values)| values.to_vec()).collect();
        let names: Vec<&str> = lists.iter().map(|(name, _)| *name).collect();
        let phrases = instruction.phrases(&instruction.named(&values), &names);
        let text = |phrase: &Phrase| phrase.words.join(" ") + if phrase.holds_kind { " (kind)" } else { "" };
        phrases.iter().map(text).collect()
    }

    #[test]
    fn phrases_are_read_from_all_styles_of_instructions() {
        assert_eq!(
            phrases(
                "Find me machine wash men's dress shirts with cotton spandex, classic fit for gym workout with color: \
                 black, and size: xx-large tall, and price lower than 40.00 dollars",
                &[("color", &["black"]), ("size", &["xx-large tall", "large"])],
            ),
            ["machin wash men dress shirt (kind)", "cotton spandex", "classic fit", "gym workout"]
        );
        assert_eq!(
            phrases(
                "it has to come matte finish, so show me a nail polish that has honey oil and coconut water that is \
                 hand poured, and price lower than 90.00 dollars",
                &[("finish", &["matte", "shimmer"])],
            ),
            ["nail polish (kind)", "honei oil", "coconut water", "hand pour"]
        );
        assert_eq!(phrases("for my kitchen i need an oil-free shampoo", &[]), ["oil free shampoo (kind)"]);
    }

    #[test]
    fn the_kind_is_what_no_comma_follows() {
        assert_eq!(
            phrases("Find me double sided, machine washable and soft pillows with printing technology", &[]),
            ["doubl side", "machin washabl", "soft pillow (kind)", "print technolog"]
        );
        assert_eq!(phrases("lamps", &[]), ["lamp (kind)"]);
        assert!(phrases("i am looking for the one", &[]).is_empty());
    }

    #[test]
    fn a_pair_of_words_is_found_side_by_side_in_titles_and_in_one_clause_of_texts() {
        let mut texts = ReadTexts::of_title("Nordvale Boots, Rubber Lining, Mesh Sole");
        let missing = |texts: &ReadTexts, phrase: &str| {
            texts.n_missing(
                &Phrase { words: compared(phrase), texts: Vec::new(), holds_kind: false },
                &BTreeSet::new(),
            )
        };
        assert_eq!(missing(&texts, "mesh sole"), 0);
        assert_eq!(missing(&texts, "rubber sole"), 2);
        texts.read(&[
            "made by hand".into(),
            "Hand-made in one piece".into(),
            "easy to clean rubber sole".into(),
        ]);
        assert_eq!(missing(&texts, "hand made rain"), 1);
        assert_eq!(missing(&texts, "rubber soles"), 0);
        assert_eq!(missing(&texts, "piece made"), 0, "in another order");
        assert_eq!(missing(&texts, "easy clean"), 0);
        // Two lines are two clauses.
        assert_eq!(missing(&texts, "piece easy"), 2);
    }

    #[test]
    fn words_of_the_kind_and_single_words_count_if_some_page_has_them() {
        let texts = ReadTexts::of_title("Rain boots for women");
        let missing = |phrase: &str, holds_kind: bool, seen: &str| {
            texts.n_missing(
                &Phrase { words: compared(phrase), texts: Vec::new(), holds_kind },
                &compared(seen).into_iter().collect(),
            )
        };
        assert_eq!(missing("steel women's boots", true, "steel boots"), 1);
        assert_eq!(missing("steel women's boots", true, "boots"), 0);
        assert_eq!(missing("rain boots wellingtons", true, "boots"), 0);
        assert_eq!(missing("waterproof", false, "waterproof coats"), 1);
        assert_eq!(missing("whatever", false, "waterproof coats"), 0);
        assert_eq!(missing("boots", false, ""), 0);
    }
}
