//! Words that no dictionary has: brands, series and model numbers.
//!
//! They give titles the long tail of the original's, where most word types occur once.

use super::dice::Dice;

const ONSETS: [&str; 28] = [
    "b", "br", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "kr", "l", "m", "n", "p", "pl", "qu", "r",
    "s", "st", "t", "tr", "v", "w", "x", "y", "z",
];
const VOWELS: [&str; 9] = ["a", "e", "i", "o", "u", "ai", "ea", "oo", "y"];
const CODAS: [&str; 14] = ["", "", "", "l", "n", "r", "s", "x", "nd", "rt", "m", "ck", "th", "v"];
const LETTERS: &[u8; 20] = b"abcdefghkmnprstuvwxz";

/// Two or three syllables.
pub(super) fn word(dice: &mut Dice) -> String {
    let n_syllables = if dice.chance(70) { 2 } else { 3 };
    let mut text = String::new();
    for _ in 0..n_syllables {
        text += dice.pick(&ONSETS);
        text += dice.pick(&VOWELS);
    }
    text + dice.pick(&CODAS)
}

/// Letters and digits: `kx204`, `t-35`, `920b`.
pub(super) fn model(dice: &mut Dice) -> String {
    let letter = |dice: &mut Dice| char::from(dice.pick(LETTERS));
    let number = dice.between(10, 999);
    let (one, other) = (letter(dice), letter(dice));
    match dice.below(4) {
        0 => format!("{one}{other}{number}"),
        1 => format!("{one}-{number}"),
        2 => format!("{number}{one}"),
        _ => format!("{one}{other}-{number}"),
    }
}
