//! Parsing and rendering of each prompt format.

use serde_json::json;
use webshop_env::{Compat, NoopReason, ResultItem, ResultsPage, SearchPage};
use webshop_products::{Cents, ProductId, ProductIdx};

use super::*;
use crate::next_action::{BuyNowAs, ExampleSource, NextAction, TakenStep};
use webshop_lm::chat::{Role, ToolCall};

const ALL_PAGES: PromptFormat = PromptFormat::ShopR1(ShopR1Variant::AllPages);
const LATEST: PromptFormat = PromptFormat::ShopR1(ShopR1Variant::LatestPage);
const MINIMAL: PromptFormat = PromptFormat::ShopR1(ShopR1Variant::Minimal);

fn door() -> Page {
    Page::Search(SearchPage { instruction: "a lamp".into() })
}

fn results() -> Page {
    let lamp = ResultItem {
        product: ProductIdx(0),
        id: ProductId::new("B0LAMPAAAA").unwrap(),
        title: "Lamp, 12\" <tall>".into(),
        price_tag: "$5.0".into(),
        lowest_price: Cents(500),
        highest_price: Cents(500),
        visited: true,
    };
    Page::Results(ResultsPage {
        instruction: "a lamp".into(),
        query: "lamp".into(),
        page_number: 1,
        total: 1,
        items: vec![lamp],
    })
}

fn parse(prompt_format: PromptFormat, text: &str) -> ParsedCompletion {
    prompt_format.parse(&Message::text(Role::Assistant, text), &door(), Compat::Repaired)
}

/// Checks action, form and thought of a completion.
fn check(prompt_format: PromptFormat, text: &str, action: &str, is_well_formed: bool, thought: Option<&str>) {
    let parsed = parse(prompt_format, text);
    assert_eq!(parsed.action.to_string(), action, "{text}");
    assert_eq!(
        (parsed.is_well_formed, parsed.thought.as_deref(), parsed.terminates),
        (is_well_formed, thought, false),
        "{text}"
    );
}

#[test]
fn names_are_parsed_back() {
    for prompt_format in PromptFormat::ALL {
        assert_eq!(prompt_format.name().parse(), Ok(prompt_format));
        assert_eq!(serde_json::to_value(prompt_format).unwrap(), prompt_format.name());
        assert!(prompt_format.version().starts_with(prompt_format.name()), "{}", prompt_format.version());
    }
    let message = "chatty".parse::<PromptFormat>().unwrap_err();
    assert!(message.contains("`chatty`") && message.contains("tool-call"), "{message}");
}

#[test]
fn rendered_completions_are_parsed() {
    let check = |action: Action| {
        for prompt_format in PromptFormat::ALL {
            let text = prompt_format.render_completion("cheap, and \"red\"", &action);
            let parsed = parse(prompt_format, &text);
            assert_eq!(parsed.action, action, "{prompt_format}: {text}");
            assert!(parsed.is_well_formed && !parsed.terminates, "{prompt_format}: {text}");
            let thought = prompt_format.form().thought.map(|_| "cheap, and \"red\"");
            assert_eq!(parsed.thought.as_deref(), thought, "{prompt_format}: {text}");
        }
    };
    check(Action::Click("12\" x 24\" \\ tall".into()));
    check(Action::Click("b0lampaaaa".into()));
    check(Action::Search("a red lamp".into()));
}

#[test]
fn completions_have_the_stated_form() {
    for prompt_format in PromptFormat::ALL {
        let form = prompt_format.form();
        let text = prompt_format.render_completion("so", &Action::Search("lamp".into()));
        let thought =
            form.thought.map_or(String::new(), |(opening, closing)| format!("{opening}so{closing}"));
        assert_eq!(
            text.replace(": ", ":"),
            format!("{thought}{}lamp{}", form.search.0.trim(), form.search.1).replace(": ", ":")
        );
    }
}

#[test]
fn verl_agent_parses_the_end_of_a_completion_without_tags() {
    let check = |text, action, is_well_formed, thought| {
        check(PromptFormat::VerlAgent, text, action, is_well_formed, thought)
    };
    check("<think>Red.</think> <action>Click[Buy Now]</action>", "click[buy now]", true, Some("red."));
    check("<action>click[x]</action>", "click[x]", false, None);
    // The last twenty characters are "ve it: click[prev]".
    check("I would rather leave it: click[< prev]", "noop", false, None);
    check("click[next >]", "click[next >]", false, None);
    check("<think>open", "noop", false, None);
}

#[test]
fn ragen_needs_thought_and_answer_and_takes_one_action() {
    let check = |text, action, is_well_formed, thought| {
        check(PromptFormat::Ragen, text, action, is_well_formed, thought)
    };
    check("<think>a</think>\n<answer>search[x] || click[y]</answer>", "search[x]", true, Some("a"));
    check("<think></think><answer>nothing</answer>", "noop", true, Some(""));
    check("<think>a</think> so <answer>click[y]</answer>", "noop", false, None);
    check("<answer>click[y]</answer>", "noop", false, None);
}

