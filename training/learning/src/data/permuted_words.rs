//! Catalogs whose words are exchanged for each other.
//!
//! A catalog of a thousand products is memorized long before a policy has learned to read. With its words permuted it has
//! the lengths, repetitions and overlaps of the real texts in other words: what is remembered of a product does not help
//! there, only what can be read and copied does.
//!
//! A word is a run of letters and digits, in lower case. Words of one kind (letters, digits, or both) are ranked by the
//! number of products that have them, and each takes the place of another of about the same rank, in all texts alike. A
//! plural follows its singular, so that search still finds one by the other. Words of one character, and those in more
//! than a third of the products or of the instructions (`with`, `find`), stay.
//!
//! A policy that has seen every word many times need not copy it token by token, and fails at words that it has not
//! seen. So a share of the words can be *coined*, of the halves of two words, in every catalog anew.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rand::Rng;
use webshop_products::{RawData, RawInstruction, RawItem, RawOption};

use crate::data::sampling::sample_without_replacement;

/// Words of so many neighbouring ranks change places.
const RANKS: usize = 64;

/// The words that change places, in groups of about equal frequency.
#[derive(Clone, Debug)]
pub(crate) struct ExchangeableWords {
    groups: Vec<Vec<String>>,
}

impl ExchangeableWords {
    /// Those of these products and their instructions.
    pub(crate) fn of(data: &RawData) -> Self {
        let mut n_products = counts(data.items.iter().map(texts_of_item));
        let sentences = || data.instructions.values().filter_map(|entry| entry.instruction.as_deref());
        let (n_sentences, of_sentences) = (sentences().count(), counts(sentences().map(|text| vec![text])));
        let is_frequent = |n: Option<&usize>, of: usize| n.is_some_and(|n| 3 * n > of);
        let known: BTreeSet<String> = n_products.keys().cloned().collect();
        n_products.retain(|word, n| {
            word.chars().nth(1).is_some_and(|_| singular(word).is_none_or(|word| !known.contains(word)))
                && !is_frequent(Some(n), data.items.len())
                && !is_frequent(of_sentences.get(word), n_sentences)
        });
        let mut kinds: BTreeMap<(bool, bool), Vec<(usize, String)>> = BTreeMap::new();
        for (word, n) in n_products {
            let has = |is: fn(char) -> bool| word.chars().any(is);
            kinds.entry((has(char::is_numeric), has(char::is_alphabetic))).or_default().push((n, word));
        }
        let mut groups = Vec::new();
        for mut words in kinds.into_values() {
            words.sort_unstable();
            let words: Vec<String> = words.into_iter().map(|(_, word)| word).collect();
            groups.extend(words.chunks(RANKS).map(<[String]>::to_vec));
        }
        Self { groups }
    }

    /// A uniform permutation within each group, in which a share of the words are coined: the first half of the word that
    /// would take the place, and the second half of another of its group. A coined word is not among the others.
    pub(crate) fn permuted(&self, coined_share: f64, mut rng: impl Rng) -> WordPermutation {
        let mut replacements = HashMap::new();
        let mut taken: BTreeSet<String> = self.groups.iter().flatten().cloned().collect();
        for group in &self.groups {
            let mut others = sample_without_replacement(group.clone(), &mut rng, group.len());
            if coined_share > 0.0 {
                for other in &mut others {
                    let tail = &group[rng.random_range(0..group.len() as u64) as usize];
                    let coined = coined(other, tail);
                    if rng.random::<f64>() < coined_share && taken.insert(coined.clone()) {
                        *other = coined;
                    }
                }
            }
            replacements.extend(group.iter().cloned().zip(others));
        }
        WordPermutation { replacements }
    }
}

/// A word for each word; those it does not have stay.
#[derive(Clone, Debug)]
pub(crate) struct WordPermutation {
    replacements: HashMap<String, String>,
}

impl WordPermutation {
    /// `data` in these words. Human instructions are left out: they are language, which would be lost.
    pub(crate) fn apply(&self, data: &RawData) -> RawData {
        let items = data.items.iter().map(|item| self.item(item)).collect();
        let instructions =
            data.instructions.iter().map(|(asin, entry)| (asin.clone(), self.instruction(entry))).collect();
        RawData { items, instructions, ..RawData::default() }
    }

