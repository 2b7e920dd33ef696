//! The original WebShop: its rules, its traces, and where the shop deviates from it.

pub(crate) mod compat;
pub(crate) mod deviations;
pub(crate) mod trace;
