//! The original's three files, as they are.
//!
//! [`RawData`] holds the products ([`RawItem`]), the synthetic instructions ([`RawInstruction`])
//! and the human ones ([`RawHumanInstruction`]), each with the fields the shop uses and no others.
//! The original program loads what [`RawData::write_dir`] wrote, and we load its files.
//!
//! Nothing is interpreted here: prices are text, option names keep their case. Meaning begins in
//! [`crate::Catalog`] and [`crate::GoalSet`].

mod files;
mod record;
mod skipped;
mod writing;

pub use files::open_text;
pub(crate) use files::{RawRecord, read_files};
pub(crate) use skipped::BadRecords;
pub use skipped::Skipped;
pub(crate) use writing::DirWriter;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
#[serde(try_from = "Value")]
pub struct RawItem {
    /// Key; a record called `nan`, or longer than ten characters, is skipped.
    pub asin: String,
    /// The title, possibly empty.
    pub name: String,
    /// `"$34.99"`, `"$19.99$27.99"`, or empty; null and absence read as empty.
    pub pricing: String,
    /// The department.
    pub category: String,
    /// The kind of product.
    pub query: String,
    /// The path in the shop's tree.
    pub product_category: String,
    /// The bullets; a lone text reads as a list of one.
    pub small_description: Vec<String>,
    /// The description.
    pub full_description: String,
    /// Option name to its values, null where the original scraped none; anything falsy reads as
    /// an empty map.
    pub customization_options: IndexMap<String, Option<Vec<RawOption>>>,
    /// Picture addresses, the main one first; never empty.
    pub images: Vec<String>,
}

/// One value of an option.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct RawOption {
    /// As the seller wrote it.
    pub value: String,
    /// A picture for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// One entry of `items_ins_v2*.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct RawInstruction {
    /// The product's attributes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Vec<String>>,
    /// A synthetic instruction, without options and price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// What that instruction wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction_attributes: Option<Vec<String>>,
}

/// One entry of `items_human_ins.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct RawHumanInstruction {
    /// What the person wrote.
    pub instruction: String,
    /// The attributes they had in mind; an entry without any makes no goal.
    pub instruction_attributes: Vec<String>,
    /// The option values they had in mind.
    pub instruction_options: Vec<String>,
}
