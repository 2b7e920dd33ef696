//! The texts of one product, as a seller would write them.

use indexmap::IndexMap;

use super::dice::{Dice, Draw};
use super::family::{Family, Member, Trait};
use super::instruction;
use super::paraphrase;
use super::words::{Form, prose};
use crate::raw::{RawHumanInstruction, RawInstruction, RawItem, RawOption};
use crate::seed::Seed;

/// In how many of 100 products the price is missing, or a range.
const UNPRICED: usize = 5;
const RANGE: usize = 9;

/// Percentage of descriptions that quote a customer, and of those that praise the price.
const QUOTED: usize = 75;
const PRAISED_PRICE: usize = 15;

/// In how many of 100 hidden traits the words stand apart, where they can.
const SCATTERED: usize = 50;

/// In how many of 100 cases a sentence joins the bullet before it.
const JOINED: usize = 30;

/// One product with its instructions.
pub(super) struct Listing {
    pub item: RawItem,
    pub synthetic: RawInstruction,
    /// Empty if human instructions were not asked for.
    pub human: Vec<RawHumanInstruction>,
}

impl Listing {
    pub(super) fn make(
        seed: Seed,
        family: &Family,
        [family_index, member_index]: [usize; 2],
        asin: String,
        is_instructed: bool,
    ) -> Self {
        let member = &family.members[member_index];
        let mut own = Dice::new(seed, Draw::Listing, &[family_index, member_index]);
        let (bullets, mut description) = texts(family, member, &mut own);
        if own.chance(QUOTED) {
            description = format!("{description} {}", quote(&mut own));
        }
        let kind = family.kind;
        let item = RawItem {
            images: vec![format!("https://img.example/{asin}.jpg")],
            asin,
            name: title_case(&member.title),
            pricing: pricing(member.cents, &mut own),
            category: family.department.name.into(),
            query: family.query.clone(),
            product_category: [family.department.root, kind.section, kind.query].map(title_case).join(" › "),
            small_description: bullets,
            full_description: description,
            customization_options: options(member),
        };
        let coords = [family_index, member_index];
        let synthetic = instruction::synthetic(seed, family, member, coords);
        let human = match is_instructed {
            true => instruction::human(seed, family, member, coords),
            false => Vec::new(),
        };
        Self { item, synthetic, human }
    }
}

/// Bullets and description: an introduction, which is searched, then the hidden traits and a remark.
fn texts(family: &Family, member: &Member, dice: &mut Dice) -> (Vec<String>, String) {
    let stuff = match family.material {
        Some(material) => format!("{material} {}", family.query),
        None => family.query.clone(),
    };
    let fill = |text: &str, dice: &mut Dice| {
        let text = text.replace("{stuff}", &stuff).replace("{brand}", &capitalized(&family.brand));
        let text = text.replace("{use}", family.purpose).replace("{query}", family.kind.query);
        let text = text.replace("{person}", dice.pick(&prose::PERSONS));
        capitalized(&text.replace("{place}", dice.pick(&prose::PLACES)))
    };
    let first = dice.pick(&prose::FIRST_BULLETS);
    let mut bullets = vec![fill(first, dice)];
    let mut later: Vec<String> = member.hidden.iter().map(|&hidden| sentence(hidden, dice)).collect();
    later.extend(dice.sample(family.department.remarks, 2).into_iter().map(str::to_owned));
    if dice.chance(50) {
        later.extend(
            member.choices.first().map(|choice| dice.pick(&prose::CHOICE_BULLETS).replace("{}", choice.name)),
        );
    }
    dice.shuffle(&mut later);
    // Two sentences share a bullet now and then.
    for sentence in later {
        let n_bullets = bullets.len();
        match bullets.last_mut() {
            Some(last) if n_bullets > 1 && dice.chance(JOINED) => *last = format!("{last}; {sentence}"),
            _ => bullets.push(capitalized(&sentence)),
        }
    }
    // Full stops, because rewards join bullets: the end of one and the start of the next are no phrase.
    bullets.iter_mut().for_each(|bullet| bullet.push('.'));
    let n_sentences = 2 + dice.below(2);
    let sentences = dice.sample(&prose::DESCRIPTIONS, n_sentences);
    let mut sentences: Vec<_> = sentences.into_iter().map(|text| fill(text, dice)).collect();
    if dice.chance(PRAISED_PRICE) {
        let limit = (10 * dice.between(2, 9)).to_string();
        sentences.push(capitalized(&dice.pick(&prose::PRICE_REMARKS).replace("{limit}", &limit)));
    }
    (bullets, format!("{}.", sentences.join(". ")))
}

/// A bullet about a hidden trait; now and then with its words apart.
fn sentence(hidden: Trait, dice: &mut Dice) -> String {
    let is_scattered = dice.chance(SCATTERED);
    let words = hidden.text.split_once(' ').filter(|_| is_scattered);
    match (hidden.form, words, paraphrase::quality(hidden.text)) {
        (Form::Has, Some((make, part)), _) => {
            dice.pick(&prose::SCATTERED_BULLETS).replace("{part}", part).replace("{make}", make)
        }
        (Form::Is, Some(_), Some(text)) => dice.pick(&prose::TRAIT_BULLETS[0]).replace("{}", &text),
        _ => dice.pick(&prose::TRAIT_BULLETS[hidden.form as usize]).replace("{}", hidden.text),
    }
}

fn quote(dice: &mut Dice) -> String {
    let said = dice.pick(&prose::QUOTES);
    let said =
        said.replace("{person}", dice.pick(&prose::PERSONS)).replace("{place}", dice.pick(&prose::PLACES));
    format!("\"{}\" says a customer.", capitalized(&said))
}

fn pricing(cents: i64, dice: &mut Dice) -> String {
    let dollars = |cents: i64| format!("${}.{:02}", cents / 100, cents % 100);
    match dice.below(100) {
        draw if draw < UNPRICED => String::new(),
        draw if draw < UNPRICED + RANGE => {
            let high = cents + cents * dice.between(10, 40) / 100;
            format!("{}{}", dollars(cents), dollars(high / 100 * 100 + 99))
        }
        _ => dollars(cents),
    }
}

fn options(member: &Member) -> IndexMap<String, Option<Vec<RawOption>>> {
    let option = |value: &String| RawOption { value: title_case(value), image: None };
    let group = |values: &[String]| Some(values.iter().map(option).collect());
    member.choices.iter().map(|choice| (title_case(choice.name), group(&choice.values))).collect()
}

/// Capitals as on a shop's shelf.
fn title_case(text: &str) -> String {
    const SMALL: [&str; 6] = ["for", "to", "and", "in", "by", "with"];
    const ACRONYMS: [&str; 7] = ["usb", "hdmi", "led", "gmo", "xl", "3xl", "c"];
    let word = |word: &str| {
        let bare = word.trim_end_matches(',');
        if SMALL.contains(&bare) {
            word.to_owned()
        } else if ACRONYMS.contains(&bare) {
            word.to_uppercase()
        } else {
            word.split('/').map(capitalized).collect::<Vec<_>>().join("/")
        }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
