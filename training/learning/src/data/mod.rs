//! data.

pub mod copy_tasks;
pub mod demonstrations;
pub mod recorded_steps;
pub mod single_steps;
pub mod task_set;
pub mod trajectory;
