//! The original WebShop's catalog and goals, with every number that it draws.

pub(crate) mod goal_record;
pub(crate) mod world;
