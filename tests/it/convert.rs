//! Recorded episodes are exported as training data and imported from it; what cannot be replayed is refused by line and
//! turn.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use crate::common::command::{CORNER_SHOP, answer, path, temporary, webshop};
use crate::common::corner_shop::{corner_shop, goal};
use crate::common::in_area;
use serde_json::{Value, json};
use webshop_agent::{
    AgentError, Decision, Episode, EpisodeCoordinates, History, LaneView, OraclePolicy, Policy, PromptFormat,
    PromptProvenance, RandomPolicy, RolloutConfig, RulePolicy, ShopR1Variant, Task, convert::ChatFileFormat,
    convert::Exported, convert::Exporter, convert::Importer, rollout,
};
use webshop_env::{Compat, Shop};
use webshop_lm::chat::{Message, Role};
use webshop_products::{GoalId, Seed};
use webshop_training::config::CatalogConfig;
use webshop_training::open_shop;

const FORMATS: [ChatFileFormat; 3] =
    [ChatFileFormat::Messages, ChatFileFormat::Sharegpt, ChatFileFormat::Agenttraj];

/// The episodes of a policy for some goals, two for each.
fn episodes_of(shop: &Arc<Shop>, goals: &[GoalId], policy: &mut dyn Policy) -> Vec<Episode> {
    let coordinates = |goal, sample| EpisodeCoordinates { sample, ..EpisodeCoordinates::of_goal(goal) };
    let task = |(goal, sample)| Task::new(shop.clone(), coordinates(goal, sample));
    let tasks: Vec<Task> = goals.iter().flat_map(|&goal| [(goal, 0), (goal, 1)]).map(task).collect();
    let limits = RolloutConfig { max_steps: 9, lanes: 16 };
    rollout(policy, &tasks, limits, &mut |_, _| ()).expect("policies without a model do not fail")
}

/// The episodes as lines of a rollout file.
fn records(episodes: &[Episode]) -> Vec<String> {
    episodes.iter().map(|episode| serde_json::to_string(episode).expect("JSON")).collect()
}

/// All lines of an exported episode.
fn exported(exporter: &Exporter, record: &str) -> Vec<Value> {
    match exporter.export(record, 1).expect("an episode of this shop") {
        Exported::Lines(lines) => lines,
        Exported::Skipped(reason) => panic!("{reason}"),
    }
}

fn imported(mut importer: Importer, lines: &[Value]) -> Result<Vec<Episode>, AgentError> {
    let mut episodes = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        episodes.extend(importer.import(&line.to_string(), at + 1)?);
    }
    episodes.extend(importer.end()?);
    Ok(episodes)
}

/// The parts of an episode that export and import keep.
fn done(episode: &Episode) -> impl PartialEq + std::fmt::Debug {
    let turns: Vec<_> = episode
        .turns
        .iter()
        .map(|turn| {
            (turn.action.to_string(), turn.reward, turn.after, turn.agent.terminates, turn.noop.is_some())
        })
        .collect();
    let Episode { meta, config, start, reward, breakdown, terminated, truncated, .. } = episode;
    (turns, meta.coordinates, *config, *start, *reward, *breakdown, *terminated, *truncated)
}

fn is_expressible(format: ChatFileFormat, prompt_format: PromptFormat) -> bool {
    format != ChatFileFormat::Agenttraj || prompt_format.history() == History::Append
}

/// Asserts that these episodes are the same after export and import in every file format and prompt format.
fn check_round_trip(shop: &Arc<Shop>, episodes: &[Episode]) {
    let records = records(episodes);
    for format in FORMATS {
        for prompt_format in
            PromptFormat::ALL.into_iter().filter(|&prompt_format| is_expressible(format, prompt_format))
        {
            let exporter = Exporter::new(shop.clone(), format, Some(prompt_format));
            let lines: Vec<Value> = records.iter().flat_map(|record| exported(&exporter, record)).collect();
            let n_turns = episodes.iter().map(|episode| episode.turns.len()).sum();
            let is_rebuilt = prompt_format.history() == History::Rebuild;
            assert_eq!(lines.len(), if is_rebuilt { n_turns } else { episodes.len() });
            // AgentGym's own lines have neither prompt format nor step limit.
            let given = (format == ChatFileFormat::Agenttraj).then_some((prompt_format, 9));
            let importer =
                Importer::new(shop.clone(), format, given.map(|given| given.0), given.map(|given| given.1));
            let back = imported(importer, &lines).expect("what was exported is imported");
            assert_eq!(back.len(), episodes.len(), "{format}, {prompt_format}");
            for (back, there) in back.iter().zip(episodes) {
                assert_eq!(done(back), done(there), "{format}, {prompt_format}");
            }
        }
    }
}

