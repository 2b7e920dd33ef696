//! webshop_remote.

pub mod connection;
pub mod error;
pub mod openai;
pub mod site;

pub use crate::error::RemoteError;
pub use crate::openai::request::{AskConfig, Retries};
pub use crate::openai::policy::{Endpoint, FailedTrip, RemoteConfig, RemotePolicy};
pub use crate::openai::single_step::RemoteInterviewer;
pub use crate::site::{Site, SiteConfig, shop_at};
pub use crate::openai::resume::{Kept, resume_file};
