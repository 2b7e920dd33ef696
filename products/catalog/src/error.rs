//! What can be wrong with a catalog on disk, said so that a person can find it.

use std::path::PathBuf;

use crate::goal::split_rule::SplitRule;

/// Why a catalog could not be read, checked or written.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The operating system refused.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was being done, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The file is not JSON of the expected outer shape.
    #[error("`{}` is not the JSON it should be: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What the parser met, with line and column.
        source: serde_json::Error,
    },
    /// A folder lacks one of the three files.
    #[error(
        "`{}` holds no file `{stem}*.json` or `{stem}*.json.gz`; the original's three files are in the drive folder from \
         which `setup.sh` of github.com/princeton-nlp/WebShop downloads, and `webshop catalog generate` makes such files",
        dir.display()
    )]
    MissingFile {
        /// The folder.
        dir: PathBuf,
        /// How the wanted file's name begins.
        stem: &'static str,
    },
    /// A goal belongs to another catalog.
    #[error("a goal was made from `{asin}`, which the catalog does not sell")]
    UnknownProduct {
        /// The product.
        asin: String,
    },
    /// A split needs more goals than there are.
    #[error(
        "the split rule `{rule}` needs at least {} goals, and these are {n_goals}; take a larger catalog or other goals",
        rule.min_goals()
    )]
    TooFewGoals {
        /// The rule.
        rule: SplitRule,
        /// How many goals there are.
        n_goals: usize,
    },
    /// Writing would replace something.
    #[error("`{}` already exists", path.display())]
    Exists {
        /// The file in the way.
        path: PathBuf,
    },
    /// One record breaks the format.
    #[error("`{file}`, record {record} (`{asin}`): {problem}")]
    Record {
        /// The file, or the name the original gives it when the data never was a file.
        file: String,
        /// The record's place in its file, counting from 1.
        record: usize,
        /// The product, or what stands in its place.
        asin: String,
        /// The field and what is wrong with it.
        problem: FieldProblem,
    },
}

/// A field that is missing or holds what it must not.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("field `{field}` {problem}")]
pub struct FieldProblem {
    /// The field's name in the file.
    pub field: String,
    /// What is wrong, completing a sentence that starts with the field.
    pub problem: String,
}

impl FieldProblem {
    pub(crate) fn new(field: &str, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}
