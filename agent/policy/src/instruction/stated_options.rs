//! Options that an instruction states as `name: value`, as the original's generated instructions do: `find me a, b QUERY
//! with c for d with color: x, and size: y`.

use crate::instruction::Instruction;

/// Between two stated options.
const NEXT: &str = ", and ";

/// The most words of an option's name, such as `item package quantity`.
const MAX_NAME_WORDS: usize = 4;

/// An option that an instruction states, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatedOption {
    /// The name before the colon.
    pub(crate) name: String,
    /// The value behind it.
    pub(crate) value: String,
}

impl Instruction {
    /// The stated options, in the order of the text.
    pub(crate) fn stated_options(&self) -> Vec<StatedOption> {
        let mut options: Vec<StatedOption> = Vec::new();
        for part in self.stated_text().split(NEXT) {
            match (part.split_once(": "), options.last_mut()) {
                (Some((name, value)), _) => {
                    options.push(StatedOption { name: name.into(), value: value.into() });
                }
                // A value may contain what stands between two options.
                (None, Some(last)) => last.value = [&*last.value, NEXT, part].concat(),
                (None, None) => {}
            }
        }
        options
    }

    /// The phrase that holds the kind of the product and the stated options, without the attributes: a query that
    /// finds a product whose texts lack the attributes. The whole query if the instruction has no phrase.
    pub(crate) fn kind_and_options(&self) -> String {
        let phrases = self.phrases(&[], &[]);
        let Some(kind) = phrases.iter().find(|phrase| phrase.holds_kind) else { return self.query().into() };
        let kind = kind.texts.join(" ");
        match self.stated_text() {
            "" => kind,
            stated => format!("{kind} with {stated}"),
        }
    }

    /// The end of the query from the name of the first stated option on.
    fn stated_text(&self) -> &str {
        let query = self.query();
        let start = query.find(": ").and_then(|colon| {
            let start = query[..colon].rfind(" with ")? + " with ".len();
            let name = &query[start..colon];
            (!name.contains(',') && name.split(' ').count() <= MAX_NAME_WORDS).then_some(start)
        });
        start.map_or("", |start| &query[start..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<(String, String)>, String) {
        let instruction = Instruction::parse(text);
        let options = instruction.stated_options().into_iter().map(|option| (option.name, option.value));
        (options.collect(), instruction.kind_and_options())
    }

    #[test]
    fn stated_options_are_read_from_the_end_of_a_generated_instruction() {
        let (options, query) = read(
            "Find me machine wash men's dress shirts with cotton spandex for gym workout with color: light, and blue, \
             and fit type: men, and price lower than 40.00 dollars",
        );
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(options, [pair("color", "light, and blue"), pair("fit type", "men")]);
        assert_eq!(query, "machine wash men's dress shirts with color: light, and blue, and fit type: men");
    }

    #[test]
    fn without_stated_options_the_kind_is_left() {
        assert_eq!(read("i need a red desk lamp with a glass base"), (vec![], "red desk lamp".into()));
        let colon = "i want a lamp with these things, all of them: a base, and price lower than 9.00 dollars";
        assert_eq!(read(colon).0, []);
        assert_eq!(read("the one").1, "the one");
    }
}
