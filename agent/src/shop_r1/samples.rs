//! Steps of trips as samples.

use webshop_env::{Action, Page, Session, Shop};
use webshop_products::GoalId;

use super::action::NextAction;
use super::mapping::BuyNowAs;
use super::sample::{LEAVING, PastStep, Sample, SampleSource, rationale_of};
use crate::dialect::Dialect;

/// What samples say of themselves.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// Who took the steps.
    pub source: SampleSource,
    /// The split of the goal.
    pub split: &'a str,
    /// What buying is.
    pub buy_now_as: BuyNowAs,
}

/// The steps of a trip.
pub fn samples_of(shop: &Shop, goal: GoalId, steps: &[(String, Action)], about: About<'_>) -> Vec<Sample> {
    let mut session = Session::start(goal);
    let mut context: Vec<PastStep> = Vec::new();
    let mut samples = Vec::new();
    for (step, (thought, action)) in steps.iter().enumerate() {
        let page = Dialect::ShopR1.observe(&session.page(shop));
        let told = NextAction::of(action, about.buy_now_as);
        if let Some(action_told) = &told {
            samples.push(Sample {
                id: format!("{:?}-{}-{step}", about.source, goal.0),
                source: about.source,
                split: about.split.into(),
                goal: Some(goal.0),
                step,
                context: context.clone(),
                page: page.clone(),
                rationale: rationale_of(thought, action),
                action: action_told.clone(),
            });
        }
        context.push(PastStep { page, action: told });
        session.act(shop, action);
    }
    samples
}

/// A page of nothing.
pub fn dead_end(shop: &Shop, goal: GoalId, other: GoalId, about: About<'_>) -> Option<Sample> {
    let words = shop.goals().get(other).query.to_lowercase();
    let mut session = Session::start(goal);
    let door = Dialect::ShopR1.observe(&session.page(shop));
    let search = Action::Search(words);
    session.act(shop, &search);
    let Page::Results(page) = session.page(shop) else { return None };
    let wanted = shop.goals().get(goal);
    if page.items.is_empty()
        || page.items.iter().any(|item| shop.best_purchase_of(wanted, item.product).breakdown.total() >= 0.1)
    {
        return None;
    }
    Some(Sample {
        id: format!("dead_end-{}-{}", goal.0, other.0),
        source: about.source,
        split: about.split.into(),
        goal: Some(goal.0),
        step: 1,
        context: vec![PastStep { page: door, action: NextAction::of(&search, about.buy_now_as) }],
        page: Dialect::ShopR1.observe(&session.page(shop)),
        rationale: LEAVING.into(),
        action: NextAction::Terminate {},
    })
}
