//! Requirements in other words than those of the pages, with the same stems.

use super::dice::Dice;
use super::family::Trait;
use super::words::Form;

/// `paraben free` as `free of paraben`, `rubber sole` as `with a sole of rubber`; `None` if it has no other
/// form.
pub(super) fn trait_of(wanted: Trait, dice: &mut Dice) -> Option<String> {
    match wanted.form {
        Form::Is => quality(wanted.text),
        Form::Has => {
            let (first, second) = wanted.text.split_once(' ')?;
            let form = dice.pick(&["whose {b} is {a}", "with {b} made of {a}", "with {b} in {a}"]);
            Some(form.replace("{a}", first).replace("{b}", second))
        }
        Form::For => {
            Some(format!("{} {}", dice.pick(&["to use for", "that suits", "i want it for"]), wanted.text))
        }
    }
}

/// `paraben free` as `free of paraben`, `water resistant` as `resistant to water`; `None` for others.
pub(super) fn quality(text: &str) -> Option<String> {
    let (first, second) = text.split_once(' ')?;
    match second {
        "free" => Some(format!("free of {first}")),
        "resistant" | "friendly" | "proof" => Some(format!("{second} to {first}")),
        "fit" | "weight" | "duty" | "finish" => Some(format!("{first} in {second}")),
        "tested" | "approved" | "made" | "washable" | "based" | "lined" | "sided" | "stitched" | "poured"
        | "mounted" | "powered" => Some(format!("{second} ({first})")),
        _ => None,
    }
}

/// `men's` as `for men`, `oat` as `with oat`.
pub(super) fn variant(variant: &str) -> String {
    match variant.strip_suffix("'s").or(variant.strip_suffix('\'')) {
        Some(people) => format!("for {people}"),
        None => format!("made with {variant}"),
    }
}

/// `pack of 2` as `2 pack`, `8 fl oz` as `8 ounces`, `navy | red` as `navy and red`, `x-large` as `x large`.
pub(super) fn option(value: &str) -> String {
    let value = match value.strip_prefix("pack of ") {
        Some(number) => format!("{number} pack"),
        None => value.replace(" fl oz", " ounces"),
    };
    value.replace(" | ", " and ").replace('-', " ").replace(['(', ')', '#'], "")
}
