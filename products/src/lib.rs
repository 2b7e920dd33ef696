//! What is sold in the shop and what its customers want.
//!
//! [`RawData`] is the original's three JSON files, read from disk, embedded, or made by
//! [`generate()`]; a [`Stock`] opens those of any size. A [`Catalog`] is the products in them, cleaned and ordered; a [`GoalSet`] is the
//! wishes, each a [`Goal`] with the criteria that its purchase is judged by. Every random choice
//! follows from a [`Seed`].
//!
//! ```
//! use webshop_products::{Catalog, EmbeddedCatalog, GoalKind, GoalSet, RawData, Seed, Split};
//!
//! let data = RawData::embedded(EmbeddedCatalog::Hundred);
//! let catalog = Catalog::from_raw(&data, Seed(0))?;
//! let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0))?;
//! assert_eq!(catalog.len(), 100);
//! assert!(goals.split(Split::Test).len() >= 300);
//! # Ok::<(), webshop_products::DataError>(())
//! ```
//!
//! This crate knows no page, no search and no clock.

mod seed;

mod price;
mod product;
mod raw;

mod catalog;
mod fingerprint;
mod goal;
mod limit;
mod split;
mod split_rule;

mod goal_record;
mod original;

mod embedded;
mod stock;

mod generate;
mod report;

mod error;
mod python;
mod python_random;
mod texts;

pub use catalog::Catalog;
pub use embedded::EmbeddedCatalog;
pub use error::{DataError, FieldProblem};
pub use fingerprint::GoalDigests;
pub use generate::{generate, write_generated};
pub use goal::{Goal, GoalId, GoalKind, GoalSet, GoalStyle, WantedOption};
pub use goal_record::{GoalRecord, RecordedOptions};
pub use original::{GoalDraw, OriginalWorld};
pub use price::{Cents, Price};
pub use product::{OptionGroup, OptionValue, Product, ProductId, ProductIdx, Selection};
pub use python_random::PythonRandom;
pub use raw::{RawData, RawHumanInstruction, RawInstruction, RawItem, RawOption, Skipped, open_text};
pub use report::CatalogReport;
pub use seed::{Purpose, Seed};
pub use split::{Split, UnknownSplit};
pub use split_rule::{SplitRule, UnknownSplitRule};
pub use stock::{Stock, StockConfig};
