//! The views of a page: text, marked-up text, HTML, address, and what can be clicked.

mod actions;
mod address;
mod html;
mod text;

pub use actions::AvailableActions;
pub(crate) use text::{SEPARATOR, rich_text, simple_text};
