//! Rollouts against model servers with OpenAI's interface and at WebShop web sites.
//!
//! A [`RemotePolicy`] runs episodes with a model on a server, a [`RemoteSingleStepSampler`] completes
//! single-step prompts there, and [`run_at_site`] runs a policy at a web site. All of them run many requests
//! at once and return results in a fixed order.

#![forbid(unsafe_code)]

mod address;
mod connection;
mod error;

mod openai;

mod site;

pub use error::RemoteError;
pub use openai::endpoint::Endpoint;
pub use openai::episode::{FailedEpisode, REMOTE, RemoteConfig};
pub use openai::policy::RemotePolicy;
pub use openai::request::{RequestConfig, Retries};
pub use openai::resume::{ResumedEpisodes, resume_file};
pub use openai::single_step::RemoteSingleStepSampler;
pub use site::{Site, SiteConfig, run_at_site};
