//! The original's three data files.
//!
//! [`RawData`] holds the products ([`RawItem`]), the synthetic instructions ([`RawInstruction`]) and the
//! human ones ([`RawHumanInstruction`]), each with the fields that the shop uses. The original program can
//! load what [`RawData::write_dir`] writes, and this crate loads the original's files.
//!
//! Nothing is interpreted here: prices are text, option names keep their case. [`crate::Catalog`] and
//! [`crate::GoalSet`] interpret them.

mod files;
mod open;
mod record;
mod records;
mod skipped;
mod splitter;
mod writing;

pub(crate) use files::{RawRecord, digest_files, read_files};
pub use open::open_text;
pub(crate) use skipped::BadRecords;
pub use skipped::Skipped;
pub(crate) use writing::DirWriter;

use std::io;
use std::path::Path;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::error::DataError;

/// Beginnings of the names of the three files.
const ITEMS: &str = "items_shuffle";
const INSTRUCTIONS: &str = "items_ins_v2";
const HUMAN: &str = "items_human_ins";

/// Adds the failed action and the path to an I/O error.
fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DataError {
    let path = path.to_owned();
    move |source| DataError::Io { action, path, source }
}

/// A catalog and its instructions, as the original's files hold them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawData {
    /// `items_shuffle*.json`: products in catalog order.
    pub items: Vec<RawItem>,
    /// `items_ins_v2*.json`: by ASIN.
    pub instructions: IndexMap<String, RawInstruction>,
    /// `items_human_ins.json`: by ASIN.
    pub human: IndexMap<String, Vec<RawHumanInstruction>>,
}

/// One product of `items_shuffle*.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawItem {
    /// Key; a record with the ASIN `nan` or with more than ten characters is skipped.
    pub asin: String,
    /// The title, possibly empty.
    pub name: String,
    /// `"$34.99"`, `"$19.99$27.99"`, or empty. Absent and falsy values read as empty.
    #[serde(default, deserialize_with = "record::text_or_falsy")]
    pub pricing: String,
    /// The department.
    pub category: String,
    /// The search query that found it, which names the kind of product.
    pub query: String,
    /// The category path.
    pub product_category: String,
    /// The bullets; a single text reads as a list of one.
    #[serde(deserialize_with = "record::texts_or_text")]
    pub small_description: Vec<String>,
    /// The description.
    pub full_description: String,
    /// Option names with their values; `None` where the original's scraper found none. Falsy values read as
    /// an empty map.
    #[serde(deserialize_with = "record::options")]
    pub customization_options: IndexMap<String, Option<Vec<RawOption>>>,
    /// Image URLs, the main one first; never empty.
    #[serde(deserialize_with = "record::images")]
    pub images: Vec<String>,
}

/// One value of an option.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawOption {
    /// As the seller wrote it.
    pub value: String,
    /// The URL of its image.
    #[serde(default, deserialize_with = "record::text_or_none", skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// One entry of `items_ins_v2*.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RawInstruction {
    /// The product's attributes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Vec<String>>,
    /// A synthetic instruction, without options and price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// The attributes that the instruction requires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction_attributes: Option<Vec<String>>,
}

/// One entry of `items_human_ins.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawHumanInstruction {
    /// The text that the person wrote.
    pub instruction: String,
    /// The required attributes; an entry without any makes no goal.
    pub instruction_attributes: Vec<String>,
    /// The required option values.
    pub instruction_options: Vec<String>,
}
