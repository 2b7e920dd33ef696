//! White space and decimal digits as Python's `str` defines them.

/// The code points of Unicode's decimal zeros; the nine other digits of each script follow its zero.
/// Listed because the standard library knows "numeric" (which has ½ and Ⅳ) but not "decimal digit".
#[rustfmt::skip]
const DECIMAL_ZEROS: [u32; 66] = [
    0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66,
    0xDE6, 0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90,
    0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10,
    0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650,
    0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50,
    0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E950, 0x1FBF0,
];

/// `c.isspace()`: Unicode white space and the four ASCII separators U+001C to U+001F, which
/// [`char::is_whitespace`] leaves out.
///
/// ```
/// use webshop_pycompat::is_space;
/// assert!(is_space('\u{1c}') && is_space('\u{a0}') && !is_space('\u{200b}'));
/// ```
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// `text.strip()`: `text` without [white space](is_space) at both ends.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `unicodedata.decimal(c)`: 0 to 9 for a decimal digit of any script, `None` for anything else.
pub fn decimal_digit(c: char) -> Option<u8> {
    let point = c as u32;
    let block = DECIMAL_ZEROS.partition_point(|&zero| zero <= point);
    let zero = DECIMAL_ZEROS.get(block.checked_sub(1)?)?;
    u8::try_from(point - zero).ok().filter(|&digit| digit < 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strip_removes_separators_and_unicode_spaces() {
        assert_eq!(strip("\u{1c}\u{a0} red \u{1f}\n"), "red");
        assert_eq!(strip("\x1c\u{3000} a b\u{a0}"), "a b");
    }

    #[test]
    fn digits_of_every_script_have_their_value() {
        let cases = [('7', Some(7)), ('٣', Some(3)), ('９', Some(9)), ('½', None), ('a', None)];
        for (c, value) in cases {
            assert_eq!(decimal_digit(c), value, "{c}");
        }
    }
}