#[test]
fn episodes_are_the_same_after_export_and_import() {
    let embedded = CatalogConfig { source: "100".into(), ..CatalogConfig::default() };
    for shop in [Arc::new(corner_shop()), Arc::new(open_shop(&embedded).expect("the shop opens"))] {
        let goals: Vec<GoalId> = shop.goals().goals().iter().map(|goal| goal.id).take(12).collect();
        let policies: [&mut dyn Policy; 3] =
            [&mut RandomPolicy::new(Seed(5)), &mut RulePolicy, &mut OraclePolicy];
        for policy in policies {
            check_round_trip(&shop, &episodes_of(&shop, &goals, policy));
        }
    }
}

/// A policy with scripted completions in a prompt format.
struct Scripted(PromptFormat, &'static [&'static str]);

impl Policy for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Decision>, AgentError> {
        let decide = |view: &LaneView<'_>| match self.1.get(view.turn) {
            None => Decision::Stop,
            Some(&text) => {
                let parsed = self.0.parse(&Message::text(Role::Assistant, text), view.page, Compat::Repaired);
                Decision::completed(text.to_owned(), parsed, None)
            }
        };
        Ok(lanes.iter().map(decide).collect())
    }

    fn prompt(&self) -> Option<PromptProvenance> {
        Some(PromptProvenance {
            model: Some("parrot".into()),
            ..PromptProvenance::new(self.0, self.0.version())
        })
    }
}

/// Thoughts, a malformed completion, an unavailable action, and a terminated episode.
const REACT: Scripted = Scripted(
    PromptFormat::AgentgymReact,
    &[
        "Thought:\nWhat [SEP] is it? Action: none.\n\nAction:\nsearch[canvas sneakers]",
        "I would click[nothing here]",
        "Thought:\nFirst <one>, \"quoted\"\n\nAction:\nclick[no such button]",
        "Thought:\n\n\nAction:\nclick[b0sneak001]",
    ],
);

#[test]
fn completions_are_exported_as_they_were_written() {
    let shop = Arc::new(corner_shop());
    let made = episodes_of(&shop, &[GoalId(0)], &mut { REACT });
    let exporter = |format| Exporter::new(shop.clone(), format, None);
    for format in FORMATS {
        let lines: Vec<Value> =
            records(&made).iter().flat_map(|record| exported(&exporter(format), record)).collect();
        let back =
            imported(Importer::new(shop.clone(), format, None, Some(9)), &lines).expect("it is imported");
        for (back, there) in back.iter().zip(&made) {
            assert_eq!(done(back), done(there), "{format}");
            let written = |episode: &Episode| -> Vec<_> {
                let turns = episode.turns.iter();
                turns
                    .map(|turn| {
                        (turn.agent.completion.clone(), turn.agent.thought.clone(), turn.agent.is_well_formed)
                    })
                    .collect()
            };
            assert_eq!(written(back), written(there), "{format}");
        }
        let known = format != ChatFileFormat::Agenttraj;
        assert_eq!(back[0].meta.model.as_deref(), known.then_some("parrot"));
        assert_eq!(&*back[0].meta.policy, if known { "scripted" } else { "imported" });
    }
    check_round_trip(&shop, &made);
}

