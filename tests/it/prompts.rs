//! Prompts and completions of every format.
//!
//! `snapshots/prompts/` holds episodes of the expert as the model reads them, in layouts whole and in the
//! chat formats as the messages before the fourth turn; and every available action is rendered and parsed back.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use crate::common::in_area;
use rand::Rng;
use serde_json::json;
use webshop_agent::{
    BrowsingExpert, BrowsingHabits, Conversation, Expert, ExpertKind, ExpertTurn, Layout, ParsedCompletion,
    PromptFormat, compact::Piece, compact::PromptConfig, compact::encode_pieces, compact::marks,
};
use webshop_env::{Action, Compat, EnvConfig, Page, RewardBreakdown, Session, Shop, ShopEnv};
use webshop_lm::BpeTokenizer;
use webshop_lm::chat::{Message, Role};
use webshop_products::{
    Catalog, EmbeddedCatalog, Goal, GoalId, GoalKind, GoalSet, Purpose, RawData, Seed, Split,
};

const PROMPT: PromptConfig = PromptConfig::new(5);
const COMPACT: Layout = Layout::Compact(PROMPT);

fn shop(data: &RawData) -> Shop {
    let catalog = Catalog::from_raw(data, Seed(0)).expect("sound products");
    let goals = GoalSet::from_raw(data, &catalog, GoalKind::Both, Seed(0)).expect("and sound goals");
    Shop::new(catalog, goals).expect("the shop opens")
}

fn hundred() -> Shop {
    shop(&RawData::embedded(EmbeddedCatalog::Hundred))
}

/// Products made to be difficult: brackets, quotes, markup, equal values, options named like buttons.
fn difficult() -> Shop {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/parity");
    shop(&RawData::read_dir(&dir, None).expect("the recorded catalog is sound"))
}

fn text(pieces: &[Piece]) -> String {
    pieces.iter().map(Piece::text).collect()
}

/// The first training goal with options for which the thinking expert opens and rejects a candidate.
fn goal_with_a_rejection(shop: &Shop) -> &Goal {
    let rejects = |goal: &&Goal| {
        let turns = Expert::new(shop, PROMPT.results_shown).episode(goal.id, ExpertKind::Thinking);
        !goal.options.is_empty() && turns.iter().flatten().any(|turn| turn.thought.ends_with(" no"))
    };
    let goals = shop.goals().split(Split::Train).iter().map(|&goal| shop.goals().get(goal));
    goals.into_iter().find(rejects).expect("not every first result is right")
}

/// The messages of a format after a search, a click on a missing label and one on the first product.
fn messages_of(prompt_format: PromptFormat) -> String {
    let shop = Arc::new(hundred());
    let goal = goal_with_a_rejection(&shop).id;
    let mut env = ShopEnv::new(Arc::clone(&shop), EnvConfig { max_steps: 15, ..EnvConfig::default() });
    env.reset(goal);
    let mut conversation = Conversation::new(shop.goals().get(goal).instruction.clone(), 15);
    let mut noop = None;
    for action in ["search[red lamp]", "click[nowhere]", "click[the first]"] {
        prompt_format.add_page(&mut conversation, env.page(), noop);
        let first = match env.page() {
            Page::Results(results) => results.items.first().map(|item| item.id.as_str().to_lowercase()),
            _ => None,
        };
        let action = action.replace("the first", &first.unwrap_or_default());
        let text = prompt_format.render_completion("I think \"so\".", &action.parse().expect("never fails"));
        let message = Message::text(Role::Assistant, text);
        let parsed = prompt_format.add_completion(&mut conversation, message, env.page(), Compat::Repaired);
        assert_eq!((parsed.action.to_string(), parsed.is_well_formed), (action, true));
        noop = env.step(&parsed.action).info.noop;
    }
    prompt_format.add_page(&mut conversation, env.page(), noop);
    let rendered =
        |message: Message| format!("── {} ──\n{}\n", json!(message.role).as_str().unwrap(), message.content);
    prompt_format.messages(&conversation).into_iter().map(rendered).collect()
}

/// Snapshots the expert's episode for [`goal_with_a_rejection`], and returns its reward.
fn check(name: &str, kind: ExpertKind) -> RewardBreakdown {
    let shop = hundred();
    let goal = goal_with_a_rejection(&shop).id;
    let turns = Expert::new(&shop, PROMPT.results_shown).episode(goal, kind).expect("an episode");
    check_turns(name, COMPACT, &shop, goal, &turns)
}

/// Snapshots an episode as the model reads and writes it, and returns its reward.
fn check_turns(
    name: &str,
    layout: Layout,
    shop: &Shop,
    goal: GoalId,
    turns: &[ExpertTurn],
) -> RewardBreakdown {
    let mut rendered = String::new();
    let mut session = Session::start(goal);
    let mut renderer = layout.renderer();
    for turn in turns {
        let page = session.page(shop);
        let prompt = renderer.render(&page, None);
        let completion = layout.render_completion(&turn.thought, &turn.action, &page);
        session.act(shop, &turn.action);
        // A line for each candidate, as a reader would set it.
        let prompt = match layout {
            Layout::Compact(_) => text(&prompt).replace(" $", "\n         $").replace("<|", "\n        <|"),
            Layout::Text => text(&prompt),
        };
        writeln!(rendered, "prompt      {prompt}\ncompletion  {}\n", text(&completion)).expect("memory");
    }
    let reward = reward_of(shop, goal, turns);
    in_area("prompts", || insta::assert_snapshot!(name, format!("{rendered}{reward}")));
    reward
}