    fn item(&self, item: &RawItem) -> RawItem {
        let option = |option: &RawOption| RawOption { value: self.text(&option.value), ..option.clone() };
        let values = |values: &Option<Vec<RawOption>>| {
            values.as_ref().map(|values| values.iter().map(option).collect())
        };
        RawItem {
            name: self.text(&item.name),
            query: self.text(&item.query),
            product_category: self.text(&item.product_category),
            small_description: self.texts(&item.small_description),
            full_description: self.text(&item.full_description),
            customization_options: item
                .customization_options
                .iter()
                .map(|(name, list)| (name.clone(), values(list)))
                .collect(),
            ..item.clone()
        }
    }

    fn instruction(&self, entry: &RawInstruction) -> RawInstruction {
        let texts = |texts: &Option<Vec<String>>| texts.as_deref().map(|texts| self.texts(texts));
        RawInstruction {
            attributes: texts(&entry.attributes),
            instruction: entry.instruction.as_deref().map(|text| self.text(text)),
            instruction_attributes: texts(&entry.instruction_attributes),
        }
    }

    fn texts(&self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.text(text)).collect()
    }

    /// `text` in these words, with its capitals and everything between words.
    fn text(&self, text: &str) -> String {
        let mut changed = String::with_capacity(text.len());
        for (is_word, part) in parts(text) {
            match is_word.then(|| self.word(part)).flatten() {
                Some(word) => changed.push_str(&word),
                None => changed.push_str(part),
            }
        }
        changed
    }

    /// The word for `word`, with its capitals; `None` if it stays.
    fn word(&self, word: &str) -> Option<String> {
        let lower = word.to_lowercase();
        let replaced = self.replacements.get(&lower).cloned().or_else(|| {
            let of = self.replacements.get(singular(&lower)?)?;
            Some(format!("{of}s"))
        })?;
        let is_upper = |c: char| c.is_uppercase();
        let mut rest = word.chars();
        Some(match rest.next().is_some_and(is_upper) {
            true if word.chars().count() > 1 && !rest.any(char::is_lowercase) => replaced.to_uppercase(),
            true => {
                let mut letters = replaced.chars();
                letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
            }
            false => replaced,
        })
    }
}

/// The first half of `head`, with the middle letter, and the second half of `tail` without a final `s`, which would look
/// like a plural.
fn coined(head: &str, tail: &str) -> String {
    let half = |word: &str| word.chars().count().div_ceil(2);
    let first = head.chars().take(half(head));
    let second: String = tail.chars().skip(half(tail)).collect();
    first.chain(second.trim_end_matches('s').chars()).collect()
}

/// What `word` is the plural of, if it may be one.
fn singular(word: &str) -> Option<&str> {
    word.strip_suffix('s').filter(|stem| stem.len() > 2 && !stem.ends_with('s'))
}

/// The runs of letters and digits of a text (`true`) and what is between them (`false`), in order.
fn parts(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_word = rest.chars().next()?.is_alphanumeric();
        let end = rest.find(|c: char| c.is_alphanumeric() != is_word).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        Some((is_word, part))
    })
}

/// The number of records that have each word.
fn counts<'a>(records: impl Iterator<Item = Vec<&'a str>>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for texts in records {
        let words = texts.iter().flat_map(|text| parts(text)).filter(|&(is_word, _)| is_word);
        for word in words.map(|(_, word)| word.to_lowercase()).collect::<BTreeSet<_>>() {
            *counts.entry(word).or_default() += 1;
        }
    }
    counts
}

fn texts_of_item(item: &RawItem) -> Vec<&str> {
    let values = item.customization_options.values().flatten().flatten().map(|option| option.value.as_str());
    let texts = [&item.name, &item.query, &item.product_category, &item.full_description];
    let bullets = item.small_description.iter().map(String::as_str);
    texts.into_iter().map(String::as_str).chain(bullets).chain(values).collect()
}

#[cfg(test)]
mod tests {
    use webshop_products::Seed;

    use super::*;
    use crate::purpose;

    fn item(name: &str, values: &[&str]) -> RawItem {
        let option = |value: &&str| RawOption { value: (*value).to_owned(), image: None };
        let list = values.iter().map(option).collect();
        RawItem {
            name: name.into(),
            customization_options: [("Color".to_owned(), Some(list))].into(),
            ..RawItem::default()
        }
    }