#[test]
fn episodes_that_a_format_cannot_express_are_left_out() {
    let shop = Arc::new(corner_shop());
    let terminating = Scripted(
        PromptFormat::ShopR1(ShopR1Variant::AllPages),
        &[r#"{"rationale": "dear", "action": {"type": "terminate"}}"#],
    );
    let made = episodes_of(&shop, &[GoalId(0)], &mut { terminating });
    let record = &records(&made)[0];
    let own = Exporter::new(shop.clone(), ChatFileFormat::Messages, None);
    let back =
        imported(Importer::new(shop.clone(), ChatFileFormat::Messages, None, None), &exported(&own, record));
    assert_eq!(done(&back.expect("it is imported")[0]), done(&made[0]));
    let other = Exporter::new(shop.clone(), ChatFileFormat::Messages, Some(PromptFormat::Ragen));
    let Exported::Skipped(reason) = other.export(record, 1).expect("an episode of this shop") else {
        panic!("it is exported")
    };
    assert_eq!(
        reason,
        "turn 1: `ragen` cannot express `terminate`; not as `<think>dear</think><answer>noop</answer>`"
    );
    let nothing = records(&episodes_of(&shop, &[GoalId(0)], &mut Scripted(PromptFormat::Ragen, &[])));
    let Exported::Skipped(reason) = other.export(&nothing[0], 1).expect("an episode of this shop") else {
        panic!("it is exported")
    };
    assert_eq!(reason, "the episode has no turns");
}

/// The rule agent's episode for the sneakers, which it buys without options.
fn sneakers(shop: &Arc<Shop>) -> String {
    let goal = goal(shop, "B0SNEAK001", &["navy blue", "9"]).id;
    records(&episodes_of(shop, &[goal], &mut RulePolicy)).remove(0)
}

/// Snapshots an exported episode.
fn check(name: &str, format: ChatFileFormat, prompt_format: PromptFormat) {
    let shop = Arc::new(corner_shop());
    let lines = exported(&Exporter::new(shop.clone(), format, Some(prompt_format)), &sneakers(&shop));
    let lines = lines.iter().map(|line| serde_json::to_string_pretty(line).expect("JSON"));
    let text = lines.collect::<Vec<_>>().join("\n").replace(shop.goals().fingerprint(), "GOALS");
    in_area("convert", || insta::assert_snapshot!(name, text));
}

#[test]
fn an_episode_as_messages() {
    check("messages", ChatFileFormat::Messages, PromptFormat::ToolCall);
}

#[test]
fn an_episode_as_sharegpt() {
    check("sharegpt", ChatFileFormat::Sharegpt, PromptFormat::VerlAgent);
}

#[test]
fn an_episode_as_agenttraj() {
    check("agenttraj", ChatFileFormat::Agenttraj, PromptFormat::AgentgymReact);
}

/// Asserts the refusal of the episode of the sneakers with one change.
fn check_refused(
    format: ChatFileFormat,
    prompt_format: PromptFormat,
    change: impl Fn(&mut Vec<Value>),
    expected: &str,
) {
    let shop = Arc::new(corner_shop());
    let mut lines = exported(&Exporter::new(shop.clone(), format, Some(prompt_format)), &sneakers(&shop));
    change(&mut lines);
    let refusal = imported(Importer::new(shop, format, None, None), &lines)
        .expect_err("it cannot be replayed")
        .to_string();
    assert!(refusal.starts_with(expected), "{refusal}");
}

#[test]
fn what_cannot_be_replayed_is_refused_by_line_and_turn() {
    let react = |change: &dyn Fn(&mut Value), expected| {
        check_refused(
            ChatFileFormat::Agenttraj,
            PromptFormat::AgentgymReact,
            |lines| change(&mut lines[0]),
            expected,
        );
    };
    let edit = |place: usize, from: &'static str, to: &'static str| {
        move |line: &mut Value| {
            let value = &mut line["conversations"][place]["value"];
            let text = value.as_str().expect("a text").to_owned();
            assert!(text.contains(from), "{text}");
            *value = text.replacen(from, to, 1).into();
        }
    };
    // Rules and agreement, then page and completion in turn: the second completion is the sixth message.
    let page = "line 1: turn 2: the page before it is another one here: ";
    react(&edit(4, "Page 1", "Page 2"), page);
    react(&edit(3, "search[", "click["), page);
    let go_on = |line: &mut Value| {
        let conversations = line["conversations"].as_array_mut().expect("a list");
        let turn = conversations[2..4].to_vec();
        conversations.extend(turn);
    };
    react(&go_on, "line 1: turn 4: the episode is over before it");
    react(
        &|line: &mut Value| line["item_id"] = json!("webshop_999"),
        "line 1: goal `999` does not exist: there are ",
    );
    react(&|line: &mut Value| line["item_id"] = json!("sneakers"), "line 1: the line has no goal");
    react(
        &|line: &mut Value| line["conversations"][0]["from"] = json!("cat"),
        "line 1: not a chat: `cat` is not a role",
    );
    react(&|line: &mut Value| *line = json!([]), "line 1: not a chat: ");
    let ragen = |change: &dyn Fn(&mut Value), expected| {
        check_refused(ChatFileFormat::Messages, PromptFormat::Ragen, |lines| change(&mut lines[0]), expected);
    };
    ragen(
        &|line| line["metadata"]["total_reward"] = json!(1.0),
        "line 1: turn 3: the reward is 1 in the line and ",
    );
    ragen(
        &|line| line["metadata"]["goal_fingerprint"] = json!("f00d"),
        "line 1: the line has the goals `f00d`",
    );
    ragen(&|line| line["metadata"]["prompt_format"] = Value::Null, "line 1: the line has no `prompt_format`");
    let verl = |change: &dyn Fn(&mut Vec<Value>), expected| {
        check_refused(ChatFileFormat::Sharegpt, PromptFormat::VerlAgent, change, expected);
    };
    verl(&|lines| drop(lines.remove(1)), "line 2: turn 3: it does not continue the line before");
    verl(&|lines| lines[2]["meta"]["goal"] = json!(0), "line 3: turn 3: it does not continue");
    verl(
        &|lines| lines[1]["meta"]["turn"] = Value::Null,
        "line 2: `verl-agent` has one chat per turn, and the line has no `turn`",
    );
    verl(&|lines| lines[1]["conversations"] = json!([]), "line 2: turn 2: there is no completion");
}

#[test]
fn trajectories_of_other_programs_are_imported() {
    let shop = Arc::new(corner_shop());
    let record = sneakers(&shop);
    let mut line = exported(
        &Exporter::new(shop.clone(), ChatFileFormat::Agenttraj, Some(PromptFormat::AgentgymReact)),
        &record,
    )
    .remove(0);
    line["conversations"][0]["value"] = json!("These are the rules.");
    line["conversations"][1]["value"] = json!("OK. I agree.");
    line["by"] = json!("somebody");
    let back = imported(Importer::new(shop.clone(), ChatFileFormat::Agenttraj, None, None), &[line])
        .expect("it is imported");
    let actions: Vec<String> = back[0].turns.iter().map(|turn| turn.action.to_string()).collect();
    let recorded: Value = serde_json::from_str(&record).expect("JSON");
    let recorded: Vec<&str> = recorded["turns"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|turn| turn["action"].as_str().expect("a text"))
        .collect();
    assert_eq!(actions, recorded);
}

#[test]
fn files_are_the_same_after_export_and_import() {
    let dir = temporary();
    let [episodes, chats, back] =
        ["episodes.jsonl", "chats.jsonl", "back.jsonl"].map(|name| dir.path().join(name));
    let shop = ["--catalog", CORNER_SHOP];
    let run = |args: &[&str]| answer(&[args, &shop[..]].concat());
    run(&["rollout", "--policy", "oracle", "--split", "all", "--out", path(&episodes)]);
    let to = ["convert", path(&episodes), "--to", "messages", "--prompt-format", "tool-call"];
    assert_eq!(run(&[&to[..], &["--out", path(&chats)]].concat()), "");
    assert_eq!(run(&to), fs::read_to_string(&chats).expect("a file"), "standard output has the same");
    run(&["convert", path(&chats), "--from", "messages", "--out", path(&back)]);
    let replayed = run(&["replay", path(&back)]);
    assert_eq!(replayed, run(&["replay", path(&episodes)]));
    let names: BTreeSet<String> = fs::read_to_string(&chats)
        .expect("a file")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["custom_id"].to_string())
        .collect();
    assert_eq!(names.len(), corner_shop().goals().goals().len(), "every episode has an id of its own");
}

#[test]
fn episodes_that_are_left_out_are_counted() {
    let dir = temporary();
    let file = dir.path().join("episodes.jsonl");
    let shop = Arc::new(corner_shop());
    let terminating = Scripted(
        PromptFormat::ShopR1(ShopR1Variant::AllPages),
        &[r#"{"rationale": "dear", "action": {"type": "terminate"}}"#],
    );
    let mut all = records(&episodes_of(&shop, &[GoalId(0)], &mut { terminating }));
    all.push(sneakers(&shop));
    fs::write(&file, all.join("\n")).expect("a written file");
    let args =
        ["convert", path(&file), "--to", "sharegpt", "--prompt-format", "ragen", "--catalog", CORNER_SHOP];
    let answer = webshop(&args, "");
    assert_eq!((answer.code, answer.stdout.lines().count()), (Some(2), 1));
    let message = answer.stderr.replace(path(dir.path()), "DIR");
    in_area("cli", || insta::assert_snapshot!("convert_left_out", message));
}
