//! Trips told in the original's words: every page, address, label and state, to compare with it.
//!
//! A [`Tracer`] is the original's server with its customers: it takes one [`ScriptedEpisode`] after the other and
//! returns each as a [`TracedEpisode`]. It knows what the original keeps beyond a [`Session`]: customers by
//! name, who keep their goal when they come again; counts of what they did; the one generator, from
//! which names, goals and random listings are drawn; and the texts of earlier steps.
//!
//! It has no step limit and scores nothing itself.

mod record;

pub use record::{SessionName, ScriptedEpisode, TracedPage, TracedSession, TracedStep, TracedEpisode};

use crate::action::{Action, NoopReason};
use crate::page::Page;
use crate::session::{LastListing, Outcome, Session};
use crate::shop::Shop;
use crate::reward::original_fields::VerboseInfo;
use crate::page::text::SEPARATOR;
use indexmap::IndexMap;
use serde_json::Number;
use std::collections::HashMap;
use webshop_products::{GoalDraw, GoalId, GoalRecord, PythonRandom};

/// A drawn name has this many letters.
const NAME_LENGTH: usize = 10;

/// Why a trip cannot be traced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// It asks for a goal that is not there.
    #[error("there is no goal `{goal_idx}`: the goals are numbered 0 to {}", n_goals - 1)]
    NoSuchGoal {
        /// The number asked for.
        goal_idx: i64,
        /// How many goals there are.
        n_goals: usize,
    },
    /// No goal was named, and there is none to draw.
    #[error("the trip names no goal, and there are none to draw from")]
    NoGoals,
}

/// The original's server, and whoever was there.
pub struct Tracer<'a> {
    shop: &'a Shop,
    draw: GoalDraw,
    /// The goals that can be asked for by number or drawn; behind them stand those of single trips.
    n_goals: usize,
    n_own_goals_used: usize,
    /// What the original's constructor draws; the first trip without a name takes it.
    begun: Option<(String, GoalId)>,
    customers: HashMap<String, Customer>,
    listing: LastListing,
    n_previous: usize,
}

/// What the server remembers of a customer from trip to trip.
#[derive(Clone, Copy)]
struct Customer {
    goal: GoalId,
    has_bought: bool,
}

impl<'a> Tracer<'a> {
    /// A server that has just opened, with the generator as loading left it.
    ///
    /// The first `n_goals` goals of `shop` are those that trips ask for or draw; each further one belongs
    /// to the next trip that brings its own goal. With `n_previous`, observations are also told behind
    /// that many earlier observations and actions.
    pub fn new(shop: &'a Shop, n_goals: usize, random: PythonRandom, n_previous: usize) -> Self {
        let weights = shop.goals().goals().iter().take(n_goals).map(|goal| goal.weight);
        let mut tracer = Tracer {
            shop,
            draw: GoalDraw::new(weights),
            n_goals,
            n_own_goals_used: 0,
            begun: None,
            customers: HashMap::new(),
            listing: LastListing::drawing_from(random),
            n_previous,
        };
        let name = tracer.random().letters(NAME_LENGTH);
        tracer.begun = tracer.draw_goal().ok().map(|goal| (name, goal));
        tracer
    }

    /// Makes one trip after those before.
    ///
    /// # Errors
    /// If the trip asks for a goal that there is not.
    pub fn trace(&mut self, trip: &ScriptedEpisode) -> Result<TracedEpisode, TraceError> {
        if let Some(seed) = trip.seed {
            *self.random() = PythonRandom::new(seed);
            self.begun = None;
        }
        let (name, goal) = self.receive(trip)?;
        let customer = *self.customers.entry(name.clone()).or_insert(Customer { goal, has_bought: false });
        let mut walk = Walk {
            session: Session::start_as(&name, customer.goal),
            has_bought: customer.has_bought,
            counts: IndexMap::new(),
            told: Vec::new(),
            n_previous: self.n_previous,
        };
        let page = walk.session.page_with(self.shop, &mut self.listing);
        let reset = walk.show(self.shop, &page);
        walk.told.push(reset.text.clone());
        let steps = trip.actions.iter().map(|said| walk.step(self.shop, &mut self.listing, said)).collect();
        self.customers.insert(name.clone(), Customer { has_bought: walk.has_bought, ..customer });
        let goal = self.shop.goals().get(customer.goal);
        Ok(TracedEpisode {
            goal_idx: Some(goal.id.0).filter(|&at| (at as usize) < self.n_goals),
            session: name,
            instruction_text: format!("Instruction: {}", goal.instruction),
            goal: GoalRecord::from(goal),
            reset,
            steps,
        })
    }

