//! `webshop rollout --policy remote`: a model behind a server shops, and its trips are kept as they end.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{anyhow, bail, ensure};
use webshop_agent::remote::REMOTE;
use webshop_agent::{AgentError, Dialect, Episode, FailedTrip, RemoteConfig, RemotePolicy, Task, TripFile};
use webshop_env::Shop;
use webshop_training::{Observer, summarize};

use crate::interrupt::stop_on_interrupt;
use crate::progress::observer;
use crate::result::{Measurement, ModelVisit};
use crate::rollout::{PlayFlags, measurement, tasks};
use crate::server::{ServerArgs, seconds};

/// Flags of the policy `remote`.
#[derive(clap::Args)]
#[command(next_help_heading = "Models behind a server")]
pub struct RemoteFlags {
    #[command(flatten)]
    pub server: ServerArgs,
    /// Seconds that a trip may take, waiting included
    #[arg(long, value_name = "S", default_value = "3600", value_parser = seconds, requires = "base_url")]
    trip_limit: Duration,
    /// How often a trip is begun anew that failed all the same
    #[arg(long, value_name = "N", default_value_t = 1, requires = "base_url")]
    trip_retries: u32,
    /// Go on with the file that `--out` names: the trips in it stand, those that failed or are missing are made
    #[arg(long, requires_all = ["base_url", "out"])]
    resume: bool,
}

impl RemoteFlags {
    fn policy(&self, play: &PlayFlags) -> anyhow::Result<(RemotePolicy, String)> {
        let manners = &play.manners;
        let dialect = manners.dialect.unwrap_or(Dialect::VerlAgent);
        let Some((endpoint, asking)) = self.server.asking(&manners.speech, dialect, play.seed)? else {
            bail!("the policy `remote` needs `--base-url URL` and `--model NAME`");
        };
        ensure!(!manners.constrained, "a server's model says what it likes; leave out `--constrained`");
        let url = endpoint.url().to_owned();
        let config = RemoteConfig {
            asking,
            max_steps: play.max_steps,
            trip_limit: self.trip_limit,
            trip_retries: self.trip_retries,
        };
        Ok((RemotePolicy::new(endpoint, config)?, url))
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
