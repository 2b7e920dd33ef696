//! Training data: tasks, demonstrations, copy tasks, examples, and trajectories of token ids.

pub(crate) mod copy_tasks;
pub(crate) mod curriculum;
pub(crate) mod dagger;
pub(crate) mod demonstrations;
pub(crate) mod few_shot;
pub(crate) mod generated_shops;
pub(crate) mod held_out;
pub(crate) mod layout_demonstrations;
pub(crate) mod permuted_words;
pub(crate) mod recorded_steps;
pub(crate) mod resampled_shops;
pub(crate) mod sampling;
pub(crate) mod single_steps;
pub(crate) mod step_format;
pub(crate) mod task_set;
pub(crate) mod trajectory;