    /// Who comes, and for what: drawn in the original's order, the name before the goal. A known customer
    /// draws nothing.
    fn receive(&mut self, trip: &ScriptedEpisode) -> Result<(String, GoalId), TraceError> {
        let own = trip.goal.as_ref().map(|_| self.next_own_goal());
        // A number is name and goal at once, unless either is said otherwise.
        let number = match trip.session {
            Some(SessionName::Number(number)) => Some(trip.goal_idx.unwrap_or(number)),
            Some(SessionName::Truth(truth)) => Some(trip.goal_idx.unwrap_or(truth.into())),
            _ => trip.goal_idx,
        };
        let asked = match (own, number) {
            (None, Some(goal_idx)) => Some(self.goal_at(goal_idx)?),
            (own, _) => own,
        };
        let name = match (&trip.session, number) {
            (Some(name), _) => name.to_string(),
            (None, Some(number)) => number.to_string(),
            (None, None) => match self.begun.take_if(|_| asked.is_none()) {
                Some(begun) => return Ok(begun),
                None => self.random().letters(NAME_LENGTH),
            },
        };
        let known = self.customers.get(&name).map(|customer| customer.goal);
        match asked.or(known) {
            Some(goal) => Ok((name, goal)),
            None => Ok((name, self.draw_goal()?)),
        }
    }

    fn next_own_goal(&mut self) -> GoalId {
        self.n_own_goals_used += 1;
        GoalId((self.n_goals + self.n_own_goals_used - 1) as u32)
    }

    fn goal_at(&self, goal_idx: i64) -> Result<GoalId, TraceError> {
        let from_start = if goal_idx < 0 { goal_idx + self.n_goals as i64 } else { goal_idx };
        let known = usize::try_from(from_start).ok().filter(|&at| at < self.n_goals);
        known.map(|at| GoalId(at as u32)).ok_or(match self.n_goals {
            0 => TraceError::NoGoals,
            n_goals => TraceError::NoSuchGoal { goal_idx, n_goals },
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

/// One trip under way.
struct Walk {
    session: Session,
    has_bought: bool,
    counts: IndexMap<&'static str, u32>,
    /// Observations and actions so far, in turn.
    told: Vec<String>,
    n_previous: usize,
}

impl Walk {
    fn step(&mut self, shop: &Shop, listing: &mut LastListing, said: &str) -> TracedStep {
        let action = Action::parse(said, shop.config().compat);
        let came_from_results = self.session.product().is_none();
        let outcome = self.session.act_with(shop, listing, &action);
        let page = self.session.page_with(shop, listing);
        if outcome.noop.is_none() {
            self.count(&action, &page, came_from_results);
        }
        self.has_bought |= outcome.terminated;
        self.told.push(said.to_owned());
        let shown = self.show(shop, &page);
        self.told.push(shown.text.clone());
        TracedStep {
            action: said.to_owned(),
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

    /// Counts what was done, under the original's names for it; the search bar forgets it all.
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
            ret_obs: (self.n_previous > 0).then(|| self.behind_earlier(&text)),
            text,
            has_search_bar: available.has_search_bar,
            clickables: available.clickables,
            state_url: url.clone(),
            url,
            session: self.state(shop),
        }
    }

    /// The observation behind the last ones and what was said to them.
    fn behind_earlier(&self, text: &str) -> String {
        let first = self.told.len().saturating_sub(2 * self.n_previous);
        let earlier = self.told[first..].iter().map(String::as_str);
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

/// As the original writes it: a move has a float, and what is no move a whole number.
fn reward(outcome: &Outcome) -> Number {
    let moved = Number::from_f64(outcome.reward).filter(|_| outcome.noop.is_none());
    moved.unwrap_or_else(|| 0.into())
}

#[cfg(test)]
mod tests;
