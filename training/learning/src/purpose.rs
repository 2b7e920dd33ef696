//! The purposes for which this crate draws random numbers. The tags are part of every draw's key.

use webshop_products::Purpose;

/// Random words of a copy task.
pub(crate) const COPY_TASK: Purpose = Purpose::new("exercise");
/// Task, expert and choices of a demonstration.
pub(crate) const DEMONSTRATION: Purpose = Purpose::new("demonstration");
/// Task and choices of a demonstration that the model begins.
pub(crate) const DAGGER: Purpose = Purpose::new("dagger");
/// The goals and choices of few-shot examples.
pub(crate) const FEW_SHOT: Purpose = Purpose::new("few-shot");
/// The goals of an evaluation.
pub(crate) const EVALUATION: Purpose = Purpose::new("evaluation");
/// The products of an auxiliary shop.
pub(crate) const RESAMPLED_SHOP: Purpose = Purpose::new("resampled-shop");
/// The words of an auxiliary shop.
pub(crate) const PERMUTED_WORDS: Purpose = Purpose::new("permuted-words");
/// The training goals of each product of a shop.
pub(crate) const GOALS_OF_PRODUCT: Purpose = Purpose::new("goals-of-product");
/// The pool of training goals, and its order in each epoch.
pub(crate) const GOAL_SAMPLING: Purpose = Purpose::new("goal-sampling");
/// The episodes that a tokenizer is trained on.
pub(crate) const TOKENIZER: Purpose = Purpose::new("tokenizer");
/// Examples of single-step training. `webshop_agent::next_action` draws with the same tag; its first coordinates are 0 and 1,
/// those of this crate 2 and 3.
pub(crate) const STEPS: Purpose = Purpose::new("steps");