    fn data() -> RawData {
        let items = vec![
            item("Long Sleeve SHIRT, 10-inch with v neck", &["navy blue", "3xl"]),
            item("Running shoes with laces", &["navy", "4xl"]),
            item("Desk lamp with shade, easy to find", &["brass"]),
            item("Two shirts with a collar", &["12"]),
        ];
        let entry = |sentence: &str| RawInstruction {
            attributes: Some(vec!["long sleeve".into()]),
            instruction: Some(sentence.into()),
            instruction_attributes: Some(vec!["long sleeve".into()]),
        };
        let sentences = [
            "Find me long sleeve shirts with v neck",
            "Find me desk lamps",
            "Find me running shoes",
            "Find me brass lamps",
        ];
        // Most products have no sentence, which must not make the words of sentences look rare.
        let without = std::iter::repeat_n(RawInstruction::default(), 9);
        let entries = sentences.into_iter().map(entry).chain(without);
        let instructions = entries.enumerate().map(|(number, entry)| (number.to_string(), entry)).collect();
        RawData { items, instructions, ..RawData::default() }
    }

    #[test]
    fn texts_keep_their_form_and_what_they_share() {
        let words = ExchangeableWords::of(&data()).permuted(0.0, Seed(1).rng(purpose::PERMUTED_WORDS, &[]));
        let changed = words.apply(&data());
        let title = |at: usize| changed.items[at].name.as_str();
        let word = |text: &str, at: usize| text.split([' ', ',']).nth(at).unwrap().to_lowercase();
        // Punctuation, frequent words, single letters and option names stay; capitals fall where they were.
        let form = |text: &str| -> Vec<String> {
            parts(text).filter(|&(is_word, _)| !is_word).map(|(_, between)| between.into()).collect()
        };
        assert_eq!(form(title(0)), form("Long Sleeve SHIRT, 10-inch with v neck"));
        assert!(title(0).contains(" with v "));
        assert!(title(0).split(' ').next().unwrap().starts_with(char::is_uppercase));
        assert!(changed.items[0].customization_options.contains_key("Color"));
        // The same word in a title, in an instruction and in a value has the same replacement; a plural has its singular's.
        let entry = &changed.instructions["0"];
        let sentence = entry.instruction.as_deref().unwrap();
        assert!(sentence.starts_with("Find me ") && sentence.contains(" with v "));
        assert_ne!(title(0), data().items[0].name);
        assert_eq!(word(title(0), 0), word(sentence, 2));
        assert_eq!(format!("{}s", word(title(0), 2)), word(sentence, 4));
        assert_eq!(word(sentence, 4), word(title(3), 1));
        assert_eq!(entry.attributes, entry.instruction_attributes);
        let value = |at: usize, number: usize| {
            let list = changed.items[at].customization_options["Color"].as_ref().unwrap();
            list[number].value.clone()
        };
        assert_eq!(word(&value(0, 0), 0), value(1, 0));
        // Digits take the place of digits, and digits with letters of their like.
        assert!(["3xl", "4xl"].contains(&value(0, 1).as_str()));
        assert!(["10", "12"].contains(&value(3, 0).as_str()));
    }

    #[test]
    fn every_word_takes_the_place_of_one_other() {
        let words = ExchangeableWords::of(&data());
        let all: BTreeSet<&String> = words.groups.iter().flatten().collect();
        let permutation = words.permuted(0.0, Seed(2).rng(purpose::PERMUTED_WORDS, &[]));
        assert_eq!(permutation.replacements.keys().collect::<BTreeSet<_>>(), all);
        assert_eq!(permutation.replacements.values().collect::<BTreeSet<_>>(), all);
        assert!(all.iter().all(|word| !["with", "find", "me", "v", "shirts"].contains(&word.as_str())));
        let other = words.permuted(0.0, Seed(3).rng(purpose::PERMUTED_WORDS, &[]));
        assert_ne!(permutation.replacements, other.replacements);
    }

    #[test]
    fn coined_words_are_new_and_half_of_another() {
        let words = ExchangeableWords::of(&data());
        let of_share = |share| words.permuted(share, Seed(2).rng(purpose::PERMUTED_WORDS, &[])).replacements;
        let known: BTreeSet<String> = words.groups.iter().flatten().cloned().collect();
        let n_new = |share| of_share(share).values().filter(|word| !known.contains(*word)).count();
        assert_eq!(n_new(0.0), 0);
        assert!((1..n_new(1.0)).contains(&n_new(0.5)), "{} and {}", n_new(0.5), n_new(1.0));
        let all = of_share(1.0);
        assert_eq!(all.values().collect::<BTreeSet<_>>().len(), all.len(), "no two are equal");
        let is_made_of_halves =
            |word: &String| known.iter().any(|head| known.iter().any(|tail| coined(head, tail) == *word));
        assert!(all.values().all(|word| known.contains(word) || is_made_of_halves(word)));
        assert_eq!(coined("running", "laces"), "runne");
        assert_eq!(coined("10", "12"), "12");
    }
}
