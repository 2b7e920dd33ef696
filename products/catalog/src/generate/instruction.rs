//! Instructions for generated products.
//!
//! Requirements are drawn first: traits that distinguish the product from its siblings, options, or both.
//! Then they are put into a sentence; every required text appears as it is spelled, only order and wording
//! vary.

use super::dice::{Dice, Draw};
use super::family::{Choice, Family, Member, Trait};
use super::words::{Form, prose};
use crate::raw::{RawHumanInstruction, RawInstruction};
use crate::seed::Seed;

/// Human instructions per product.
const N_HUMAN: usize = 12;

/// Percentages of instructions that name one, two and three traits.
const N_TRAITS: [usize; 3] = [12, 58, 30];

/// Percentages of instructions that require a hidden trait (one only in the product's text), if it
/// distinguishes siblings and if it does not.
const ASK_HIDDEN: usize = 40;
const ASK_HIDDEN_IDLY: usize = 3;

/// Percentage of instructions that name a group of options.
const NAME_GROUP: usize = 97;

/// Percentage of these whose value not all siblings offer, if there is such a value.
const RARE: usize = 85;

/// The number of redraws if a product already has that instruction.
const N_TRIES: usize = 8;

/// An option value with the group it belongs to.
type Picked<'a> = (&'a Choice, &'static str);

/// Human instructions for one product.
pub(super) fn human(
    seed: Seed,
    family: &Family,
    member: &Member,
    coords: [usize; 2],
) -> Vec<RawHumanInstruction> {
    let mut human: Vec<RawHumanInstruction> = Vec::with_capacity(N_HUMAN);
    for at in 1..=N_HUMAN {
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

/// The synthetic instruction for one product.
pub(super) fn synthetic(seed: Seed, family: &Family, member: &Member, coords: [usize; 2]) -> RawInstruction {
    synthetic_instruction(family, member, &mut dice(seed, coords, 0))
}

/// The dice of one instruction of a product; 0 is the synthetic one.
fn dice(seed: Seed, [family, member]: [usize; 2], instruction: usize) -> Dice {
    Dice::new(seed, Draw::Instruction, &[family, member, instruction])
}

/// A sentence in the form of the original's rule: without options and price, which are appended on loading.
fn synthetic_instruction(family: &Family, member: &Member, dice: &mut Dice) -> RawInstruction {
    let wanted = wanted_traits(family, member, dice);
    let phrase = |before: &str, form: Form, after: &str| match texts_of(&wanted, form) {
        texts if texts.is_empty() => String::new(),
        texts => format!("{before}{}{after}", texts.join(", ")),
    };
    let (qualities, parts) = (phrase("", Form::Is, " "), phrase(" with ", Form::Has, ""));
    let text = format!("Find me {qualities}{}{parts}{}", family.kind.query, phrase(" for ", Form::For, ""));
    let all = member.shown.iter().chain(&member.hidden);
    RawInstruction {
        attributes: Some(all.map(|one| one.text.to_owned()).collect()),
        instruction: Some(text),
        instruction_attributes: Some(wanted.iter().map(|one| one.text.to_owned()).collect()),
    }
}

fn human_instruction(family: &Family, member: &Member, dice: &mut Dice) -> RawHumanInstruction {
    let wanted = wanted_traits(family, member, dice);
    let picked = picked_options(family, member, dice);
    RawHumanInstruction {
        instruction: words(family, &wanted, &picked, dice),
        instruction_attributes: wanted.iter().map(|one| one.text.to_owned()).collect(),
        instruction_options: picked.iter().map(|(_, value)| shown_value(value)).collect(),
    }
}

/// One to three traits, those that distinguish siblings first.
fn wanted_traits(family: &Family, member: &Member, dice: &mut Dice) -> Vec<Trait> {
    let n_wanted = 1 + dice.weighted(&N_TRAITS);
    let mut shown = member.shown.clone();
    dice.shuffle(&mut shown);
    shown.sort_by_key(|&one| std::cmp::Reverse(family.n_without(one)));
    let asked =
        |&one: &Trait| dice.chance(if family.n_without(one) > 0 { ASK_HIDDEN } else { ASK_HIDDEN_IDLY });
    let hidden: Vec<_> = member.hidden.iter().copied().filter(asked).take(1).collect();
    let mut wanted: Vec<_> = hidden.into_iter().chain(shown).take(n_wanted).collect();
    dice.shuffle(&mut wanted);
    wanted
}

fn picked_options<'a>(family: &Family, member: &'a Member, dice: &mut Dice) -> Vec<Picked<'a>> {
    let mut picked = Vec::new();
    for choice in &member.choices {
        if dice.chance(NAME_GROUP) {
            let rare = choice.values.iter().copied().filter(|value| family.is_rare(choice.name, value));
            let rare: Vec<_> = rare.collect();
            let among = if !rare.is_empty() && dice.chance(RARE) { &rare } else { &choice.values };
            picked.push((choice, dice.pick(among)));
        }
    }
    dice.shuffle(&mut picked);
    picked
}

/// The whole sentence.
fn words(family: &Family, wanted: &[Trait], picked: &[Picked<'_>], dice: &mut Dice) -> String {
    let item = item(family, wanted, dice);
    let choice_first = !picked.is_empty() && dice.chance(20);
    // Only the first two phrases of a group can open a sentence.
    let phrase = |(choice, value): &Picked<'_>, dice: &mut Dice| {
        let phrases = if choice_first { &choice.phrases[..2] } else { choice.phrases };
        dice.pick(phrases).replace("{}", &shown_value(value))
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
fn item(family: &Family, wanted: &[Trait], dice: &mut Dice) -> String {
    let plural = is_plural(family.kind.query);
    let audience = family.audience.filter(|_| dice.chance(60));
    let noun = audience
        .map_or_else(|| family.kind.query.to_owned(), |audience| format!("{audience} {}", family.kind.query));
    let are = if plural { "are" } else { "is" };
    let qualities = texts_of(wanted, Form::Is);
    let mut behind = Vec::new();
    let mut front = String::new();
    if !qualities.is_empty() && dice.chance(35) {
        behind.push(format!("that {are} {}", qualities.join(" and ")));
    } else if !qualities.is_empty() {
        front = qualities.join(dice.pick(&[", ", " and ", " "])) + " ";
    }
    let parts = texts_of(wanted, Form::Has);
    if !parts.is_empty() {
        let have = if plural { "that have" } else { "that has" };
        behind.push(format!("{} {}", dice.pick(&["with", "with", have]), parts.join(" and ")));
    }
    for purpose in texts_of(wanted, Form::For) {
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
