//! `webshop rollout --site`: runs episodes at a WebShop web site and prints their statistics.
//!
//! The episodes are not recorded: the site's catalog and goals are unknown here, so no replay is possible.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::ValueEnum;
use webshop_agent::SiteEpisode;
use webshop_agent::{NamedOptionsPolicy, PagePolicy, RandomPolicy, RulePolicy};
use webshop_evaluation::summarize_at_site;
use webshop_products::Seed;
use webshop_remote::{RemoteError, Site, SiteConfig, run_at_site};

use crate::args::episodes::{EpisodesArgs, PolicyName};
use crate::progress::observer;
use crate::result_file::{RolloutResult, SiteInfo};

/// Longest wait for a page. The original loads its whole catalog on the first request, which takes minutes.
const PAGE_TIMEOUT: Duration = Duration::from_secs(300);

/// Runs the episodes; refuses a policy that needs more than the text of pages.
pub(crate) fn run(address: &str, policy: PolicyName, args: &EpisodesArgs) -> anyhow::Result<ExitCode> {
    let site = Site::parse(address)?;
    let problem = match policy {
        PolicyName::Random => return run_policy(&site, &RandomPolicy::new(Seed(args.seed)), args),
        PolicyName::Rule => return run_policy(&site, &RulePolicy, args),
        PolicyName::NamedOptions => return run_policy(&site, &NamedOptionsPolicy, args),
        PolicyName::NamedPairs
        | PolicyName::NamedFeatures
        | PolicyName::StatedOptions
        | PolicyName::BrowsingExpert => "it reads titles and prices, which a site does not mark as such",
        PolicyName::Oracle | PolicyName::Expert => "it reads the hidden goal, which a site does not send",
        PolicyName::Lm | PolicyName::Remote => "it needs a shop of this program, not the pages of a site",
        PolicyName::LongestTitle
        | PolicyName::AllOptions
        | PolicyName::QueryStuffing
        | PolicyName::RepeatForever => "it checks the rewards of this program's shop",
    };
    let name = policy.to_possible_value().expect("no policy is hidden");
    bail!(
        "the policy `{}` cannot run at a site: {problem}; use `rule`, `named-options` or `random`",
        name.get_name()
    )
}

#[expect(clippy::disallowed_methods, reason = "the result states the duration")]
fn run_policy<P>(site: &Site, policy: &P, args: &EpisodesArgs) -> anyhow::Result<ExitCode>
where
    P: PagePolicy + Clone + Send + Sync + 'static,
{
    if args.tasks.episodes == 0 {
        bail!("there is no episode to run: `--episodes` is 0");
    }
    let config = SiteConfig {
        n_sessions: args.tasks.episodes,
        max_steps: args.max_steps(),
        page_timeout: PAGE_TIMEOUT,
    };
    let start = std::time::Instant::now();
    let observer = observer();
    observer.begin(policy.name(), args.tasks.episodes as u64, 0);
    let outcomes = run_at_site(site, policy, config, &mut |n| observer.advance(n as u64, ""));
    observer.end();
    let outcomes = outcomes?;
    let failure = failure(&outcomes);
    let episodes: Vec<SiteEpisode> = outcomes.into_iter().flatten().collect();
    let result = RolloutResult {
        policy: policy.name().into(),
        seed: args.seed,
        max_steps: Some(args.max_steps()),
        summary: summarize_at_site(&episodes),
        split: None,
        shard: None,
        split_rule: None,
        leak: None,
        goal_fingerprint: None,
        site: Some(SiteInfo {
            url: site.url().into(),
            failed_sessions: args.tasks.episodes - episodes.len(),
            not_comparable: "the goals and rules of a site are unknown".into(),
        }),
        remote: None,
        fingerprint: None,
        seconds: Some(start.elapsed().as_secs_f64()),
        baselines: Vec::new(),
    };
    if !episodes.is_empty() {
        result.print(args.json)?;
    }
    failure.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// An error if sessions failed: how many, and why the first did.
fn failure(outcomes: &[Result<SiteEpisode, RemoteError>]) -> Option<anyhow::Error> {
    let (n, n_failed) = (outcomes.len(), outcomes.iter().filter(|outcome| outcome.is_err()).count());
    let first = outcomes.iter().find_map(|outcome| outcome.as_ref().err())?;
    // The original fails in every session whose number is beyond its last goal.
    let n_last = outcomes.iter().rev().take_while(|outcome| outcome.is_err()).count();
    let hint = if n_last == n_failed { "; if the site has fewer goals, lower `--episodes`" } else { "" };
    Some(anyhow!("{n_failed} of {n} sessions failed and are left out; the first: {first}{hint}"))
}
