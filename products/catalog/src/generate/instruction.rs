//! Instructions for generated products.
//!
//! Requirements are drawn first: traits, mostly one that only this product's bullets tell, and options. Then
//! they are put into a sentence. Two thirds of the sentences spell every requirement as pages do; the others
//! paraphrase (see [`paraphrase`]).

use super::choice::Choice;
use super::dice::{Dice, Draw};
use super::family::{Family, Member, Trait};
use super::paraphrase;
use super::words::{Form, prose};
use crate::raw::{RawHumanInstruction, RawInstruction};
use crate::seed::Seed;

/// Human instructions of a product by the ways to choose its options: one (it has none), up to four, up to
/// twelve, more. As in the original, products with many options have more goals.
const N_HUMAN: [usize; 4] = [2, 3, 9, 12];
const MOST_OF_A_FEW: usize = 4;
const MOST_OF_SOME: usize = 12;

/// A product with more ways to choose its options has no synthetic instruction, since each makes a goal.
const MOST_COMBINATIONS: usize = 4;

/// In how many of 100 human instructions two traits are wanted, and in how many something is paraphrased.
const TWO_TRAITS: usize = 35;
const VARIED: usize = 50;

/// In how many of 100 instructions the first trait, and each further one, is one of the title, if it has one.
const FIRST_SHOWN: usize = 22;
const SHOWN: usize = 40;

/// Percentage of instructions that name a group of options.
const NAME_GROUP: usize = 97;

/// In how many of 100 paraphrasing instructions an option, or the kind, is put in other words.
const LOOSE: usize = 25;

/// The number of redraws if a product already has that instruction.
const N_TRIES: usize = 8;

/// An option value with the group it belongs to.
type Picked<'a> = (&'a Choice, &'a str);

/// Human instructions for one product.
pub(super) fn human(
    seed: Seed,
    family: &Family,
    member: &Member,
    coords: [usize; 2],
) -> Vec<RawHumanInstruction> {
    let n_human = match n_combinations(member) {
        1 => N_HUMAN[0],
        2..=MOST_OF_A_FEW => N_HUMAN[1],
        ..=MOST_OF_SOME => N_HUMAN[2],
        _ => N_HUMAN[3],
    };
    let mut human: Vec<RawHumanInstruction> = Vec::with_capacity(n_human);
    for at in 1..=n_human {
        let mut dice = dice(seed, coords, at);
        let mut instruction = human_instruction(family, member, &mut dice);
        for _ in 0..N_TRIES {
            if human.iter().all(|known| known.instruction != instruction.instruction) {
                break;
            }
            instruction = human_instruction(family, member, &mut dice);
        }
        human.push(instruction);
    }
    human
}

/// The attributes of one product, and its synthetic instruction if its options make few goals.
pub(super) fn synthetic(seed: Seed, family: &Family, member: &Member, coords: [usize; 2]) -> RawInstruction {
    let all = member.shown.iter().chain(&member.hidden);
    let attributes = Some(all.map(|one| one.text.to_owned()).collect());
    if n_combinations(member) > MOST_COMBINATIONS {
        return RawInstruction { attributes, ..RawInstruction::default() };
    }
    let wanted = synthetic_traits(family, member, &mut dice(seed, coords, 0));
    RawInstruction {
        attributes,
        instruction: Some(synthetic_text(family, &wanted)),
        instruction_attributes: Some(wanted.iter().map(|one| one.text.to_owned()).collect()),
    }
}

/// The number of ways to choose one value of each group.
fn n_combinations(member: &Member) -> usize {
    member.choices.iter().map(|choice| choice.values.len()).product()
}

/// The dice of one instruction of a product; 0 is the synthetic one.
fn dice(seed: Seed, [family, member]: [usize; 2], instruction: usize) -> Dice {
    Dice::new(seed, Draw::Instruction, &[family, member, instruction])
}

/// A sentence in the form of the original's rule: without options and price, which are appended on loading.
fn synthetic_text(family: &Family, wanted: &[Trait]) -> String {
    let phrase = |before: &str, form: Form, after: &str| match texts_of(wanted, form) {
        texts if texts.is_empty() => String::new(),
        texts => format!("{before}{}{after}", texts.join(", ")),
    };
    let (qualities, parts) = (phrase("", Form::Is, " "), phrase(" with ", Form::Has, ""));
    format!("Find me {qualities}{}{parts}{}", family.query, phrase(" for ", Form::For, ""))
}

fn human_instruction(family: &Family, member: &Member, dice: &mut Dice) -> RawHumanInstruction {
    let n_wanted = if dice.chance(TWO_TRAITS) { 2 } else { 1 };
    let wanted = wanted_traits(family, member, n_wanted, dice);
    let picked = picked_options(member, dice);
    let is_varied = dice.chance(VARIED);
    RawHumanInstruction {
        instruction: words(family, &wanted, &picked, is_varied, dice),
        instruction_attributes: wanted.iter().map(|one| one.text.to_owned()).collect(),
        instruction_options: picked.iter().map(|(_, value)| shown_value(value)).collect(),
    }
}

/// Two to five traits, as many as the original's.
fn synthetic_traits(family: &Family, member: &Member, dice: &mut Dice) -> Vec<Trait> {
    let n_wanted = 2 + dice.weighted(&[30, 40, 20, 10]);
    wanted_traits(family, member, n_wanted, dice)
}

