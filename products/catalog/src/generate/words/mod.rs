//! The words that generated shops are made of.
//!
//! A [`Department`] sells [`Kind`]s of products. A kind draws its traits from three [`Pool`]s (what
//! a product is, has, and is for) and its choices from [`Group`]s; both are shared between kinds, so
//! that no word belongs to one product alone. Everything is plain data, in lower case.
//!
//! Traits that can meet in one product are spelled so that the fuzzy comparison of rewards tells them apart.
//! Values of a group are not: as in the original's shop, `small` and `small wide` count as equal.

mod beauty;
mod electronics;
mod fashion;
mod garden;
mod grocery;
mod options;
pub(super) mod prose;
mod tastes;

/// How a trait joins a noun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// "waterproof boots"; "boots that are waterproof".
    Is,
    /// "boots with rubber sole".
    Has,
    /// "boots for cold weather".
    For,
}

/// Traits of one form that can take each other's place.
#[derive(Debug)]
pub(super) struct Pool {
    pub form: Form,
    /// What a product has is a square, row by row, of one make per row and one part per column: members of a
    /// family have the same part in different makes ("rubber sole" and "mesh sole").
    pub texts: &'static [&'static str],
}

/// One thing to choose and how customers speak of it.
#[derive(Debug)]
pub(super) struct Group {
    pub name: &'static str,
    /// The plain values.
    pub heads: &'static [&'static str],
    /// Values made of a head `{}`, another head `{+}` and a number `{n}`.
    pub forms: &'static [&'static str],
    /// Whether sellers list the values in the order of their heads, as sizes from small to large.
    pub is_ordered: bool,
    /// Ways to ask for the value `{}`.
    pub phrases: &'static [&'static str],
}

/// One kind of product.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// The query: its name in instructions.
    pub query: &'static str,
    /// The part of the department.
    pub section: &'static str,
    /// Least and greatest usual price in dollars.
    pub dollars: (i64, i64),
    /// Whom it is made for; empty when it does not matter.
    pub audiences: &'static [&'static str],
    /// Materials or flavors.
    pub materials: &'static [&'static str],
    /// The three pools: is, has, for.
    pub pools: [&'static Pool; 3],
    /// The options; a product has up to three of them.
    pub groups: &'static [&'static Group],
    /// Ends of titles that tell an amount or a count.
    pub tails: &'static [&'static str],
}

/// A part of the shop.
#[derive(Debug)]
pub(super) struct Department {
    /// As the file's `category` has it.
    pub name: &'static str,
    /// The first step of its products' paths.
    pub root: &'static str,
    pub kinds: &'static [Kind],
    /// The use of its products; the end of a sentence.
    pub uses: &'static [&'static str],
    /// Sentences that fit every product of it.
    pub remarks: &'static [&'static str],
}

/// The five departments of the original.
pub(super) static DEPARTMENTS: [&Department; 5] =
    [&beauty::BEAUTY, &electronics::ELECTRONICS, &garden::GARDEN, &fashion::FASHION, &grocery::GROCERY];
