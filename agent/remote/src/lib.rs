//! webshop_remote.

pub mod connection;
pub mod error;
pub mod openai;
pub mod site;

pub use crate::error::RemoteError;
pub use crate::openai::request::{RequestConfig, Retries};
pub use crate::openai::policy::{Endpoint, FailedEpisode, RemoteConfig, RemotePolicy};
pub use crate::openai::single_step::RemoteSingleStepSampler;
pub use crate::site::{Site, SiteConfig, shop_at};
pub use crate::openai::resume::{Kept, resume_file};