/// Traits to want: mostly one in the bullets that no sibling has first, then any others; now and then one of
/// the title.
fn wanted_traits(family: &Family, member: &Member, n_wanted: usize, dice: &mut Dice) -> Vec<Trait> {
    let mut shown = member.shown.clone();
    let mut hidden = member.hidden.clone();
    dice.shuffle(&mut shown);
    dice.shuffle(&mut hidden);
    // The last is taken first.
    hidden.sort_by_key(|&one| family.is_own(one));
    let mut wanted = Vec::new();
    while wanted.len() < n_wanted {
        let from_title = dice.chance(if wanted.is_empty() { FIRST_SHOWN } else { SHOWN });
        let next = if from_title { shown.pop().or(hidden.pop()) } else { hidden.pop().or(shown.pop()) };
        let Some(next) = next else { break };
        wanted.push(next);
    }
    dice.shuffle(&mut wanted);
    wanted
}

fn picked_options<'a>(member: &'a Member, dice: &mut Dice) -> Vec<Picked<'a>> {
    let mut picked = Vec::new();
    for choice in &member.choices {
        if dice.chance(NAME_GROUP) {
            picked.push((choice, popular(&choice.values, dice)));
        }
    }
    dice.shuffle(&mut picked);
    picked
}

/// A value, those in the middle of the list most often: by the third power of the distance from its nearer end. So
/// selecting the first or the last value of everything is of little use.
fn popular<'a>(values: &'a [String], dice: &mut Dice) -> &'a str {
    let weight = |at: usize| (at + 1).min(values.len() - at).pow(3);
    let weights: Vec<_> = (0..values.len()).map(weight).collect();
    &values[dice.weighted(&weights)]
}

/// The whole sentence.
fn words(
    family: &Family,
    wanted: &[Trait],
    picked: &[Picked<'_>],
    is_varied: bool,
    dice: &mut Dice,
) -> String {
    let item = item(family, wanted, is_varied, dice);
    let choice_first = !picked.is_empty() && dice.chance(20);
    // Only the first two phrases of a group can open a sentence.
    let phrase = |(choice, value): &Picked<'_>, dice: &mut Dice| {
        let phrases = if choice_first { &choice.phrases[..2] } else { choice.phrases };
        let value = shown_value(value);
        let value = if is_varied && dice.chance(LOOSE) { paraphrase::option(&value) } else { value };
        dice.pick(phrases).replace("{}", &value)
    };
    let phrases: Vec<_> = picked.iter().map(|one| phrase(one, dice)).collect();
    let joint = dice.pick(&[" and ", ", ", ", and "]);
    let choices = phrases.join(joint);
    let mut text = if choice_first {
        dice.pick(&prose::CHOICE_FIRST).replace("{choice}", &choices)
    } else {
        let request = dice.pick(&prose::REQUESTS);
        let comma = if choices.is_empty() { "" } else { dice.pick(&[", ", ", ", " "]) };
        format!("{request}{comma}{choices}")
    };
    if dice.chance(15) {
        text += dice.pick(&prose::ENDINGS);
    }
    if dice.chance(30) {
        text.push('.');
    }
    text.replace("{item}", &item)
        .replace("{person}", dice.pick(&prose::PERSONS))
        .replace("{place}", dice.pick(&prose::PLACES))
}

/// The product and the traits wanted of it: "a waterproof rain jacket with crew neck".
fn item(family: &Family, wanted: &[Trait], is_varied: bool, dice: &mut Dice) -> String {
    let plural = is_plural(family.kind.query);
    let mut noun = family.query.clone();
    let mut behind = Vec::new();
    let mut plain = Vec::new();
    if let Some(variant) = family.variant.filter(|_| is_varied && dice.chance(LOOSE)) {
        noun = family.kind.query.into();
        behind.push(paraphrase::variant(variant));
    }
    for &one in wanted {
        match is_varied.then(|| paraphrase::trait_of(one, dice)).flatten() {
            Some(text) => behind.push(text),
            None => plain.push(one),
        }
    }
    let are = if plural { "are" } else { "is" };
    let qualities = texts_of(&plain, Form::Is);
    let mut front = String::new();
    if !qualities.is_empty() && dice.chance(35) {
        behind.push(format!("that {are} {}", qualities.join(" and ")));
    } else if !qualities.is_empty() {
        front = qualities.join(dice.pick(&[", ", " and ", " "])) + " ";
    }
    let parts = texts_of(&plain, Form::Has);
    if !parts.is_empty() {
        let have = if plural { "that have" } else { "that has" };
        behind.push(format!("{} {}", dice.pick(&["with", "with", have]), parts.join(" and ")));
    }
    for purpose in texts_of(&plain, Form::For) {
        behind.push(format!("{} {purpose}", dice.pick(&["for", "for", "good for"])));
    }
    dice.shuffle(&mut behind);
    let phrase = format!("{front}{noun}");
    let article = match phrase.chars().next() {
        _ if plural => dice.pick(&["", "", "some "]),
        Some('a' | 'e' | 'i' | 'o' | 'u') => "an ",
        _ => "a ",
    };
    let phrase = std::iter::once(format!("{article}{phrase}")).chain(behind);
    phrase.collect::<Vec<_>>().join(" ")
}

fn texts_of(wanted: &[Trait], form: Form) -> Vec<&'static str> {
    wanted.iter().filter(|one| one.form == form).map(|one| one.text).collect()
}

fn is_plural(noun: &str) -> bool {
    noun.ends_with('s') && !noun.ends_with("ss")
}

/// As pages show it after loading.
fn shown_value(value: &str) -> String {
    value.replace('/', " | ")
}
