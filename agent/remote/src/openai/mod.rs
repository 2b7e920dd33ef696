//! openai.

pub mod client;
pub mod episode;
pub mod policy;
pub mod request;
pub mod response;
pub mod resume;
pub mod single_step;
