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

/// Qualities in other words.
const QUALITIES: [(&str, &str); 16] = [
    ("hand made", "made by hand"),
    ("hand stitched", "stitched by hand"),
    ("hand poured", "poured by hand"),
    ("machine washable", "washable in the machine"),
    ("plant based", "based on plant matter"),
    ("fleece lined", "lined with fleece"),
    ("battery powered", "powered by battery"),
    ("wall mounted", "mounted on the wall"),
    ("clinically tested", "tested clinically"),
    ("paleo approved", "approved for paleo"),
    ("light weight", "light in weight"),
    ("slim fit", "slim in fit"),
    ("loose fit", "loose in fit"),
    ("pet friendly", "friendly to a pet"),
    ("dust proof", "proof against dust"),
    ("shock proof", "proof against shock"),
];

/// `paraben free` as `free of paraben`, `water resistant` as `resistant to water`; `None` for some.
pub(super) fn quality(text: &str) -> Option<String> {
    let known = QUALITIES.iter().find(|(plain, _)| *plain == text);
    known.map(|(_, said)| (*said).to_owned()).or_else(|| match text.rsplit_once(' ')? {
        (first, "free") => Some(format!("free of {first}")),
        (first, "resistant") => Some(format!("resistant to {first}")),
        _ => None,
    })
}

/// `men's` as `for men`, `oat` as `with oat`.
pub(super) fn variant(variant: &str) -> String {
    match variant.strip_suffix("'s").or(variant.strip_suffix('\'')) {
        Some(people) => format!("for {people}"),
        None => format!("made with {variant}"),
    }
}

/// `pack of 2` as `2 pack`, `8 oz` as `8 ounces`, `navy | red` as `navy and red`, `x-large` as `x large`.
pub(super) fn option(value: &str) -> String {
    let value = match value.strip_prefix("pack of ") {
        Some(number) => format!("{number} pack"),
        None => value.replace(" oz", " ounces"),
    };
    value.replace(" | ", " and ").replace('-', " ").replace(['(', ')', '#'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paraphrase_keeps_the_words() {
        for (plain, said) in QUALITIES {
            let words: Vec<_> = said.split(' ').collect();
            assert!(plain.split(' ').all(|word| words.contains(&word)), "{said}");
        }
        assert_eq!(quality("paraben free").as_deref(), Some("free of paraben"));
        assert_eq!(quality("long lasting"), None);
    }

    #[test]
    fn options_and_variants_lose_their_spelling() {
        let options =
            [("pack of 2", "2 pack"), ("8 oz", "8 ounces"), ("navy | red", "navy and red"), ("red", "red")];
        assert!(options.iter().all(|(value, said)| option(value) == *said));
        assert_eq!(
            (variant("men's"), variant("kids'"), variant("oat")),
            ("for men".into(), "for kids".into(), "made with oat".into())
        );
    }
}
