//! The training runs that `webshop serve --watch` shows, as the server asks for them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use webshop_env::{GeneratedCatalog, Shop};
use webshop_lm::BpeTokenizer;
use webshop_report::{DRAWING_STYLE, LiveRun, LiveRuns, Stage};
use webshop_serve::{RunError, RunFigure, RunPhase, RunStage, RunState, Runs};
use webshop_training::config::CatalogConfig;
use webshop_training::{RunFolder, open_shop};

use crate::recorded_shops::RecordedShops;

/// Run folders, and the shops that were opened for their episodes.
pub(super) struct WatchedRuns(Mutex<Watched>);

struct Watched {
    runs: LiveRuns,
    /// By configuration: the runs of a comparison have one shop.
    shops: Vec<(CatalogConfig, RecordedShops)>,
    /// By run folder.
    tokenizers: Vec<(PathBuf, Arc<BpeTokenizer>)>,
}

impl WatchedRuns {
    /// The runs in these folders; see [`LiveRuns::open`].
    pub(super) fn open(folders: &[PathBuf]) -> anyhow::Result<WatchedRuns> {
        let runs = LiveRuns::open(folders)?;
        Ok(WatchedRuns(Mutex::new(Watched { runs, shops: Vec::new(), tokenizers: Vec::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn run(&mut self, number: usize) -> Result<&mut LiveRun, RunError> {
        let run = self.runs.runs().get_mut(number);
        run.ok_or_else(|| format!("there is no run `{number}`").into())
    }
}

impl Runs for WatchedRuns {
    fn style(&self) -> &'static str {
        DRAWING_STYLE
    }

    fn names(&self) -> Result<Vec<String>, RunError> {
        let mut watched = self.lock();
        watched.runs.update()?;
        Ok(watched.runs.runs().iter().map(|run| run.folder().display().to_string()).collect())
    }

    fn state(&self, run: usize) -> Result<RunState, RunError> {
        let progress = self.lock().run(run)?.progress()?;
        let stage = match progress.stage {
            Stage::Waiting => RunStage::Waiting,
            Stage::Running => RunStage::Running,
            Stage::Finished => RunStage::Finished,
        };
        let phases = progress.phases.into_iter();
        let figures = progress.figures.into_iter();
        Ok(RunState {
            stage,
            title: progress.title,
            phases: phases
                .map(|phase| RunPhase { name: phase.name, step: phase.step, steps: phase.steps })
                .collect(),
            figures: figures
                .map(|figure| RunFigure {
                    name: figure.name.to_owned(),
                    value: figure.value,
                    note: figure.note,
                })
                .collect(),
            charts: progress.charts,
            episodes: progress.episodes,
        })
    }

    fn shop(&self, run: usize, generated: Option<GeneratedCatalog>) -> Result<Arc<Shop>, RunError> {
        let config = self.lock().run(run)?.config()?.ok_or("the run has not begun")?.catalog.clone();
        let is_of_run = |(known, _): &(CatalogConfig, RecordedShops)| *known == config;
        let is_open = self.lock().shops.iter().any(is_of_run);
        if !is_open {
            // Without the lock: a large catalog takes seconds. Another request may open it at the same time.
            let shop = Arc::new(open_shop(&config)?);
            self.lock().shops.push((config.clone(), RecordedShops::new(shop)));
        }
        let mut watched = self.lock();
        let place = watched.shops.iter().position(is_of_run).expect("an opened shop is kept");
        Ok(watched.shops[place].1.of(generated)?)
    }

    fn tokenizer(&self, run: usize) -> Result<Option<Arc<BpeTokenizer>>, RunError> {
        let mut watched = self.lock();
        let folder = watched.run(run)?.folder().to_path_buf();
        if let Some((_, tokenizer)) = watched.tokenizers.iter().find(|(known, _)| *known == folder) {
            return Ok(Some(Arc::clone(tokenizer)));
        }
        let model = RunFolder::open(&folder)?.0.last_model();
        if !model.is_dir() {
            return Ok(None);
        }
        let tokenizer = Arc::new(BpeTokenizer::load(&model)?);
        watched.tokenizers.push((folder, Arc::clone(&tokenizer)));
        Ok(Some(tokenizer))
    }
}
