//! `webshop rollout --policy remote`: a model behind a server shops, and its trips are kept as they end.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{anyhow, bail, ensure};
use serde_json::{Map, Value};
use webshop_agent::remote::REMOTE;
use webshop_agent::{
    AgentError, Dialect, Endpoint, Episode, FailedTrip, RemoteConfig, RemotePolicy, Retries, Sampling, Task,
    TripFile,
};
use webshop_env::Shop;
use webshop_training::{Observer, summarize};

use crate::interrupt::stop_on_interrupt;
use crate::progress::observer;
use crate::result::{Measurement, ModelVisit};
use crate::rollout::{PlayFlags, measurement, tasks};

/// Tokens of an answer, unless asked otherwise: as many as local models have in a chat.
const MAX_TOKENS: u32 = 256;

/// Flags of the policy `remote`.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of the policy `remote`")]
pub struct RemoteFlags {
    /// A server with the interface of OpenAI's, such as `http://localhost:8000/v1`
    #[arg(long, value_name = "URL", requires = "model")]
    pub base_url: Option<String>,
    /// The name by which the server knows the model
    #[arg(long, value_name = "NAME", requires = "base_url")]
    model: Option<String>,
    /// The environment variable that holds the key to the server, if it asks for one
    #[arg(long, value_name = "VAR", default_value = "OPENAI_API_KEY", requires = "base_url")]
    api_key_env: String,
    /// Share of the probability that tokens are drawn from
    #[arg(long, value_name = "P", default_value_t = 1.0, requires = "base_url")]
    top_p: f64,
    /// Further fields of each request, as one JSON object; null leaves out a field that would be sent. They are not on
    /// record
    #[arg(long, value_name = "JSON", value_parser = object, requires = "base_url")]
    body: Option<Map<String, Value>>,
    /// Trips at one time
    #[arg(long, value_name = "N", default_value_t = 16, requires = "base_url", value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: u16,
    /// Seconds to wait for an answer
    #[arg(long, value_name = "S", default_value = "300", value_parser = seconds, requires = "base_url")]
    answer_limit: Duration,
    /// Seconds that a trip may take, waiting included
    #[arg(long, value_name = "S", default_value = "3600", value_parser = seconds, requires = "base_url")]
    trip_limit: Duration,
    /// How often a request is repeated that failed for the time being
    #[arg(long, value_name = "N", default_value_t = 5, requires = "base_url")]
    request_retries: u32,
    /// How often a trip is begun anew that failed all the same
    #[arg(long, value_name = "N", default_value_t = 1, requires = "base_url")]
    trip_retries: u32,
    /// Seconds before the first repetition of a request, on average; they double with each
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = seconds, requires = "base_url")]
    backoff: Duration,
    /// Go on with the file that `--out` names: the trips in it stand, those that failed or are missing are made
    #[arg(long, requires_all = ["base_url", "out"])]
    resume: bool,
}

impl RemoteFlags {
    fn policy(&self, play: &PlayFlags) -> anyhow::Result<(RemotePolicy, String)> {
        let (Some(base), Some(model)) = (&self.base_url, &self.model) else {
            bail!("the policy `remote` needs `--base-url URL` and `--model NAME`");
        };
        let manners = &play.manners;
        ensure!(!manners.constrained, "a server's model says what it likes; leave out `--constrained`");
        ensure!(manners.max_context.is_none(), "a server has its own limit; leave out `--max-context`");
        let temperature = manners.temperature.unwrap_or(1.0);
        ensure!(temperature >= 0.0 && temperature.is_finite(), "`--temperature` is a number from 0 up");
        ensure!(self.top_p > 0.0 && self.top_p <= 1.0, "`--top-p` is above 0 and at most 1");
        let endpoint = Endpoint::parse(base, self.key()?)?;
        let url = endpoint.url().to_owned();
        let max_tokens = manners.max_turn_tokens.unwrap_or(MAX_TOKENS);
        let sampling = Sampling { temperature, top_p: self.top_p, max_tokens, seed: play.seed };
        let config = RemoteConfig {
            model: model.clone(),
            dialect: manners.dialect.unwrap_or(Dialect::VerlAgent),
            sampling,
            more: self.body.clone().unwrap_or_default(),
            max_steps: play.max_steps,
            concurrency: usize::from(self.concurrency),
            answer_limit: self.answer_limit,
            trip_limit: self.trip_limit,
            retries: Retries {
                of_request: self.request_retries,
                of_trip: self.trip_retries,
                first_wait: self.backoff,
            },
        };
        Ok((RemotePolicy::new(endpoint, config)?, url))
    }

    /// The key, which stands in no flag so that no list of processes shows it.
    fn key(&self) -> anyhow::Result<Option<String>> {
        match std::env::var(&self.api_key_env) {
            Ok(key) => Ok(Some(key).filter(|key| !key.is_empty())),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => bail!("the key in `{}` is no text", self.api_key_env),
        }
    }
}

