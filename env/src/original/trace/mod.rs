//! Traces of episodes in the original's format: every page, URL, label and state, for comparison with the
//! original.
//!
//! A [`Tracer`] reproduces the original's server with its users: it plays one [`ScriptedEpisode`] after the
//! other and returns each as a [`TracedEpisode`]. It holds the state that the original has beyond a
//! [`Session`]: users by session name, who keep their goal in later episodes; counts of their actions; the
//! one generator, from which names, goals and random listings are drawn; and the texts of earlier steps.
//!
//! It has no step limit and computes no rewards itself.

mod record;

pub use record::{ScriptedEpisode, SessionName, TracedEpisode, TracedPage, TracedSession, TracedStep};

use crate::action::{Action, NoopReason};
use crate::page::Page;
use crate::page::text::SEPARATOR;
use crate::reward::original_fields::VerboseInfo;
use crate::session::{LastListing, Outcome, Session};
use crate::shop::Shop;
use indexmap::IndexMap;
use serde_json::Number;
use std::collections::HashMap;
use webshop_products::{GoalDraw, GoalId, GoalRecord, NoSuchGoal};
use webshop_pycompat::PythonRandom;

/// The number of letters of a drawn session name.
const NAME_LENGTH: usize = 10;

/// An episode that cannot be traced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// The goal does not exist.
    #[error(transparent)]
    NoSuchGoal(#[from] NoSuchGoal),
    /// More episodes bring a goal of their own than the shop has appended goals.
    #[error(
        "the shop has no goal for the episode's own `goal`; it must be made with the goals of all episodes"
    )]
    NoOwnGoal,
    /// The episode names no goal, and there are none to draw from.
    #[error("the episode names no goal, and there are none to draw from")]
    NoGoals,
}

/// The original's server with its users.
pub struct Tracer<'a> {
    shop: &'a Shop,
    draw: GoalDraw,
    /// The number of goals that can be selected or drawn; goals of single episodes follow them.
    n_goals: usize,
    n_own_goals_used: usize,
    /// Name and goal drawn by the original's constructor, for the first episode without a name.
    initial: Option<(String, GoalId)>,
    users: HashMap<String, User>,
    listing: LastListing,
    n_previous: usize,
}

/// The state of a user between episodes.
#[derive(Clone, Copy)]
struct User {
    goal: GoalId,
    has_bought: bool,
}

impl<'a> Tracer<'a> {
    /// A server after start, with the generator in the state after loading.
    ///
    /// Episodes select or draw among the first `n_goals` goals of `shop`; each further goal belongs to the
    /// next episode with a goal of its own. With `n_previous` > 0, traces also hold each observation after
    /// that many earlier observations and actions.
    pub fn new(shop: &'a Shop, n_goals: usize, random: PythonRandom, n_previous: usize) -> Self {
        let weights = shop.goals().goals().iter().take(n_goals).map(|goal| goal.weight);
        let mut tracer = Tracer {
            shop,
            draw: GoalDraw::new(weights),
            n_goals,
            n_own_goals_used: 0,
            initial: None,
            users: HashMap::new(),
            listing: LastListing::drawing_from(random),
            n_previous,
        };
        let name = tracer.random().letters(NAME_LENGTH);
        tracer.initial = tracer.draw_goal().ok().map(|goal| (name, goal));
        tracer
    }

    /// Plays the next episode.
    ///
    /// # Errors
    /// [`TraceError`], if its goal does not exist.
    pub fn trace(&mut self, script: &ScriptedEpisode) -> Result<TracedEpisode, TraceError> {
        if let Some(seed) = script.seed {
            *self.random() = PythonRandom::new(seed);
            self.initial = None;
        }
        let (name, goal) = self.start(script)?;
        let user = *self.users.entry(name.clone()).or_insert(User { goal, has_bought: false });
        let mut running = Running {
            session: Session::start_as(&name, user.goal),
            has_bought: user.has_bought,
            counts: IndexMap::new(),
            history: Vec::new(),
            n_previous: self.n_previous,
        };
        let page = running.session.page_with(self.shop, &mut self.listing);
        let reset = running.show(self.shop, &page);
        running.history.push(reset.text.clone());
        let steps =
            script.actions.iter().map(|action| running.step(self.shop, &mut self.listing, action)).collect();
        self.users.insert(name.clone(), User { has_bought: running.has_bought, ..user });
        let goal = self.shop.goals().get(user.goal);
        Ok(TracedEpisode {
            goal_idx: Some(goal.id.0).filter(|&at| (at as usize) < self.n_goals),
            session: name,
            instruction_text: format!("Instruction: {}", goal.instruction),
            goal: GoalRecord::from(goal),
            reset,
            steps,
        })
    }

    /// The session name and the goal of an episode: drawn in the original's order, the name before the goal.
    /// Nothing is drawn for a known user.
    fn start(&mut self, script: &ScriptedEpisode) -> Result<(String, GoalId), TraceError> {
        let own = script.goal.as_ref().map(|_| self.next_own_goal()).transpose()?;
        // A number is name and goal at once, unless the other is given.
        let number = match script.session {
            Some(SessionName::Number(number)) => Some(script.goal_idx.unwrap_or(number)),
            Some(SessionName::Truth(truth)) => Some(script.goal_idx.unwrap_or(truth.into())),
            _ => script.goal_idx,
        };
        let asked = match (own, number) {
            (None, Some(goal_idx)) => Some(self.goal_at(goal_idx)?),
            (own, _) => own,
        };
        let name = match (&script.session, number) {
            (Some(name), _) => name.to_string(),
            (None, Some(number)) => number.to_string(),
            (None, None) => match self.initial.take_if(|_| asked.is_none()) {
                Some(initial) => return Ok(initial),
                None => self.random().letters(NAME_LENGTH),
            },
        };
        let known = self.users.get(&name).map(|user| user.goal);
        match asked.or(known) {
            Some(goal) => Ok((name, goal)),
            None => Ok((name, self.draw_goal()?)),
        }
    }

