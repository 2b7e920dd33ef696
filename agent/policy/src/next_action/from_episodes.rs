//! Examples from actions that are replayed in the shop.
//!
//! [`replay_session`] takes actions from the start of a goal and returns the [`UserSession`] with today's
//! pages; [`examples_of`] returns its examples, with rationales made from thoughts; [`session_of`] does the
//! same for a recorded [`Episode`]. A [`terminate_example`] is made from a results page without any product
//! worth buying.

use rand::Rng;
use webshop_env::{Action, Session, Shop};
use webshop_products::GoalId;

use crate::episode::Episode;
use crate::expert::two_habits::required_words;
use crate::next_action::action::NextAction;
use crate::next_action::example::{Example, ExampleSource, TERMINATE_RATIONALE, TakenStep, rationale_of};
use crate::next_action::mapping::BuyNowAs;
use crate::next_action::session::UserSession;
use crate::prompt_format::{PromptFormat, ShopR1Variant};

/// `terminate` is right if no listed product earns this reward or more.
pub const MIN_REWARD: f64 = 0.1;

/// The format whose pages examples contain.
const SHOP_R1: PromptFormat = PromptFormat::ShopR1(ShopR1Variant::AllPages);

/// Properties of examples that do not follow from the actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExampleOptions<'a> {
    /// Where the actions come from.
    pub source: ExampleSource,
    /// The split of the goal.
    pub split: &'a str,
    /// Shop-R1's action for a purchase.
    pub buy_now_as: BuyNowAs,
}

/// The examples of an episode for `goal`, given the thought (empty if none) and the action of each step.
/// Their ids are `source-goal-step`. A no-op is no example, and has no action in the context of later ones;
/// steps after the purchase are left out.
///
/// ```
/// use webshop_agent::next_action::{BuyNowAs, ExampleOptions, ExampleSource, examples_of};
/// # use webshop_env::Shop;
/// # use webshop_products::{EmbeddedCatalog, GoalId, GoalKind};
/// # let shop = Shop::embedded(EmbeddedCatalog::Hundred, GoalKind::Both);
/// let options = ExampleOptions { source: ExampleSource::Policy, split: "train", buy_now_as: BuyNowAs::Click };
/// let steps = [(String::new(), "click[red]".parse()?), (String::new(), "search[boots]".parse()?)];
/// let examples = examples_of(&shop, GoalId(3), &steps, options);
/// assert_eq!(examples.len(), 1);
/// assert_eq!((examples[0].id.as_str(), examples[0].context[0].action.as_ref()), ("policy-3-1", None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn examples_of(
    shop: &Shop,
    goal: GoalId,
    steps: &[(String, Action)],
    options: ExampleOptions<'_>,
) -> Vec<Example> {
    let steps = steps.iter().map(|(thought, action)| (rationale_of(thought, action), action.clone()));
    replay_session(shop, goal, steps, options).examples()
}

/// The session for `goal` with these rationales and actions. It ends with the purchase.
pub fn replay_session(
    shop: &Shop,
    goal: GoalId,
    steps: impl IntoIterator<Item = (String, Action)>,
    options: ExampleOptions<'_>,
) -> UserSession {
    let (rationales, actions): (Vec<String>, Vec<Action>) = steps.into_iter().unzip();
    let walk = Session::walk(shop, goal, actions).take_while(|step| !step.session.is_done());
    let steps = walk.zip(rationales).map(|(step, rationale)| {
        let has_effect = step.outcome.noop.is_none();
        let action = NextAction::of(&step.action, options.buy_now_as).filter(|_| has_effect);
        TakenStep { page: SHOP_R1.observation(&step.page), action, rationale }
    });
    UserSession {
        name: format!("{}-{}", options.source, goal.0),
        source: options.source,
        split: options.split.into(),
        goal: Some(goal.0),
        steps: steps.collect(),
    }
}

/// The session of a recorded episode, with its thoughts as rationales. Thoughts in a layout are no sentences
/// and are put into one.
pub fn session_of(shop: &Shop, episode: &Episode, options: ExampleOptions<'_>) -> UserSession {
    let is_chat = episode.meta.prompt_format.is_some_and(PromptFormat::is_chat);
    let steps = episode.turns.iter().map(|turn| {
        let thought = turn.agent.thought.as_deref().unwrap_or_default().trim();
        let is_sentence = is_chat && !thought.is_empty();
        let rationale = if is_sentence { thought.to_owned() } else { rationale_of(thought, &turn.action) };
        (rationale, turn.action.clone())
    });
    replay_session(shop, episode.goal, steps, options)
}

/// A `terminate` example: the results page for `goal` after a search for the requirements of `other`. `None`
/// if a product on any page of the results would earn [`MIN_REWARD`] or more. Its id is
/// `terminate-goal-other-step`, whatever the source in `options`.
pub fn terminate_example(
    shop: &Shop,
    goal: GoalId,
    other: GoalId,
    options: ExampleOptions<'_>,
) -> Option<Example> {
    let words = required_words(shop.goals().get(other)).join(" ");
    let wanted = shop.goals().get(goal);
    let is_below = |&product| shop.best_purchase_of(wanted, product).breakdown.total() < MIN_REWARD;
    if !shop.listing(&words).ok()?.iter().all(is_below) {
        return None;
    }
    let search = Action::Search(words);
    let options = ExampleOptions { source: ExampleSource::Terminate, ..options };
    let mut session = replay_session(shop, goal, [(rationale_of("", &search), search.clone())], options);
    let mut walk = Session::walk(shop, goal, [search]);
    walk.by_ref().for_each(drop);
    session.name = format!("{}-{}", session.name, other.0);
    session.steps.push(TakenStep {
        page: SHOP_R1.observation(walk.page()),
        action: Some(NextAction::Terminate {}),
        rationale: TERMINATE_RATIONALE.into(),
    });
    session.examples().pop()
}

/// A [`terminate_example`] for `goal` with a random other goal of the same split, so that held-out goals
/// appear in no other split.
pub fn draw_terminate_example(
    shop: &Shop,
    goal: GoalId,
    buy_now_as: BuyNowAs,
    rng: &mut impl Rng,
) -> Option<Example> {
    let split = shop.goals().split_of(goal);
    let others = shop.goals().split(split);
    let other = others[rng.random_range(0..others.len() as u64) as usize];
    let split = split.to_string();
    let options = ExampleOptions { source: ExampleSource::Terminate, split: &split, buy_now_as };
    terminate_example(shop, goal, other, options)
}
