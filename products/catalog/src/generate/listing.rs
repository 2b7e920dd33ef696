//! The texts of one product, as a seller would write them.

use indexmap::IndexMap;

use super::dice::{Dice, Draw};
use super::family::{Family, Member, Trait};
use super::instruction;
use super::words::{Form, prose};
use crate::raw::{RawHumanInstruction, RawInstruction, RawItem, RawOption};
use crate::seed::Seed;

/// Titles have at most this many words; less telling ones give way.
const MOST_TITLE_WORDS: usize = 11;

/// In how many of 100 products the price is missing, or a range.
const UNPRICED: usize = 4;
const RANGE: usize = 8;

/// Percentage of descriptions that quote a customer.
const QUOTED: usize = 75;

/// One product with its instructions.
pub(super) struct Listing {
    pub item: RawItem,
    pub synthetic: RawInstruction,
    /// None, if people's were not asked for.
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
        // Siblings share their prose, so that they differ only in the intended property.
        let mut shared = Dice::new(seed, Draw::Listing, &[family_index]);
        let mut own = Dice::new(seed, Draw::Listing, &[family_index, member_index]);
        let (bullets, mut description) = texts(family, member, &mut shared);
        if own.chance(QUOTED) {
            description = format!("{description} {}", quote(&mut own));
        }
        let kind = family.kind;
        let item = RawItem {
            images: vec![format!("https://img.example/{asin}.jpg")],
            asin,
            name: title(family, member),
            pricing: pricing(member.cents, &mut own),
            category: family.department.name.into(),
            query: kind.query.into(),
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

fn title(family: &Family, member: &Member) -> String {
    let mut material = family.material;
    let mut tail = family.tail;
    loop {
        let title = title_with(family, member, material, tail);
        if title.split(' ').count() <= MOST_TITLE_WORDS || (material.is_none() && tail.is_none()) {
            return title_case(&title);
        }
        if tail.take().is_none() {
            material = None;
        }
    }
}

fn title_with(family: &Family, member: &Member, material: Option<&str>, tail: Option<&str>) -> String {
    let said = |wanted: &Trait| match wanted.form {
        Form::For => format!("for {}", wanted.text),
        Form::Is | Form::Has => wanted.text.to_owned(),
    };
    // The first quality precedes the noun, unless the frame puts all of them after it.
    let n_before = usize::from(family.frame != 2 && member.shown[0].form == Form::Is);
    let (before, after) = member.shown.split_at(n_before);
    let quality = before.first().map(|quality| quality.text);
    let (first, second) =
        if family.frame == 0 { (family.audience, quality) } else { (quality, family.audience) };
    let brand = Some(family.brand.as_str());
    let words = [brand, first, second, material, Some(family.kind.query)];
    let noun: Vec<_> = words.into_iter().flatten().collect();
    let parts = std::iter::once(noun.join(" ")).chain(after.iter().map(said));
    let parts: Vec<_> = parts.chain(tail.map(Into::into)).collect();
    parts.join(", ")
}

/// Bullets and description. Each hidden trait occurs once: the first in a later bullet, the second
/// in the description.
fn texts(family: &Family, member: &Member, dice: &mut Dice) -> (Vec<String>, String) {
    let person = dice.pick(&prose::PERSONS);
    let place = dice.pick(&prose::PLACES);
    let stuff = match family.material {
        Some(material) => format!("{material} {}", family.kind.query),
        None => family.kind.query.to_owned(),
    };
    let fill = |text: &str| {
        let text = text.replace("{stuff}", &stuff).replace("{brand}", &capitalized(&family.brand));
        let text = text.replace("{use}", family.purpose).replace("{query}", family.kind.query);
        capitalized(&text.replace("{person}", person).replace("{place}", place))
    };
    let mut bullets = vec![fill(dice.pick(&prose::FIRST_BULLETS))];
    let mut later: Vec<String> =
        dice.sample(family.department.remarks, 2).into_iter().map(capitalized).collect();
    later.extend(
        member
            .choices
            .first()
            .map(|choice| capitalized(&dice.pick(&prose::CHOICE_BULLETS).replace("{}", choice.name))),
    );
    let mut sentence = |hidden: Trait| {
        let said = dice.pick(&prose::HIDDEN_BULLETS[hidden.form as usize]);
        capitalized(&said.replace("{}", hidden.text))
    };
    let sentences: Vec<_> = member.hidden.iter().copied().map(&mut sentence).collect();
    let mut description = fill(dice.pick(&prose::DESCRIPTIONS));
    description.push('.');
    for (at, sentence) in sentences.into_iter().enumerate() {
        if at == 0 {
            later.push(sentence);
        } else {
            description = format!("{description} {sentence}.");
        }
    }
    dice.shuffle(&mut later);
    bullets.extend(later);
    (bullets, description)
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
            let high = cents + cents * dice.between(20, 50) / 100;
            format!("{}{}", dollars(cents), dollars(high / 100 * 100 + 99))
        }
        _ => dollars(cents),
    }
}

fn options(member: &Member) -> IndexMap<String, Option<Vec<RawOption>>> {
    let option = |value: &&str| RawOption { value: title_case(value), image: None };
    let group = |values: &[&str]| Some(values.iter().map(option).collect());
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