fn reward_of(shop: &Shop, goal: GoalId, turns: &[ExpertTurn]) -> RewardBreakdown {
    let mut session = Session::start(goal);
    let mut outcomes = turns.iter().map(|turn| session.act(shop, &turn.action));
    outcomes.find_map(|outcome| outcome.breakdown).expect("the episode ends in a purchase")
}

#[test]
fn chats_are_rendered_as_recorded() {
    for prompt_format in PromptFormat::ALL.into_iter().filter(|prompt_format| prompt_format.is_chat()) {
        in_area("prompts", || insta::assert_snapshot!(prompt_format.name(), messages_of(prompt_format)));
    }
}

#[test]
fn the_thinking_expert_succeeds() {
    assert!(check("expert_thinking", ExpertKind::Thinking).is_success());
}

#[test]
fn the_expert_without_thoughts_buys_the_first_result() {
    assert!(!check("expert_no_thinking", ExpertKind::NoThinking).is_success());
}

#[test]
fn the_browsing_expert_reads_features_that_do_not_matter_to_it() {
    let shop = hundred();
    let habits = BrowsingHabits { by_pairs: 1.0, reads_features: 1.0, ..BrowsingHabits::NONE };
    let expert = BrowsingExpert::new(&shop, PROMPT.results_shown, habits);
    // Features whose note ends in `no`, back to the product, and the next action is not to leave it.
    let does_not_matter = |turns: &[ExpertTurn]| {
        turns[0].action == click("features")
            && turns[1].rejects_by_title()
            && turns[2].action != click("< prev")
    };
    let episode = |&goal: &GoalId| {
        let demonstrated = expert.episode(goal, &mut Seed(0).rng(Purpose::new("policy"), &[]))?;
        demonstrated.turns.windows(3).any(does_not_matter).then_some((goal, demonstrated))
    };
    let mut goals = shop.goals().split(Split::Train).iter();
    let (goal, demonstrated) = goals.find_map(episode).expect("some rivals lack what is wanted");
    for (name, layout) in [("expert_browsing", COMPACT), ("expert_browsing_text", Layout::Text)] {
        let reward = check_turns(name, layout, &shop, goal, &demonstrated.turns);
        assert_eq!(reward.total(), demonstrated.reward);
    }
}

fn click(label: &str) -> Action {
    Action::Click(label.into())
}

/// Every page of some random episodes.
fn walk(shop: &Shop, mut visit: impl FnMut(&Page)) {
    let goals = shop.goals().goals();
    for episode in 0..100 {
        let mut rng = Seed(3).rng(Purpose::new("policy"), &[episode]);
        let goal = &goals[rng.random_range(0..goals.len() as u64) as usize];
        let mut session = Session::start(goal.id);
        for _ in 0..10 {
            let page = session.page(shop);
            visit(&page);
            let clicks: Vec<Action> = page.available_actions().clicks().collect();
            let action = match page {
                Page::Done(_) => break,
                Page::Search(_) => Action::Search(goal.query.to_lowercase()),
                _ => clicks[rng.random_range(0..clicks.len() as u64) as usize].clone(),
            };
            session.act(shop, &action);
        }
    }
}

#[test]
fn every_available_action_is_rendered_and_parsed_back() {
    for shop in [hundred(), difficult()] {
        let titles = shop.catalog().products().iter().map(|product| &*product.title);
        let marks = marks();
        let marks: Vec<&str> = marks.iter().map(String::as_str).collect();
        let tokenizer = BpeTokenizer::train(titles, 600, &marks).expect("room for all bytes and marks");
        walk(&shop, |page| {
            for action in page.available_actions().clicks() {
                for prompt_format in PromptFormat::ALL {
                    let text = prompt_format.render_completion("is it red? no", &action);
                    let parsed =
                        prompt_format.parse(&Message::text(Role::Assistant, text), page, Compat::Repaired);
                    assert_eq!(
                        (parsed.action, parsed.is_well_formed),
                        (action.clone(), true),
                        "{prompt_format}"
                    );
                }
            }
            let search = Action::Search("a lamp [60x80], \"red\"".into());
            for action in page.available_actions().clicks().chain([search]) {
                let thoughts = [("", None), ("is it red? no", Some("is it red? no"))];
                for ((thought, written), layout) in
                    thoughts.into_iter().flat_map(|of| [(of, COMPACT), (of, Layout::Text)])
                {
                    let completion = layout.render_completion(thought, &action, page);
                    let expected = ParsedCompletion {
                        thought: written.map(str::to_owned),
                        action: action.clone(),
                        is_well_formed: true,
                        terminates: false,
                    };
                    assert_eq!(layout.parse(&text(&completion), page, Compat::Repaired), expected);
                    let ids = encode_pieces(&tokenizer, &completion).expect("known marks");
                    assert_eq!(layout.parse(&tokenizer.decode(&ids), page, Compat::Repaired), expected);
                }
            }
        });
    }
}
