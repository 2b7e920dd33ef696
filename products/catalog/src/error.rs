//! Errors of catalogs: reading, checking and writing.

use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;

use crate::goal::split_rule::SplitRule;

/// A number that is no goal's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no goal {number}: the shop has {}", match n_goals {
    0 => "no goals".to_owned(),
    n_goals => format!("goals 0 to {}", n_goals - 1),
})]
pub struct NoSuchGoal {
    /// The number.
    pub number: i64,
    /// How many goals there are.
    pub n_goals: usize,
}

/// Why a catalog could not be read, checked or written.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// An operation on a file or folder failed.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is not JSON, or neither a list nor an object.
    #[error("`{}` is not valid JSON: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The error of the parser, with line and column.
        source: serde_json::Error,
    },
    /// A folder lacks one of the three files.
    #[error(
        "`{}` holds no file `{stem}*.json` or `{stem}*.json.gz`; the original's three files are in the drive folder from \
         which `setup.sh` of github.com/princeton-nlp/WebShop downloads",
        dir.display()
    )]
    MissingFile {
        /// The folder.
        dir: PathBuf,
        /// The beginning of the missing file's name.
        stem: &'static str,
    },
    /// The goal belongs to another catalog.
    #[error("the goal's product `{asin}` is not in the catalog")]
    UnknownProduct {
        /// The product.
        asin: String,
    },
    /// The split rule needs more goals.
    #[error(
        "the split rule `{rule}` needs at least {} goals, but there are {n_goals}; use a larger catalog or another rule",
        rule.min_goals()
    )]
    TooFewGoals {
        /// The rule.
        rule: SplitRule,
        /// How many goals there are.
        n_goals: usize,
    },
    /// The file to write exists.
    #[error("`{}` already exists", path.display())]
    Exists {
        /// The existing file.
        path: PathBuf,
    },
    /// A line of JSON lines is malformed, or cannot be read.
    #[error("{input}, line {line}: {problem}")]
    Line {
        /// The file, in backticks, or another name of what is read.
        input: String,
        /// The number of the line, counting from 1.
        line: usize,
        /// The field and the problem.
        problem: FieldProblem,
    },
    /// A record is malformed.
    #[error("`{file}`{} (`{asin}`): {problem}", record.map(|number| format!(", record {number}")).unwrap_or_default())]
    Record {
        /// The file; its name in the original if the data was not read from a file.
        file: String,
        /// The record's place in its file, counting from 1; `None` if the data was not read from a file.
        record: Option<NonZero<usize>>,
        /// The ASIN of the product, or `?`.
        asin: String,
        /// The field and the problem.
        problem: FieldProblem,
    },
}

/// A field that is missing or has an invalid value.
#[derive(Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// The field's path in the record, such as `customization_options.color[0].value`; empty for the record.
    pub field: String,
    /// The problem.
    pub problem: String,
}

impl FieldProblem {
    pub(crate) fn new(field: &str, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.problem),
            field => write!(f, "field `{field}`: {}", self.problem),
        }
    }
}

impl std::error::Error for FieldProblem {}
