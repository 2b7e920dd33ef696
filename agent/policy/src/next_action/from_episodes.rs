//! Samples of trips that the shop makes again.
//!
//! [`retrace`] takes what was done for a goal, does it once more from the door, and gives the [`Visit`] with the pages as
//! they are shown today; [`samples_of`] are its samples where what was thought is still to be put into a sentence, and
//! [`visit_of`] is the visit of a recorded [`Episode`]. A [`dead_end`] is a page that nobody recorded: one on which
//! nothing is left to be hoped for, so that leaving is right.
//!
//! Whether a trip is worth imitating is not asked here.

use rand::Rng;
use webshop_env::{Action, Session, Shop};
use webshop_products::{GoalId, GoalSet, Split};

use crate::next_action::action::NextAction;
use crate::next_action::mapping::BuyNowAs;
use crate::next_action::example::{LEAVING, Sample, SampleSource, TakenStep, rationale_of};
use crate::next_action::session::Visit;
use crate::expert::wanted_words;
use crate::prompt_format::Dialect;
use crate::episode::Episode;

/// A page is a dead end if no purchase from its listing is worth this much.
pub const HOPE: f64 = 0.1;

/// What is to be said of samples beside what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About<'a> {
    /// Who took the steps.
    pub source: SampleSource,
    /// The split of the goal.
    pub split: &'a str,
    /// What buying is.
    pub buy_now_as: BuyNowAs,
}

/// The samples of a trip for `goal`: what was thought at each step, empty if nothing, and what was done. Called
/// `source-goal-step`. What the shop let pass stands in later contexts as no action and makes no sample; what comes behind
/// the purchase is left out.
///
/// ```
/// use crate::next_action::{About, BuyNowAs, SampleSource, samples_of};
/// # use webshop_env::Shop;
/// # use webshop_products::{Catalog, EmbeddedCatalog, GoalId, GoalKind, GoalSet, RawData, Seed};
/// # let data = RawData::embedded(EmbeddedCatalog::Hundred);
/// # let catalog = Catalog::from_raw(&data, Seed(0))?;
/// # let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0))?;
/// # let shop = Shop::new(catalog, goals)?;
/// let about = About { source: SampleSource::Policy, split: "train", buy_now_as: BuyNowAs::Click };
/// let steps = [(String::new(), "click[red]".parse()?), (String::new(), "search[boots]".parse()?)];
/// let samples = samples_of(&shop, GoalId(3), &steps, about);
/// assert_eq!(samples.len(), 1);
/// assert_eq!((samples[0].id.as_str(), samples[0].context[0].action.as_ref()), ("policy-3-1", None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn samples_of(shop: &Shop, goal: GoalId, steps: &[(String, Action)], about: About<'_>) -> Vec<Sample> {
    let steps = steps.iter().map(|(thought, action)| (rationale_of(thought, action), action.clone()));
    retrace(shop, goal, steps, about).samples()
}

/// The visit of a customer for `goal` who takes these steps, each with its rationale. It ends with the purchase.
pub fn retrace(
    shop: &Shop,
    goal: GoalId,
    steps: impl IntoIterator<Item = (String, Action)>,
    about: About<'_>,
) -> Visit {
    let mut session = Session::start(goal);
    let mut taken = Vec::new();
    for (rationale, action) in steps {
        if session.is_done() {
            break;
        }
        let page = Dialect::ShopR1.observe(&session.page(shop));
        let is_move = session.act(shop, &action).noop.is_none();
        let action = NextAction::of(&action, about.buy_now_as).filter(|_| is_move);
        taken.push(TakenStep { page, action, rationale });
    }
    Visit {
        name: format!("{}-{}", about.source, goal.0),
        source: about.source,
        split: about.split.into(),
        goal: Some(goal.0),
        steps: taken,
    }
}

/// The visit of a recorded trip, for the reasons that were written. Those in the words of `plain` are no sentences yet.
pub fn visit_of(shop: &Shop, episode: &Episode, about: About<'_>) -> Visit {
    let is_plain = episode.prompt.as_ref().is_none_or(|prompt| prompt.dialect == Dialect::Plain);
    let steps = episode.turns.iter().map(|turn| {
        let thought = turn.thought.as_deref().unwrap_or_default().trim();
        let is_sentence = !is_plain && !thought.is_empty();
        let rationale = if is_sentence { thought.to_owned() } else { rationale_of(thought, &turn.action) };
        (rationale, turn.action.clone())
    });
    retrace(shop, episode.coordinates.goal, steps, about)
}

/// The page that the customer of `goal` sees who searches with the words of `other`, to be left: of all that the query
/// lists, on whichever page, nothing is worth [`HOPE`]. `None` if something is. Called `dead_end-goal-other-step`,
/// whatever `about` says of the source.
pub fn dead_end(shop: &Shop, goal: GoalId, other: GoalId, about: About<'_>) -> Option<Sample> {
    let words = wanted_words(shop.goals().get(other)).join(" ");
    let wanted = shop.goals().get(goal);
    let is_hopeless = |&product| shop.best_purchase_of(wanted, product).breakdown.total() < HOPE;
    if !shop.listing(&words).ok()?.iter().all(is_hopeless) {
        return None;
    }
    let search = Action::Search(words);
    let about = About { source: SampleSource::DeadEnd, ..about };
    let mut visit = retrace(shop, goal, [(rationale_of("", &search), search.clone())], about);
    let mut session = Session::start(goal);
    session.act(shop, &search);
    visit.name = format!("{}-{}", visit.name, other.0);
    visit.steps.push(TakenStep {
        page: Dialect::ShopR1.observe(&session.page(shop)),
        action: Some(NextAction::Terminate {}),
        rationale: LEAVING.into(),
    });
    visit.samples().pop()
}

/// [`dead_end`] of the customer of `goal` who searches for what some other goal of its split wants, so that what is held out
/// shows in no other split. Which, is drawn.
pub fn drawn_dead_end(shop: &Shop, goal: GoalId, buy_now_as: BuyNowAs, rng: &mut impl Rng) -> Option<Sample> {
    let split = split_of(shop.goals(), goal);
    let others = shop.goals().split(split);
    let other = others[rng.random_range(0..others.len() as u64) as usize];
    let about = About { source: SampleSource::DeadEnd, split: &split.to_string(), buy_now_as };
    dead_end(shop, goal, other, about)
}

/// The split that a goal is in, where splits are disjoint; of several the first of train, validation and test.
pub fn split_of(goals: &GoalSet, goal: GoalId) -> Split {
    let parts = [Split::Train, Split::Validation, Split::Test];
    let is_in = |split: &Split| goals.split(*split).binary_search(&goal).is_ok();
    parts.into_iter().find(is_in).unwrap_or(Split::All)
}
