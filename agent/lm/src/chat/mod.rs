//! chat.

pub mod message;
pub mod template;