/// Shops, keeps, sums up.
#[expect(clippy::disallowed_methods, reason = "the answer says how long it took")]
pub fn run(flags: &RemoteFlags, play: &PlayFlags, out: Option<&Path>) -> anyhow::Result<ExitCode> {
    let (policy, url) = flags.policy(play)?;
    if let Some(path) = out.filter(|path| !flags.resume && path.exists()) {
        bail!("`{}` is there already; go on with it by `--resume`, or name another", path.display());
    }
    let new = out.filter(|_| !flags.resume).map(TripFile::create).transpose()?;
    let (ground, tasks) = tasks(play)?;
    let (observer, stop) = (observer(), stop_on_interrupt("ending the trips under way")?);
    let mut trips = Trips {
        shop: ground.shop(),
        observer: observer.as_ref(),
        file: new,
        made: vec![None; tasks.len()],
        failed: Vec::new(),
    };
    if let Some(path) = out.filter(|_| flags.resume) {
        trips.resume(path, &policy, &tasks)?;
    }
    let began = std::time::Instant::now();
    trips.play(&policy, &tasks, &stop)?;
    let seconds = began.elapsed().as_secs_f64();
    let Trips { made, mut failed, .. } = trips;
    let episodes: Vec<Episode> = made.into_iter().flatten().collect();
    if episodes.len() + failed.len() < tasks.len() {
        let hint = if out.is_some() { "; `--resume` goes on from there" } else { "" };
        eprintln!("stopped with {} of {} trips made{hint}", episodes.len(), tasks.len());
        return Ok(ExitCode::from(130));
    }
    failed.sort_by_key(|trip| trip.coordinates);
    let failure = failure(&failed, tasks.len(), out);
    let remote = Some(ModelVisit::new(url, policy.prompt(), failed));
    let result = measurement(REMOTE, play, &ground, summarize(&episodes), seconds);
    if !episodes.is_empty() {
        Measurement { remote, ..result }.tell(play.json)?;
    }
    failure.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// The trips of a rollout, as they come.
struct Trips<'a> {
    shop: &'a Arc<Shop>,
    observer: &'a dyn Observer,
    file: Option<TripFile>,
    /// By the place of their tasks.
    made: Vec<Option<Episode>>,
    failed: Vec<FailedTrip>,
}

impl Trips<'_> {
    /// Takes over those of a file, and goes on with it.
    fn resume(&mut self, path: &Path, policy: &RemotePolicy, tasks: &[Task]) -> anyhow::Result<()> {
        let (file, kept) = TripFile::resume(path, policy, tasks, self.shop)?;
        if kept.dropped_bytes > 0 {
            let (path, n) = (path.display(), kept.dropped_bytes);
            self.observer
                .say(&format!("warning: `{path}` ends within a line; its last {n} bytes are dropped"));
        }
        (self.file, self.made) = (Some(file), kept.episodes);
        Ok(())
    }

    /// Makes those that are missing.
    fn play(&mut self, policy: &RemotePolicy, tasks: &[Task], stop: &AtomicBool) -> anyhow::Result<()> {
        let places = tasks.iter().cloned().enumerate();
        let missing: Vec<(usize, Task)> = places.filter(|(place, _)| self.made[*place].is_none()).collect();
        self.observer.begin(REMOTE, tasks.len() as u64, (tasks.len() - missing.len()) as u64);
        let played = policy.play(&missing, stop, &mut |place, outcome| {
            match outcome {
                Ok(episode) => self.keep(place, episode)?,
                Err(trip) => {
                    let FailedTrip { coordinates, reason, .. } = &trip;
                    let goal = coordinates.goal.0;
                    self.observer.say(&format!("warning: the trip for goal {goal} failed: {reason}"));
                    self.failed.push(trip);
                }
            }
            self.observer.advance(1, "");
            Ok(())
        });
        self.observer.end();
        Ok(played?)
    }

    fn keep(&mut self, place: usize, episode: Episode) -> Result<(), AgentError> {
        if let Some(file) = &mut self.file {
            file.append(&episode.record(self.shop))?;
        }
        self.made[place] = Some(episode);
        Ok(())
    }
}

/// What is to be said of trips that failed, the first of them in its own words.
fn failure(failed: &[FailedTrip], n: usize, out: Option<&Path>) -> Option<anyhow::Error> {
    let first = failed.first()?;
    let hint = if out.is_some() { "; `--resume` tries them again" } else { "" };
    let FailedTrip { coordinates, reason, .. } = first;
    let (n_failed, goal) = (failed.len(), coordinates.goal.0);
    Some(anyhow!(
        "{n_failed} of {n} trips failed and are left out; the first, for goal {goal}: {reason}{hint}"
    ))
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("no JSON object: {error}"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "no number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}
