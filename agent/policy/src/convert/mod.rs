//! Conversion between recorded episodes and chats in the formats of other trainers.
//!
//! An [`Exporter`] replays recorded episodes and writes them as lines of a [`ChatFileFormat`]. An [`Importer`] reads
//! such lines, takes their actions in the shop, and returns episodes. Lines whose pages or rewards differ
//! from the shop's are errors.
//!
//! | format | one line |
//! |---|---|
//! | `messages` | `{"custom_id", "messages": [{"role", "content"}], "tools"?, "metadata": {…}}`, as in OpenAI's API and RAGEN |
//! | `sharegpt` | `{"id", "conversations": [{"from": "human", "value"}], "meta": {…}}`, as in ETO |
//! | `agenttraj` | `{"item_id", "conversations": [{"from", "loss", "value"}]}`, as in AgentGym; `loss` is true for completions of the policy |
//!
//! An episode is one line in prompt formats with one growing chat, and one line per turn in the others
//! ([`crate::History`]); `agenttraj` holds whole episodes only. Tokens and log-probabilities are not exported.

mod chat;
mod export;
mod import;
mod line;

pub use self::chat::ChatFileFormat;
pub use self::export::{Exported, Exporter};
pub use self::import::Importer;
pub(crate) use self::line::turns;
