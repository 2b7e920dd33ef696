//! The result of a rollout or an evaluation: printed by `--json`, read by `webshop compare`.

use serde::{Deserialize, Serialize};
use webshop_agent::{PromptProvenance, Sampling};
use webshop_env::ShopFingerprint;
use webshop_evaluation::{Baseline, Failures, Summary, baselines_table, by_product_table};
use webshop_products::{Split, SplitRule};
use webshop_remote::FailedEpisode;

use crate::output::outln;

/// Statistics over episodes, and everything they depend on.
#[derive(Serialize, Deserialize)]
pub(crate) struct RolloutResult {
    /// Name of the policy.
    pub(crate) policy: String,
    /// Seed of the policy's random draws.
    pub(crate) seed: u64,
    /// Actions after which an episode was truncated; absent in files of version 0.1.0.
    #[serde(default)]
    pub(crate) max_steps: Option<u32>,
    /// The statistics.
    #[serde(flatten)]
    pub(crate) summary: Summary,
    /// Split that the goals were taken from; absent for a site.
    #[serde(default)]
    pub(crate) split: Option<Split>,
    /// The part of these goals, such as `1/4`; absent for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shard: Option<String>,
    /// Rule that divided the goals into splits; absent for a site.
    #[serde(default)]
    pub(crate) split_rule: Option<SplitRule>,
    /// Overlap of training and test goals; present only if the split rule allows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) leak: Option<String>,
    /// Digest of catalog, prices, goals and splits; absent for a site.
    pub(crate) goal_fingerprint: Option<String>,
    /// The web site, for `--site`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) site: Option<SiteInfo>,
    /// The model behind a server, for the policy `remote`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remote: Option<RemoteInfo>,
    /// Digests of everything else that the statistics depend on, part by part; absent for a site.
    #[serde(default)]
    pub(crate) fingerprint: Option<ShopFingerprint>,
    /// Duration of the episodes; absent if they were recorded before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<f64>,
    /// Policies without a model on the same goals; only of `eval`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) baselines: Vec<Baseline>,
}

/// A web site at which episodes ran.
#[derive(Serialize, Deserialize)]
pub(crate) struct SiteInfo {
    /// Base address of its sessions.
    pub(crate) url: String,
    /// Number of sessions that failed and are left out of the statistics.
    pub(crate) failed_sessions: usize,
    /// Why the result has no fingerprint.
    pub(crate) not_comparable: String,
}

/// A model behind a server.
#[derive(Serialize, Deserialize)]
pub(crate) struct RemoteInfo {
    /// Address of the server.
    pub(crate) url: String,
    /// Name of the model at the server.
    pub(crate) model: String,
    /// Version of the prompt format.
    pub(crate) prompt_version: String,
    /// Sampling parameters of the requests.
    pub(crate) sampling: Option<Sampling>,
    /// Number of episodes that failed and are left out of the statistics.
    pub(crate) failed_episodes: usize,
    /// The failed episodes.
    pub(crate) failures: Vec<FailedEpisode>,
}

impl RemoteInfo {
    /// From the address, the prompt and sampling parameters, and the failed episodes.
    pub(crate) fn new(url: String, prompt: PromptProvenance, failures: Vec<FailedEpisode>) -> Self {
        Self {
            url,
            model: prompt.model.map(|name| name.to_string()).unwrap_or_default(),
            prompt_version: prompt.version.to_string(),
            sampling: prompt.sampling,
            failed_episodes: failures.len(),
            failures,
        }
    }
}

impl RolloutResult {
    /// Prints one JSON object, or text.
    pub(crate) fn print(&self, as_json: bool) -> anyhow::Result<()> {
        if as_json { outln!("{}", serde_json::to_string(self)?) } else { self.print_text() }
    }

    fn print_text(&self) -> anyhow::Result<()> {
        let failures = &self.summary.failures;
        outln!("{}: {}", self.policy, self.summary)?;
        outln!("turns               {:.2}", self.summary.mean_turns)?;
        outln!("inadmissible        {:.2} %", 100.0 * self.summary.inadmissible_rate)?;
        if let Some(site) = &self.site {
            let Failures { never_bought, unexplained, .. } = failures;
            outln!("failures            {never_bought} never bought, {unexplained} reward below 1")?;
            outln!("site                {}", site.url)?;
            outln!("failed sessions     {}", site.failed_sessions)?;
            outln!("goals               unknown")?;
            return self.print_seconds();
        }
        outln!(
            "failures            {} never bought, {} wrong product, {} missing option, {} over price",
            failures.never_bought,
            failures.wrong_product,
            failures.missing_option,
            failures.over_price
        )?;
        if let Some(remote) = &self.remote {
            outln!("model               {} at {}", remote.model, remote.url)?;
            outln!("failed episodes     {}", remote.failed_episodes)?;
        }
        outln!("split               {}", self.split_name())?;
        if let Some(leak) = &self.leak {
            outln!("split leak          {leak}")?;
        }
        if let Some(ShopFingerprint { environment, rewards, .. }) = &self.fingerprint {
            outln!("rules               {environment}, {rewards}")?;
        }
        outln!("goals               {}", self.goals())?;
        self.print_seconds()?;
        if self.baselines.is_empty() {
            return Ok(());
        }
        let evaluated = [(&*self.policy, &self.summary)];
        outln!("\non the same goals:\n{}", baselines_table(&evaluated, &self.baselines).text())?;
        let by_product = by_product_table(&evaluated, &self.baselines);
        outln!("with every product counting the same:\n{}", by_product.text().trim_end())
    }

    fn print_seconds(&self) -> anyhow::Result<()> {
        self.seconds.map_or(Ok(()), |seconds| outln!("seconds             {seconds:.1}"))
    }

    /// The fingerprint of the goals, or `unknown`.
    pub(crate) fn goals(&self) -> &str {
        self.goal_fingerprint.as_deref().unwrap_or("unknown")
    }

    /// The split and its rule, or `unknown`.
    pub(crate) fn split_name(&self) -> String {
        match (self.split, self.split_rule) {
            (Some(split), Some(rule)) => format!("{split} ({rule})"),
            _ => "unknown".into(),
        }
    }
}
