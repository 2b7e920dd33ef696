//! Model servers with OpenAI's interface: `POST …/chat/completions`.

pub(crate) mod endpoint;

pub(crate) mod request;
mod response;

mod client;

pub(crate) mod episode;

pub(crate) mod policy;
pub(crate) mod resume;
pub(crate) mod single_step;
