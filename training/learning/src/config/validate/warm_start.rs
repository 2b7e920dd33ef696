//! The ranges of `[warm_start]`.

use super::{at_least_one, positive, require, share};
use crate::config::{Config, DemonstrationKind};
use crate::error::Result;

impl Config {
    pub(super) fn validate_warm_start(&self) -> Result<()> {
        let (copy_tasks, beside) = (self.warm_start.copy_task_steps, self.warm_start.copy_task_share);
        let is_new = !self.prompt.format.is_chat() || self.model.from.is_empty();
        let none = "0 for a chat model in `model.from`, which needs no copy tasks";
        require(is_new || copy_tasks == 0, "warm_start.copy_task_steps", copy_tasks, none)?;
        require(is_new || beside == 0.0, "warm_start.copy_task_share", beside, none)?;
        share("warm_start.copy_task_repeats", self.warm_start.copy_task_repeats)?;
        share("warm_start.copy_task_share", beside)?;
        let reads_pages = self.warm_start.page_weight != 0.0;
        let agent_only = "0 with `warm_start.page_weight`, since the pages of copy tasks are random";
        require(beside == 0.0 || !reads_pages, "warm_start.copy_task_share", beside, agent_only)?;
        share("warm_start.dagger_share", self.warm_start.dagger_share)?;
        let can_finish =
            !self.prompt.format.is_chat() && self.warm_start.demonstrations == DemonstrationKind::Browsing;
        let continued =
            "0, unless `prompt.format` is `compact` or `text` and `warm_start.demonstrations` is `browsing`";
        let dagger = self.warm_start.dagger_share;
        require(can_finish || dagger == 0.0, "warm_start.dagger_share", dagger, continued)?;
        at_least_one("warm_start.batch_episodes", self.warm_start.batch_episodes)?;
        positive("warm_start.lr", self.warm_start.lr)?;
        share("warm_start.by_pairs", self.warm_start.habits.by_pairs)?;
        share("warm_start.filtered_share", self.warm_start.filtered_share)?;
        share("warm_start.page_weight", self.warm_start.page_weight)?;
        share("warm_start.reading_task_share", self.warm_start.reading_task_share)?;
        share("warm_start.reads_features", self.warm_start.habits.reads_features)?;
        share("warm_start.rejects_at_random", self.warm_start.habits.rejects_at_random)?;
        share("warm_start.rejects_by_notes", self.warm_start.habits.rejects_by_notes)?;
        share("warm_start.thinking_share", self.warm_start.thinking_share)?;
        share("warm_start.rejection_share", self.warm_start.rejection_share)
    }
}
