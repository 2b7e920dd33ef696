//! CPython behavior that the original WebShop, Hugging Face's chat templates and their data depend on.
//!
//! - Text: white space and decimal digits as `str.strip`, `str.isdecimal` define them ([`strip`],
//!   [`is_space`], [`decimal_digit`]).
//! - Printing: `repr` and `json.dumps` of texts, floats and dictionaries of texts ([`repr_string`],
//!   [`json_string`], [`float_repr`], …).
//! - [`PythonRandom`]: the generator of `import random`.
//! - [`matching_chars`]: the total size of the matching blocks of `difflib.SequenceMatcher`.
//!
//! Each function reproduces one CPython function byte for byte. The crate is not a general Python
//! compatibility layer: it holds only what this project needs, and it knows no shop and no model.

#![forbid(unsafe_code)]

mod difflib;
mod random;
mod repr;
mod text;

pub use difflib::matching_chars;
pub use random::PythonRandom;
pub use repr::{
    UnicodeAge, float_repr, json_dict, json_float, json_string, push_json_string, push_repr, repr_dict,
    repr_string,
};
pub use text::{decimal_digit, is_space, strip};
