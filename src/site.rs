//! `webshop rollout --site`: a policy shops at a running site, and its trips are summed up.
//!
//! A trip is not recorded, as nobody could make it again: what the site would answer then is not known here.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::ValueEnum;
use webshop_agent::{AgentError, PagePolicy, RandomPolicy, RulePolicy, Site, SiteConfig, SiteTrip, shop_at};
use webshop_products::Seed;
use webshop_training::summarize_at_site;

use crate::progress::observer;
use crate::result::{Measurement, SiteVisit};
use crate::rollout::{PlayFlags, PolicyName};

/// The original takes minutes to load its whole catalog, which it does on the first request.
const PATIENCE: Duration = Duration::from_secs(300);

/// Shops, if the policy can do so by what pages show.
pub fn run(address: &str, policy: PolicyName, flags: &PlayFlags) -> anyhow::Result<ExitCode> {
    let site = Site::parse(address)?;
    let lacks = match policy {
        PolicyName::Random => return play(&site, &RandomPolicy::new(Seed(flags.seed)), flags),
        PolicyName::Rule => return play(&site, &RulePolicy, flags),
        PolicyName::Oracle => "it knows hidden goals, which no site tells",
        PolicyName::Lm => "it reads products and prices of our own shop, not the pages of a site",
        PolicyName::Remote => "it reads the pages of our own shop",
        _ => "it tries what our own shop pays",
    };
    let name = policy.to_possible_value().expect("no policy is hidden");
    bail!("the policy `{}` cannot shop at a site: {lacks}; `rule` and `random` can", name.get_name())
}

#[expect(clippy::disallowed_methods, reason = "the answer says how long it took")]
fn play<P>(site: &Site, policy: &P, flags: &PlayFlags) -> anyhow::Result<ExitCode>
where
    P: PagePolicy + Clone + Send + Sync + 'static,
{
    if flags.episodes == 0 {
        bail!("nothing to do: `--episodes` is 0");
    }
    let config = SiteConfig { n_sessions: flags.episodes, max_steps: flags.max_steps, patience: PATIENCE };
    let began = std::time::Instant::now();
    let observer = observer();
    observer.begin(policy.name(), flags.episodes as u64, 0);
    let outcomes = shop_at(site, policy, config, &mut |n| observer.advance(n as u64, ""));
    observer.end();
    let outcomes = outcomes?;
    let failure = failure(&outcomes);
    let trips: Vec<SiteTrip> = outcomes.into_iter().flatten().collect();
    let measurement = Measurement {
        policy: policy.name().into(),
        seed: flags.seed,
        summary: summarize_at_site(&trips),
        split: None,
        splits: None,
        leak: None,
        goal_fingerprint: None,
        site: Some(SiteVisit {
            url: site.url().into(),
            failed_sessions: flags.episodes - trips.len(),
            not_comparable: "a site does not tell its goals and rules".into(),
        }),
        remote: None,
        fingerprint: None,
        seconds: began.elapsed().as_secs_f64(),
    };
    if !trips.is_empty() {
        measurement.tell(flags.json)?;
    }
    failure.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// What is to be said of sessions that failed, the first of them in its own words.
fn failure(outcomes: &[Result<SiteTrip, AgentError>]) -> Option<anyhow::Error> {
    let (n, n_failed) = (outcomes.len(), outcomes.iter().filter(|outcome| outcome.is_err()).count());
    let first = outcomes.iter().find_map(|outcome| outcome.as_ref().err())?;
    // The original fails so in sessions beyond its goals.
    let n_last = outcomes.iter().rev().take_while(|outcome| outcome.is_err()).count();
    let hint =
        if n_last == n_failed { "; if the site has fewer goals, ask for fewer `--episodes`" } else { "" };
    Some(anyhow!("{n_failed} of {n} sessions failed and are left out; the first: {first}{hint}"))
}