#[test]
fn react_parses_the_text_after_the_last_heading() {
    let check = |text, action, is_well_formed, thought| {
        check(PromptFormat::AgentgymReact, text, action, is_well_formed, thought);
    };
    check("Thought:\nred\n\nAction:\nclick[x]\nand more", "click[x]", true, Some("red"));
    check("Thought: Action: none yet. Action: search[y]", "search[y]", true, Some("Action: none yet."));
    check("Action: click[x]", "click[x]", false, None);
    check("click[x]", "click[x]", false, None);
}

#[test]
fn calls_in_the_text_and_beside_it_are_parsed() {
    let text = |name: &str, arguments: &str| {
        format!("Well.\n<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>")
    };
    let check = |text: &str, action: &str, is_well_formed| {
        check(PromptFormat::ToolCall, text, action, is_well_formed, Some("Well."));
    };
    check(&text("click", r#"{"label": "Buy Now"}"#), "click[buy now]", true);
    check(&text("search", r#"{"query": "a\nlamp"}"#), "search[a lamp]", true);
    check(&text("buy", r#"{"label": "x"}"#), "noop", false);
    check(&text("click", r#"{"label": 3}"#), "noop", false);
    check("Well.", "noop", false);
    let call = ToolCall {
        id: "c1".into(),
        name: "click".into(),
        arguments: json!({ "label": "x" }).as_object().cloned().unwrap(),
    };
    let message = Message { tool_calls: vec![call], ..Message::text(Role::Assistant, "") };
    assert_eq!(
        PromptFormat::ToolCall.parse(&message, &door(), Compat::Repaired).action,
        Action::Click("x".into())
    );
}

#[test]
fn actions_are_read_by_the_rules_of_the_shop() {
    let call = Action::Search("a [b]".into());
    for prompt_format in [PromptFormat::Compact, PromptFormat::ToolCall, PromptFormat::VerlAgent] {
        let text = prompt_format.render_completion("", &call);
        let action =
            |rules| prompt_format.parse(&Message::text(Role::Assistant, &text), &door(), rules).action;
        assert_eq!(action(Compat::Repaired), call, "{prompt_format}");
        assert_eq!(action(Compat::Original), Action::Noop(NoopReason::UnknownVerb), "{prompt_format}");
    }
}

#[test]
fn completion_text_and_completion_message_are_inverse() {
    let prompt_format = PromptFormat::ToolCall;
    for thought in ["", "Well, \"so\"."] {
        let parsed = format!(
            "{thought}\n{}",
            prompt_format.render_completion("", &Action::Click("12\" \\ tall".into()))
        );
        let beside = prompt_format.completion_message(parsed.trim(), "c7");
        assert_eq!((beside.content.as_str(), beside.tool_calls[0].id.as_str()), (thought, "c7"));
        assert_eq!(prompt_format.completion_text(&beside), parsed.trim());
        assert_eq!(prompt_format.parse(&beside, &door(), Compat::Repaired), parse(prompt_format, &parsed));
    }
    for text in ["no call", "<tool_call>\n{broken}\n</tool_call>"] {
        let message = prompt_format.completion_message(text, "c7");
        assert_eq!((prompt_format.completion_text(&message).as_str(), message.tool_calls.len()), (text, 0));
    }
    // Elsewhere, text is text.
    let parsed = prompt_format.render_completion("", &Action::Click("x".into()));
    assert_eq!(PromptFormat::Ragen.completion_message(&parsed, "c7"), Message::text(Role::Assistant, parsed));
}

#[test]
fn shop_r1_needs_one_json_object_and_nothing_else() {
    let check = |text, action, is_well_formed: bool| {
        let thought = is_well_formed.then_some("r");
        check(ALL_PAGES, text, action, is_well_formed, thought);
    };
    check(r#"{"rationale": "r", "action": {"type":"click","name":"Buy Now"}}"#, "click[buy now]", true);
    check(
        r#"{"action": {"type":"type_and_submit","name":"search_input","text":"a  [b]\nc"}, "rationale": "r"}"#,
        "search[a (b) c]",
        true,
    );
    check(
        r#"{"rationale": "r", "action": {"type":"type_and_submit","name":"box","text":"a"}}"#,
        "noop",
        true,
    );
    check(
        r#"{"rationale": "r", "action": {"type":"type_and_submit","name":"search_input","text":" "}}"#,
        "noop",
        true,
    );
    // Extra fields are ignored; an action without a required field is a no-op.
    check(r#"{"rationale": "r", "action": {"type":"click","name":"x","text":""}}"#, "click[x]", true);
    check(r#"{"rationale": "r", "action": {"type":"click"}}"#, "noop", true);
    check(r#"{"rationale": "r", "action": {"type":"buy"}}"#, "noop", false);
    check(r#"{"rationale": 1, "action": {"type":"terminate"}}"#, "noop", false);
    check(r#"{"rationale": "r", "mood": "good", "action": {"type":"terminate"}}"#, "noop", false);
    check("```json\n{}\n```", "noop", false);
    let left = parse(ALL_PAGES, r#"{"rationale": "r", "action": {"type":"terminate"}}"#);
    assert!(left.terminates && left.is_well_formed && left.action == Action::Noop(NoopReason::Malformed));
}

#[test]
fn shop_r1_searches_only_on_pages_with_a_search_bar() {
    let text =
        r#"{"rationale": "r", "action": {"type":"type_and_submit","name":"search_input","text":"lamp"}}"#;
    let on =
        |page: &Page| ALL_PAGES.parse(&Message::text(Role::Assistant, text), page, Compat::Repaired).action;
    assert_eq!(on(&door()), Action::Search("lamp".into()));
    assert_eq!(on(&results()), Action::Noop(NoopReason::NotOnPage));
}

#[test]
fn verl_agent_shows_the_page_after_the_instruction() {
    assert_eq!(PromptFormat::VerlAgent.observation(&door()), "'Search'");
    let shown = PromptFormat::VerlAgent.observation(&results());
    assert!(shown.starts_with("'Back to Search' [SEP] 'Page 1 (Total results: 1)' [SEP] "), "{shown}");
}

#[test]
fn shop_r1_names_usable_elements() {
    let shown = ALL_PAGES.observation(&results());
    assert!(shown.contains("<a name=\"b0lampaaaa\" clicked>\n<p>Lamp, 12\" <tall></p>\n"), "{shown}");
    assert!(ALL_PAGES.observation(&door()).contains("<input name=\"search_input\">"));
}

#[test]
fn shop_r1_drops_the_oldest_pages_first() {
    let step = |page: &str, action: &str| TakenStep {
        page: page.into(),
        action: NextAction::of(&action.parse().expect("never fails"), BuyNowAs::Click),
        rationale: "I \"try\".".into(),
    };
    let example = Example {
        id: "here".into(),
        source: ExampleSource::Human,
        split: "test".into(),
        goal: None,
        step: 2,
        context: vec![step("<p>door</p>\n", "search[lamp]"), step("<p>list</p>\n", "dance")],
        page: "<p>now</p>\n".into(),
        rationale: String::new(),
        action: NextAction::Terminate {},
    };
    let asked = |prompt_format: PromptFormat, n_dropped| {
        let messages =
            prompt_format.single_step_messages(&example, n_dropped, false).expect("a format of Shop-R1");
        (messages[0].content.len(), messages[1].content.clone())
    };
    let searched = r#"Action 1: {"type":"type_and_submit","name":"search_input","text":"lamp"}"#;
    let whole = format!(
        "Page 1:\n<p>door</p>\n{searched}\n\nPage 2:\n<p>list</p>\nAction 2: {{}}\n\nPage 3:\n<p>now</p>\n"
    );
    assert_eq!(asked(ALL_PAGES, 0).1, whole);
    let less = format!("{searched}\nPage 2:\n<p>list</p>\nAction 2: {{}}\n\nPage 3:\n<p>now</p>\n");
    assert_eq!(asked(ALL_PAGES, 1).1, less);
    let least = format!("{searched}\nAction 2: {{}}\nPage 3:\n<p>now</p>\n");
    for n_dropped in [0, 1] {
        assert_eq!(asked(LATEST, n_dropped).1, least);
        assert_eq!(asked(MINIMAL, n_dropped).1, least);
    }
    assert_eq!(asked(ALL_PAGES, 2).1, least);
    let words = |prompt_format| asked(prompt_format, 0).0;
    assert_eq!(words(ALL_PAGES), words(LATEST));
    assert!(words(MINIMAL) < words(ALL_PAGES) / 10);
    assert_eq!(PromptFormat::VerlAgent.single_step_messages(&example, 0, false), None);
    let recalled = MINIMAL.single_step_messages(&example, 0, true).expect("a format of Shop-R1");
    let first = recalled[1].content.lines().next();
    let searched = &searched["Action 1: ".len()..];
    assert_eq!(first, Some(&*format!(r#"Action 1: {{"rationale": "I \"try\".", "action": {searched}}}"#)));
}

#[test]
fn the_completion_of_an_example_is_that_of_its_action() {
    let action: Action = "click[12\" x 24\"]".parse().expect("never fails");
    let gold = NextAction::of(&action, BuyNowAs::Click).expect("a move");
    let example = Example {
        id: String::new(),
        source: ExampleSource::Demonstration,
        split: String::new(),
        goal: None,
        step: 0,
        context: Vec::new(),
        page: String::new(),
        rationale: "I say \"so\".".into(),
        action: gold,
    };
    assert_eq!(
        PromptFormat::single_step_completion(&example),
        ALL_PAGES.render_completion("I say \"so\".", &action)
    );
}
