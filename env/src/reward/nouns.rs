//! The nouns of a title, by which rewards compare the kind of products.
//!
//! [`NounTable::nouns`] looks a title up in a table of another tagger's results; for other titles it uses
//! [`title_nouns`]: every alphabetic word that is neither a function word nor a frequent adjective.
//!
//! That is no part-of-speech tagger. It finds too many nouns rather than too few, which makes titles of one
//! kind look a little less alike; a reward requires a fifth of the nouns.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Deserialize;
use webshop_products::{DataError, Digest, read_json_lines};

/// Words that are not nouns in a product's title.
#[rustfmt::skip]
const NOT_NOUNS: [&str; 175] = [
    "a", "about", "above", "after", "all", "also", "am", "an", "and", "any", "are", "around", "as",
    "at", "be", "been", "before", "below", "best", "better", "between", "big", "black", "blue",
    "both", "breathable", "bright", "brown", "but", "by", "can", "casual", "cheap", "classic",
    "clean", "clear", "cold", "comfortable", "compact", "cool", "cute", "daily", "dark", "deep",
    "different", "down", "dry", "durable", "each", "easy", "elegant", "every", "extra",
    "fashionable", "fine", "flat", "foldable", "for", "free", "fresh", "from", "full", "genuine",
    "good", "gray", "great", "green", "grey", "has", "have", "heavy", "her", "high", "his", "hot",
    "how", "if", "in", "into", "is", "it", "its", "large", "lightweight", "long", "loose", "low",
    "made", "mini", "modern", "more", "most", "multi", "my", "natural", "new", "nice", "no", "non",
    "not", "of", "off", "old", "on", "one", "only", "or", "other", "our", "out", "over", "own",
    "per", "pink", "portable", "premium", "pure", "purple", "quick", "ready", "real", "red",
    "reusable", "round", "safe", "same", "set", "short", "simple", "slim", "small", "smart", "so",
    "soft", "solid", "some", "stylish", "such", "super", "sweet", "than", "that", "the", "their",
    "these", "they", "thick", "thin", "this", "those", "three", "tight", "to", "too", "two",
    "ultra", "under", "universal", "up", "use", "very", "vintage", "warm", "was", "waterproof",
    "we", "white", "wide", "wireless", "with", "without", "yellow", "you", "young", "your",
];

/// Nouns of titles from another tagger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NounTable {
    known: HashMap<String, Vec<String>>,
    /// Computed once, because digests of states include it; `None` for an empty table.
    digest: Option<Digest>,
}

/// A line of a file of nouns.
#[derive(Deserialize)]
struct TitleNouns {
    name: String,
    nouns: Vec<String>,
}

impl NounTable {
    /// The table in a file of JSON lines, each with `name`, the title, and `nouns`, a list.
    ///
    /// # Errors
    /// The file cannot be read, or a line is malformed.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let titles = read_json_lines::<TitleNouns>(path)?;
        Ok(Self::new(titles.into_iter().map(|line| (line.name, line.nouns)).collect()))
    }

    /// A table of title → its nouns, lower case, in order, with repeats.
    pub fn new(known: HashMap<String, Vec<String>>) -> Self {
        let sorted: BTreeMap<&String, &Vec<String>> = known.iter().collect();
        let digest = (!sorted.is_empty())
            .then(|| Digest::of(&serde_json::to_vec(&sorted).expect("texts are all valid JSON")));
        NounTable { known, digest }
    }

    /// The digest of the table; `None` if it is empty.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// The nouns of a title: the table's if it has the title, else [`title_nouns`].
    pub fn nouns(&self, title: &str) -> Vec<String> {
        match self.known.get(title) {
            Some(nouns) => nouns.clone(),
            None => title_nouns(title),
        }
    }
}

/// The lower-cased nouns of a title, in order, with repeats.
///
/// ```
/// use webshop_env::title_nouns;
/// assert_eq!(title_nouns("Women's Waterproof Hiking Boots, 2 Pairs"), ["women", "hiking", "boots", "pairs"]);
/// ```
pub fn title_nouns(title: &str) -> Vec<String> {
    title_words(title).filter(|word| NOT_NOUNS.binary_search(&word.as_str()).is_err()).collect()
}

/// The alphabetic words of a title, of two letters or more, in lower case.
pub(crate) fn title_words(title: &str) -> impl Iterator<Item = String> {
    title
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().nth(1).is_some() && word.chars().all(char::is_alphabetic))
        .map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_for_the_search() {
        assert!(NOT_NOUNS.is_sorted());
    }

    #[test]
    fn a_known_title_is_looked_up() {
        let known = HashMap::from([("Red Lamp".to_owned(), vec!["lamp".to_owned()])]);
        let table = NounTable::new(known);
        assert_eq!(table.nouns("Red Lamp"), ["lamp"]);
        assert_eq!(table.nouns("Blue Desk Lamp"), ["desk", "lamp"]);
    }

    #[test]
    fn a_table_is_read_from_lines() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let read = |text: &str| {
            std::fs::write(&file, text).expect("it can be written");
            NounTable::read(file.path()).map_err(|error| error.to_string())
        };
        let table = read("{\"name\": \"Red Lamp\", \"nouns\": [\"lamp\"]}\n\n").expect("the line is valid");
        assert_eq!(table, NounTable::new(HashMap::from([("Red Lamp".to_owned(), vec!["lamp".to_owned()])])));
        let refusal = read("\n{\"name\": \"Red Lamp\"}\n").expect_err("the nouns are missing");
        assert!(refusal.ends_with("`, line 2: missing field `nouns` at column 20"), "{refusal}");
    }

    #[test]
    fn a_table_has_a_name_that_no_order_changes() {
        let entry = |title: &str| (title.to_owned(), vec!["lamp".to_owned()]);
        let digest =
            |titles: &[&str]| NounTable::new(titles.iter().map(|title| entry(title)).collect()).digest();
        assert_eq!(digest(&["a", "b", "c"]), digest(&["c", "a", "b"]));
        assert_ne!(digest(&["a"]), digest(&["b"]));
        assert_eq!((digest(&[]), NounTable::default().digest()), (None, None));
    }
}