    fn next_own_goal(&mut self) -> Result<GoalId, TraceError> {
        let at = self.n_goals + self.n_own_goals_used;
        if at >= self.shop.goals().goals().len() {
            return Err(TraceError::NoOwnGoal);
        }
        self.n_own_goals_used += 1;
        Ok(GoalId(at as u32))
    }

    fn goal_at(&self, goal_idx: i64) -> Result<GoalId, TraceError> {
        let from_start = if goal_idx < 0 { goal_idx + self.n_goals as i64 } else { goal_idx };
        let known = usize::try_from(from_start).ok().filter(|&at| at < self.n_goals);
        known.map(|at| GoalId(at as u32)).ok_or(match self.n_goals {
            0 => TraceError::NoGoals,
            n_goals => NoSuchGoal { number: goal_idx, n_goals }.into(),
        })
    }

    fn draw_goal(&mut self) -> Result<GoalId, TraceError> {
        let Tracer { draw, listing, .. } = self;
        listing.random().and_then(|random| draw.goal(random)).ok_or(TraceError::NoGoals)
    }

    fn random(&mut self) -> &mut PythonRandom {
        self.listing.random().expect("a tracer's listing is made with a generator")
    }
}

/// A running episode.
struct Running {
    session: Session,
    has_bought: bool,
    counts: IndexMap<&'static str, u32>,
    /// Observations and actions so far, alternating.
    history: Vec<String>,
    n_previous: usize,
}

impl Running {
    fn step(&mut self, shop: &Shop, listing: &mut LastListing, text: &str) -> TracedStep {
        let action = Action::parse(text, shop.config().compat);
        let came_from_results = self.session.product().is_none();
        let outcome = self.session.act_with(shop, listing, &action);
        let page = self.session.page_with(shop, listing);
        if outcome.noop.is_none() {
            self.count(&action, &page, came_from_results);
        }
        self.has_bought |= outcome.terminated;
        self.history.push(text.to_owned());
        let shown = self.show(shop, &page);
        self.history.push(shown.text.clone());
        TracedStep {
            action: text.to_owned(),
            page: shown,
            reward: reward(&outcome),
            done: outcome.terminated,
            info: (),
            verbose_info: outcome.breakdown.as_ref().map(VerboseInfo::from),
            noop: outcome.noop.filter(|reason| {
                !matches!(reason, NoopReason::Malformed | NoopReason::UnknownVerb | NoopReason::NotOnPage)
            }),
        }
    }

    /// Counts the action under the original's name for it; the search bar clears the counts.
    fn count(&mut self, action: &Action, page: &Page, came_from_results: bool) {
        let done = match (action, page) {
            (_, Page::Search(_)) => return self.counts.clear(),
            (_, Page::Results(_)) => "search",
            (_, Page::Detail(page)) => page.detail.label(),
            (_, Page::Done(_)) => "purchase",
            (_, Page::Item(_)) if came_from_results => "asin",
            (Action::Click(label), Page::Item(_)) if label != "< prev" => "options",
            (_, Page::Item(_)) => return,
        };
        *self.counts.entry(done).or_insert(0) += 1;
    }

    fn show(&self, shop: &Shop, page: &Page) -> TracedPage {
        let available = page.available_actions();
        let url = page.url(&self.session.name());
        let text = page.text();
        TracedPage {
            text_rich: page.text_rich(),
            ret_obs: (self.n_previous > 0).then(|| self.with_history(&text)),
            text,
            has_search_bar: available.has_search_bar,
            clickables: available.clickables,
            state_url: url.clone(),
            url,
            session: self.state(shop),
        }
    }

    /// The observation after the last `n_previous` observations and actions.
    fn with_history(&self, text: &str) -> String {
        let first = self.history.len().saturating_sub(2 * self.n_previous);
        let earlier = self.history[first..].iter().map(String::as_str);
        earlier.chain([text]).collect::<Vec<_>>().join(SEPARATOR)
    }

    fn state(&self, shop: &Shop) -> TracedSession {
        let asin = |product| shop.catalog().get(product).id.to_string();
        let page = self.session.page_number();
        TracedSession {
            page,
            keywords: page.map(|_| self.session.query().split(' ').map(str::to_owned).collect()),
            asin: self.session.product().map(asin),
            asins: self.session.visited().map(asin).collect(),
            options: self.session.selection().clone(),
            actions: self.counts.clone(),
            done: self.has_bought,
        }
    }
}

/// The reward as the original writes it: a float, or the integer 0 for a no-op.
fn reward(outcome: &Outcome) -> Number {
    let moved = Number::from_f64(outcome.reward).filter(|_| outcome.noop.is_none());
    moved.unwrap_or_else(|| 0.into())
}

#[cfg(test)]
mod tests;
