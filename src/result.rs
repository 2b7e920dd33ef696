//! What a rollout or an evaluation came to, as `--json` prints it and `webshop compare` reads it.

use serde::{Deserialize, Serialize};
use webshop_agent::{FailedTrip, PromptStamp, Sampling};
use webshop_env::ShopFingerprint;
use webshop_products::{Split, SplitRule};
use webshop_training::{Failures, Summary};

use crate::answer::answer;

/// One measurement, and what it is about.
#[derive(Serialize, Deserialize)]
pub struct Measurement {
    /// Who shopped.
    pub policy: String,
    /// The root of the policy's randomness.
    pub seed: u64,
    /// The figures.
    #[serde(flatten)]
    pub summary: Summary,
    /// The part of the goals that was tried; unknown of results of earlier versions, as are the next two.
    #[serde(default)]
    pub split: Option<Split>,
    /// The rule by which goals were parted.
    #[serde(default)]
    pub splits: Option<SplitRule>,
    /// What the rule lets leak; present only where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leak: Option<String>,
    /// Over catalog, prices, goals and splits; unknown of a site's.
    pub goal_fingerprint: Option<String>,
    /// Where it was measured, if not in a shop of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteVisit>,
    /// What was asked, if a server's model shopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<ModelVisit>,
    /// All that the figures depend on beside the policy, part by part.
    #[serde(default)]
    pub fingerprint: Option<ShopFingerprint>,
    /// How long it took.
    pub seconds: f64,
}

/// A measurement at somebody else's shop.
#[derive(Serialize, Deserialize)]
pub struct SiteVisit {
    /// The address below which its sessions lie.
    pub url: String,
    /// Sessions that failed and are left out of all figures.
    pub failed_sessions: usize,
    /// Why there is no fingerprint.
    pub not_comparable: String,
}

/// A measurement of a model behind a server.
#[derive(Serialize, Deserialize)]
pub struct ModelVisit {
    /// Where requests went.
    pub url: String,
    /// The name by which the server knows the model.
    pub model: String,
    /// In what words it was spoken to.
    pub prompt_version: String,
    /// How its answers were drawn.
    pub sampling: Option<Sampling>,
    /// Trips that failed and are left out of all figures.
    pub failed: usize,
    /// Those trips.
    pub failures: Vec<FailedTrip>,
}

impl ModelVisit {
    /// At `url`, speaking as `prompt` says, with these failures.
    pub fn new(url: String, prompt: PromptStamp, failures: Vec<FailedTrip>) -> Self {
        Self {
            url,
            model: prompt.model.map(|name| name.to_string()).unwrap_or_default(),
            prompt_version: prompt.version.to_string(),
            sampling: prompt.sampling,
            failed: failures.len(),
            failures,
        }
    }
}

impl Measurement {
    /// Prints it, for a program or for a person.
    pub fn tell(&self, as_json: bool) -> anyhow::Result<()> {
        if as_json { answer!("{}", serde_json::to_string(self)?) } else { self.print() }
    }

    fn print(&self) -> anyhow::Result<()> {
        let failures = &self.summary.failures;
        answer!("{}: {}", self.policy, self.summary)?;
        answer!("turns               {:.2}", self.summary.mean_turns)?;
        answer!("inadmissible        {:.2} %", 100.0 * self.summary.inadmissible_rate)?;
        if let Some(site) = &self.site {
            let Failures { never_bought, unexplained, .. } = failures;
            answer!("failures            {never_bought} never bought, {unexplained} paid less than 1")?;
            answer!("site                {}", site.url)?;
            answer!("failed sessions     {}", site.failed_sessions)?;
            answer!("goals               unknown: {}", site.not_comparable)?;
            return answer!("seconds             {:.1}", self.seconds);
        }
        answer!(
            "failures            {} never bought, {} wrong product, {} missing option, {} over price",
            failures.never_bought,
            failures.wrong_product,
            failures.missing_option,
            failures.over_price
        )?;
        if let Some(remote) = &self.remote {
            answer!("model               {} at {}", remote.model, remote.url)?;
            answer!("failed trips        {}", remote.failed)?;
        }
        answer!("split               {}", self.part())?;
        if let Some(leak) = &self.leak {
            answer!("leaky               {leak}")?;
        }
        if let Some(ShopFingerprint { environment, rewards, .. }) = &self.fingerprint {
            answer!("rules               {environment}, {rewards}")?;
        }
        answer!("goals               {}", self.goals())?;
        answer!("seconds             {:.1}", self.seconds)
    }

    /// The fingerprint of the goals.
    pub fn goals(&self) -> &str {
        self.goal_fingerprint.as_deref().unwrap_or("unknown")
    }

    /// The part of the goals that was tried, and who made it.
    pub fn part(&self) -> String {
        match (self.split, self.splits) {
            (Some(split), Some(rule)) => format!("{split} ({rule})"),
            _ => "unknown".into(),
        }
    }
}
