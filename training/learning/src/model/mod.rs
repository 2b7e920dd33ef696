//! model.

pub mod gradient;
pub mod kl;
pub mod learner_state;
pub mod load;
pub mod network;
pub mod policy;
