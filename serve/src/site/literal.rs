//! Python's literals of lists and dictionaries of texts, read strictly: nothing is evaluated.
//!
//! JSON's texts are read too; their escapes of UTF-16 surrogates are joined.

use std::iter::Peekable;
use std::str::Chars;

/// The texts of a list, such as `['a', "it's"]`; `None` if it is none.
pub(super) fn texts(literal: &str) -> Option<Vec<String>> {
    let mut reader = Reader(literal.chars().peekable());
    let texts = reader.sequence('[', ']', Reader::text)?;
    reader.is_at_end().then_some(texts)
}

/// The names and values of a dictionary, such as `{'color': 'red'}`; `None` if it is none.
pub(super) fn pairs(literal: &str) -> Option<Vec<(String, String)>> {
    let mut reader = Reader(literal.chars().peekable());
    let pairs = reader.sequence('{', '}', |reader| {
        let name = reader.text()?;
        reader.expect(':')?;
        Some((name, reader.text()?))
    })?;
    reader.is_at_end().then_some(pairs)
}

struct Reader<'a>(Peekable<Chars<'a>>);

impl Reader<'_> {
    /// The next character that is no space.
    fn next(&mut self) -> Option<char> {
        self.peek();
        self.0.next()
    }

    /// As [`Reader::next`], which stays.
    fn peek(&mut self) -> Option<char> {
        while self.0.next_if(|c| matches!(c, ' ' | '\t' | '\n' | '\r')).is_some() {}
        self.0.peek().copied()
    }

    fn expect(&mut self, expected: char) -> Option<()> {
        (self.next()? == expected).then_some(())
    }

    fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Elements between `open` and `close`, separated by commas; one may follow the last.
    fn sequence<T>(
        &mut self,
        open: char,
        close: char,
        element: impl Fn(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.expect(open)?;
        let mut elements = Vec::new();
        while self.peek()? != close {
            elements.push(element(self)?);
            if self.peek()? != close {
                self.expect(',')?;
            }
        }
        self.expect(close)?;
        Some(elements)
    }

    /// A text in single or double quotes.
    fn text(&mut self) -> Option<String> {
        let quote = self.next().filter(|c| matches!(c, '\'' | '"'))?;
        let mut text = String::new();
        loop {
            match self.0.next()? {
                c if c == quote => return Some(text),
                '\n' => return None,
                '\\' => text.push(self.escaped()?),
                c => text.push(c),
            }
        }
    }

    /// The character of an escape, behind the backslash.
    fn escaped(&mut self) -> Option<char> {
        match self.0.next()? {
            c @ ('\\' | '\'' | '"' | '/') => Some(c),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'x' => char::from_u32(self.hexadecimal(2)?),
            'u' => match self.hexadecimal(4)? {
                high @ 0xd800..=0xdbff => {
                    (self.0.next()? == '\\' && self.0.next()? == 'u').then_some(())?;
                    let low = self.hexadecimal(4)?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                    char::from_u32(0x10000 + ((high - 0xd800) << 10) + low)
                }
                code => char::from_u32(code),
            },
            'U' => char::from_u32(self.hexadecimal(8)?),
            _ => None,
        }
    }

    fn hexadecimal(&mut self, n_digits: usize) -> Option<u32> {
        let mut number: u32 = 0;
        for _ in 0..n_digits {
            number = number.checked_mul(16)? + self.0.next()?.to_digit(16)?;
        }
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use webshop_pycompat::{UnicodeAge, json_dict, repr_dict};

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_dictionary_is_read_back(expected in prop::collection::vec(any::<(String, String)>(), 0..4)) {
            let borrowed = || expected.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            for text in [repr_dict(borrowed(), UnicodeAge::V12_1), json_dict(borrowed())] {
                prop_assert_eq!(pairs(&text), Some(expected.clone()));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[\\[{]['\"a\\\\ux0:, \\]}]{0,12}", other: String) {
            for text in [text, other] {
                let (list, dictionary) = (texts(&text), pairs(&text));
                prop_assert!(list.is_none() || dictionary.is_none());
            }
        }
    }

    #[test]
    fn what_python_and_json_print_is_read_back() {
        let nasty = "it's \"so\" \\ \n\t\r\u{7f}\u{85}\u{200b}é\u{1f600}\u{10ffff}/";
        let pairs_in = [("color", "red"), ("", nasty), (nasty, "")];
        let expected: Vec<(String, String)> = pairs_in.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec();
        for text in [repr_dict(pairs_in, UnicodeAge::V12_1), json_dict(pairs_in)] {
            assert_eq!(pairs(&text), Some(expected.clone()), "{text}");
        }
        assert_eq!(pairs("{}"), Some(Vec::new()));
        assert_eq!(texts(" [ 'a' , \"b\" , ] "), Some(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "[",
            "[]x",
            "['a'",
            "['a' 'b']",
            "[,]",
            "[a]",
            "[1]",
            "['a', ['b']]",
            "('a',)",
            "['\\q']",
            "['\\ud800']",
            "['a'] + ['b']",
            "[__import__('os')]",
            "['\n']",
            "['\\U00110000']",
        ] {
            assert_eq!(texts(text), None, "{text:?}");
        }
        for text in [
            "{'a'}",
            "{'a': 1}",
            "{'a': 'b' 'c'}",
            "{'a': 'b',, }",
            "{:}",
            "{'a': {}}",
            "null",
            "{'a': 'b'}}",
        ] {
            assert_eq!(pairs(text), None, "{text:?}");
        }
    }
}
