//! The few text rules of Python that the original's files are read by.
//!
//! Stripping, decimal digits and the printing of floats differ between Python and Rust in corners
//! that real product data reaches. Nothing here is general: each function covers what loading needs.

/// The code points of Unicode's decimal zeros; each is followed by its nine other digits.
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

/// `str.strip()`: also drops the four ASCII separators, which Rust does not count as white space.
pub(crate) fn strip(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

/// The value of a decimal digit in any script.
pub(crate) fn decimal_digit(c: char) -> Option<u8> {
    let point = c as u32;
    let block = DECIMAL_ZEROS.partition_point(|&zero| zero <= point);
    let zero = DECIMAL_ZEROS.get(block.checked_sub(1)?)?;
    u8::try_from(point - zero).ok().filter(|&digit| digit < 10)
}

/// `repr(float)` for a number that is finite and not negative.
pub(crate) fn float_repr(value: f64) -> String {
    let scientific = value != 0.0 && !(1e-4..1e16).contains(&value);
    if !scientific {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(positive) => ('-', positive),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_white_space_to_python() {
        assert_eq!(strip("\u{1c}\u{a0} red \u{1f}\n"), "red");
    }

    #[test]
    fn digits_of_every_script_have_their_value() {
        let cases = [('7', Some(7)), ('٣', Some(3)), ('９', Some(9)), ('½', None), ('a', None)];
        for (c, value) in cases {
            assert_eq!(decimal_digit(c), value, "{c}");
        }
    }

    #[test]
    fn floats_print_as_python_prints_them() {
        // Each right side is what CPython 3.11 prints.
        let cases = [
            (34.0, "34.0"),
            (877.8, "877.8"),
            (0.0, "0.0"),
            (0.0001, "0.0001"),
            (0.00005, "5e-05"),
            (1e16, "1e+16"),
            (1.5e22, "1.5e+22"),
            (2721.34, "2721.34"),
        ];
        for (value, text) in cases {
            assert_eq!(float_repr(value), text);
        }
    }
}
