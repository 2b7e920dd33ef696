//! The products and goals of the shop.
//!
//! [`RawData`] is the original's three JSON files: read from disk, embedded, or made by [`generate()`]. A
//! [`CatalogSource`] opens catalogs of any size. A [`Catalog`] is the cleaned and ordered products, a
//! [`GoalSet`] the goals, each a [`Goal`] with the criteria of its reward. Every random choice follows from a
//! [`Seed`].
//!
//! ```
//! use webshop_products::{Catalog, EmbeddedCatalog, GoalKind, GoalSet, RawData, Seed, Split};
//!
//! let data = RawData::embedded(EmbeddedCatalog::Hundred);
//! let catalog = Catalog::from_raw(&data, Seed(0))?;
//! let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0))?;
//! assert_eq!(catalog.len(), 100);
//! assert!(goals.split(Split::Test).len() >= 150);
//! # Ok::<(), webshop_products::DataError>(())
//! ```
//!
//! This crate has no pages, no search and no clock.

#![forbid(unsafe_code)]

mod atomic;
mod cache;
mod digest;
mod error;
mod fields;
mod interned;
mod json_lines;
mod seed;

mod raw;

mod catalog;
mod goal;
mod original;

mod generate;

pub use atomic::{PARTIAL, atomically, write_atomically};
pub use cache::{BlockWriter, CacheFile, user_cache};
pub use catalog::Catalog;
pub use catalog::embedded::EmbeddedCatalog;
pub use catalog::price::{Cents, Price};
pub use catalog::product::{OptionGroup, OptionValue, Product, ProductId, ProductIdx, Selection};
pub use catalog::report::CatalogReport;
pub use catalog::source::CatalogSource;
pub use catalog::source_config::SourceConfig;
pub use catalog::statistics::{CatalogStatistics, Spread};
pub use digest::{Digest, InvalidDigest, hex};
pub use error::{DataError, FieldProblem, NoSuchGoal};
pub use fields::{line_problem, read_fields};
pub use generate::{generate, write_generated};
pub use goal::families::family_members;
pub use goal::fingerprint::GoalDigests;
pub use goal::set::GoalSet;
pub use goal::split::{Split, UnknownSplit};
pub use goal::split_rule::{SplitRule, UnknownSplitRule};
pub use goal::{Goal, GoalId, GoalKind, GoalStyle, WantedOption};
pub use json_lines::{json_lines, read_json_lines};
pub use original::goal_record::{GoalRecord, RecordedOptions};
pub use original::world::{GoalDraw, OriginalWorld};
pub use raw::{RawData, RawHumanInstruction, RawInstruction, RawItem, RawOption, Skipped, open_text};
pub use seed::{Purpose, Seed};
