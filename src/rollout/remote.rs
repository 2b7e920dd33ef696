//! `webshop rollout --policy remote`: runs episodes with a model behind a server, and records each as it
//! ends.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{anyhow, bail, ensure};
use webshop_agent::{AgentError, Episode, EpisodeFile, PromptFormat, Task};
use webshop_evaluation::summarize;
use webshop_remote::REMOTE;
use webshop_remote::{FailedEpisode, RemoteConfig, RemotePolicy};
use webshop_training::Observer;

use super::tasks::Tasks;
use crate::args::episodes::EpisodesArgs;
use crate::args::server::{ServerArgs, positive_seconds};
use crate::ctrl_c::stop_on_ctrl_c;
use crate::progress::observer;
use crate::result_file::{RemoteInfo, RolloutResult};

/// Flags of the policy `remote`.
#[derive(clap::Args)]
#[command(next_help_heading = "Models behind an OpenAI-compatible server")]
pub(crate) struct RemoteArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Seconds after which an episode fails, waiting for the server included
    #[arg(long, value_name = "S", default_value = "3600", value_parser = positive_seconds, requires = "base_url")]
    episode_timeout: Duration,
    /// Number of times a failed episode is restarted
    #[arg(long, value_name = "N", default_value_t = 1, requires = "base_url")]
    episode_retries: u32,
    /// Continue the file of `--out`: keep its episodes, run those that failed or are missing
    #[arg(long, requires_all = ["base_url", "out"])]
    pub(super) resume: bool,
}

impl RemoteArgs {
    /// The policy and the address of its server.
    fn policy(&self, args: &EpisodesArgs) -> anyhow::Result<(RemotePolicy, String)> {
        let generation = &args.generation;
        let format = generation.prompt_format.unwrap_or(PromptFormat::VerlAgent);
        let Some((endpoint, requests)) = self.server.requests(&generation.sampling, format, args.seed)?
        else {
            bail!("the policy `remote` needs `--base-url URL` and `--model NAME`");
        };
        ensure!(
            !generation.constrained,
            "decoding cannot be constrained behind a server; leave out `--constrained`"
        );
        if let Some(flag) = generation.compute.given() {
            bail!("a model behind a server runs where the server does; leave out `{flag}`");
        }
        let url = endpoint.url().to_owned();
        let config = RemoteConfig {
            request: requests,
            max_steps: args.max_steps(),
            episode_timeout: self.episode_timeout,
            episode_retries: self.episode_retries,
        };
        Ok((RemotePolicy::new(endpoint, config)?, url))
    }
}

/// Runs the episodes that are missing, records them, and prints the result over all.
#[expect(clippy::disallowed_methods, reason = "the result states the duration")]
pub(crate) fn run(remote: &RemoteArgs, args: &EpisodesArgs, out: Option<&Path>) -> anyhow::Result<ExitCode> {
    let (policy, url) = remote.policy(args)?;
    let tasks = Tasks::open(&args.tasks)?;
    let new = out.filter(|_| !remote.resume).map(EpisodeFile::create).transpose()?;
    let n_tasks = tasks.tasks.len();
    let (observer, stop) = (observer(), stop_on_ctrl_c("stopping the running episodes")?);
    let mut progress = Progress {
        tasks: &tasks,
        observer: observer.as_ref(),
        file: new,
        episodes: vec![None; n_tasks],
        failed: Vec::new(),
    };
    if let Some(path) = out.filter(|_| remote.resume) {
        progress.resume(path, &policy)?;
    }
    let start = std::time::Instant::now();
    progress.run_missing(&policy, &stop)?;
    let seconds = start.elapsed().as_secs_f64();
    let Progress { episodes, mut failed, .. } = progress;
    let episodes: Vec<Episode> = episodes.into_iter().flatten().collect();
    if episodes.len() + failed.len() < n_tasks {
        let hint = if out.is_some() { "; continue with `--resume`" } else { "" };
        eprintln!("interrupted after {} of {n_tasks} episodes{hint}", episodes.len());
        return Ok(ExitCode::from(130));
    }
    failed.sort_by_key(|episode| episode.coordinates);
    let failure = failure(&failed, n_tasks, out);
    let info = Some(RemoteInfo::new(url, policy.prompt(), failed));
    let result = tasks.result(REMOTE, args, summarize(&episodes, tasks.shop().goals()), Some(seconds));
    if !episodes.is_empty() {
        RolloutResult { remote: info, ..result }.print(args.json)?;
    }
    failure.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// The episodes of a rollout while it runs.
struct Progress<'a> {
    tasks: &'a Tasks,
    observer: &'a dyn Observer,
    file: Option<EpisodeFile>,
    /// By task index.
    episodes: Vec<Option<Episode>>,
    failed: Vec<FailedEpisode>,
}

impl Progress<'_> {
    /// Takes the episodes of an earlier file, to which further ones are appended.
    fn resume(&mut self, path: &Path, policy: &RemotePolicy) -> anyhow::Result<()> {
        let (file, earlier) =
            webshop_remote::resume_file(path, policy, &self.tasks.tasks, self.tasks.shop())?;
        if earlier.dropped_bytes > 0 {
            let (path, n) = (path.display(), earlier.dropped_bytes);
            let warning =
                format!("warning: the last line of `{path}` is incomplete; its {n} bytes are dropped");
            self.observer.log(&warning);
        }
        (self.file, self.episodes) = (Some(file), earlier.episodes);
        Ok(())
    }

    /// Runs the tasks that have no episode yet, until all have ended or `stop` is set.
    fn run_missing(&mut self, policy: &RemotePolicy, stop: &AtomicBool) -> anyhow::Result<()> {
        let tasks = self.tasks.tasks.iter().cloned().enumerate();
        let missing: Vec<(usize, Task)> = tasks.filter(|(idx, _)| self.episodes[*idx].is_none()).collect();
        let n_tasks = self.episodes.len();
        self.observer.begin(REMOTE, n_tasks as u64, (n_tasks - missing.len()) as u64);
        let outcome = policy.run(&missing, stop, &mut |task_idx, outcome| {
            match outcome {
                Ok(episode) => self.record(task_idx, episode)?,
                Err(episode) => {
                    let (goal, reason) = (episode.coordinates.goal.0, &episode.reason);
                    self.observer.log(&format!("warning: the episode for goal {goal} failed: {reason}"));
                    self.failed.push(episode);
                }
            }
            self.observer.advance(1, "");
            Ok(())
        });
        self.observer.end();
        Ok(outcome?)
    }

    fn record(&mut self, task_idx: usize, episode: Episode) -> Result<(), AgentError> {
        if let Some(file) = &mut self.file {
            file.append(&episode)?;
        }
        self.episodes[task_idx] = Some(episode);
        Ok(())
    }
}

/// An error if episodes failed: how many, and why the first did.
fn failure(failed: &[FailedEpisode], n_tasks: usize, out: Option<&Path>) -> Option<anyhow::Error> {
    let FailedEpisode { coordinates, reason, .. } = failed.first()?;
    let hint = if out.is_some() { "; `--resume` runs them again" } else { "" };
    let (n_failed, goal) = (failed.len(), coordinates.goal.0);
    Some(anyhow!(
        "{n_failed} of {n_tasks} episodes failed and are left out; the first, for goal {goal}: {reason}{hint}"
    ))
}
