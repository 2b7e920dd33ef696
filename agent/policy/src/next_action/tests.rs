//! Parsing of completions, the mapping to the shop, and the tokens of the rationale.

use webshop_env::{Action, AvailableActions, NoopReason};

use super::*;

/// Checks the error of an action under each mode; `ok` if there is none.
#[track_caller]
fn check(action: &str, json: &str, schema: &str, strict: &str) {
    let completion = format!(r#"{{"rationale": "r", "action": {action}}}"#);
    let result = |mode| {
        NextActionCompletion::read(&completion, mode).map_or_else(|error| error.to_string(), |_| "ok".into())
    };
    let modes = [FormatMode::Json, FormatMode::Schema, FormatMode::Strict];
    assert_eq!(modes.map(result), [json, schema, strict], "{action}");
}

#[test]
fn each_mode_includes_the_checks_of_the_one_before() {
    let keys =
        |given| format!("the keys of `action` are {given} instead of exactly `type`, `name` and `text`");
    check(r#"{"type":"click","name":"a","text":""}"#, "ok", "ok", "ok");
    check(r#"{"type":"type_and_submit","name":"a","text":"b"}"#, "ok", "ok", "ok");
    check(r#"{"type":"terminate","name":"","text":""}"#, "ok", "ok", "ok");
    check(r#"{"type":"terminate"}"#, "ok", "ok", &keys("`type`"));
    check(r#"{"type":"click"}"#, "ok", "ok", &keys("`type`"));
    let more = keys("`type`, `name`, `text`, `why`");
    check(r#"{"type":"click","name":"a","text":"","why":1}"#, "ok", "ok", &more);
    let unknown = "`action.type` is `scroll`, not `click`, `type_and_submit` or `terminate`";
    check(r#"{"type":"scroll","name":"a","text":""}"#, "ok", unknown, unknown);
    let strict = |action, problem| check(action, "ok", "ok", problem);
    strict(r#"{"type":"click","name":"","text":""}"#, "`action.name` is empty in a `click`");
    strict(r#"{"type":"click","name":"a","text":"b"}"#, "`action.text` is not empty in a `click`");
    strict(
        r#"{"type":"type_and_submit","name":"a","text":""}"#,
        "`action.text` is empty in a `type_and_submit`",
    );
    strict(r#"{"type":"terminate","name":"a","text":""}"#, "`action.name` is not empty in a `terminate`");
    // White space fills a field, as it does in the re-implementation.
    check(r#"{"type":"click","name":" ","text":""}"#, "ok", "ok", "ok");
}

#[test]
fn malformed_completions_say_why() {
    let check = |completion: &str, expected: &str| {
        let error = NextActionCompletion::read(completion, FormatMode::Json).unwrap_err().to_string();
        assert_eq!(error, expected, "{completion}");
    };
    let json = |problem: &str| format!("the completion is not one JSON value: {problem}");
    check("", &json("EOF while parsing a value at column 0"));
    check("{} done", &json("trailing characters at column 4"));
    check("{}{}", &json("trailing characters at column 3"));
    check("```json\n{}\n```", &json("expected value at column 1"));
    check(r#"{"rationale": NaN}"#, &json("expected value at column 15"));
    check("[]", "the completion is not a JSON object");
    check("{}", "the keys are none instead of exactly `rationale` and `action`");
    check(r#"{"action": {}}"#, "the keys are `action` instead of exactly `rationale` and `action`");
    let three = r#"{"rationale": "", "action": {}, "mood": 1}"#;
    check(three, "the keys are `rationale`, `action`, `mood` instead of exactly `rationale` and `action`");
    check(r#"{"rationale": null, "action": {}}"#, "`rationale` is not a string");
    check(r#"{"rationale": "", "action": "click"}"#, "`action` is not an object");
    check(r#"{"rationale": "", "action": {}}"#, "`action.type` is missing");
    check(r#"{"rationale": "", "action": {"type": 1}}"#, "`action.type` is not a string");
    check(r#"{"rationale": "", "action": {"type": "click", "name": null}}"#, "`action.name` is not a string");
    check(r#"{"rationale": "", "action": {"type": "click", "text": []}}"#, "`action.text` is not a string");
}

#[test]
fn the_last_of_duplicate_keys_counts() {
    let text = r#" {"rationale":"a", "action": {"type":"terminate"}, "rationale":"\u0062c",
        "action": {"type":"terminate", "type":"click", "name":"x\ty"}} "#;
    let completion = NextActionCompletion::read(text, FormatMode::Schema).unwrap();
    assert_eq!((completion.rationale.as_str(), completion.action.name.as_str()), ("bc", "x\ty"));
    assert_eq!(completion.action.action_type(), Some(ActionType::Click));
    assert_eq!(&text[rationale_span(text).unwrap()], r"\u0062c");
}

#[test]
fn the_rationale_is_found_in_any_key_order() {
    let check = |completion: &str, expected: Option<&str>| {
        assert_eq!(rationale_span(completion).map(|span| &completion[span]), expected, "{completion}");
    };
    let deep = r#"{"action":{"type":"click","name":"}{\"","x":{"rationale":"no"}},"rationale":"\"é\": \\"}"#;
    check(deep, Some(r#"\"é\": \\"#));
    check(r#"{"action":{"type":"rationale"},"r\u0061tionale":"yes"}"#, Some("yes"));
    check(r#"{"rationale":"","action":{"type":"click"}}"#, Some(""));
    check(r#"{"rationale":"r"}"#, None);
    check("broken", None);
}

#[test]
fn tokens_with_a_byte_of_the_rationale_belong_to_it() {
    let check = |pieces: &[&str], expected: &[usize]| {
        let n_bytes: Vec<usize> = pieces.iter().map(|piece| piece.len()).collect();
        assert_eq!(rationale_tokens(&pieces.concat(), &n_bytes), expected, "{pieces:?}");
    };
    let action = r#""action":{"type":"terminate"}}"#;
    // The quotes are not part of the value, and a token without text wrote nothing.
    check(&["{\"rationale\":", "\"", "a", "", "b", "\"", ",", action], &[2, 4]);
    check(&["{\"rationale\":\"", "a b\",", action], &[1]);
    check(&["{\"rationale\":", "\"\",", action], &[]);
    check(&["{\"rationale\":\"a\",", "broken"], &[]);
}

#[test]
fn mapping_and_its_inverse_give_the_same_action() {
    let page = AvailableActions {
        has_search_bar: true,
        clickables: ["search", "buy now", "8  x-wide", "24 [x]"].map(Into::into).into(),
    };
    for text in ["search[a lamp]", "click[buy now]", "click[8  x-wide]", "click[24 [x]]"] {
        let action: Action = text.parse().unwrap();
        for buy_now_as in [BuyNowAs::Click, BuyNowAs::Terminate] {
            let result = NextAction::of(&action, buy_now_as).expect("a move");
            let back = WrittenAction::from(&result).in_shop(&page, buy_now_as).expect("it is on the page");
            assert_eq!(back.to_string(), text);
        }
    }
    assert_eq!(NextAction::of(&Action::Noop(NoopReason::Malformed), BuyNowAs::Click), None);
    let bought = Action::Click("buy now".into());
    assert_eq!(NextAction::of(&bought, BuyNowAs::Terminate), Some(NextAction::Terminate {}));
}

#[test]
fn actions_without_effect_say_why() {
    let results = AvailableActions { has_search_bar: false, clickables: vec!["next >".into()] };
    let door = AvailableActions { has_search_bar: true, clickables: vec!["search".into()] };
    let check = |page: &AvailableActions, type_name: &str, name: &str, text: &str, expected: &str| {
        let action = WrittenAction { type_name: type_name.into(), name: name.into(), text: text.into() };
        let result = match action.in_shop(page, BuyNowAs::Click) {
            Ok(done) => done.to_string(),
            Err(unfit) => unfit.to_string(),
        };
        assert_eq!(result, expected);
    };
    check(&door, "type_and_submit", "search_input", " Red\n [L]\t", "search[red (l)]");
    check(&door, "type_and_submit", "search_input", " \n", "the query is empty");
    check(&results, "type_and_submit", "search_input", "a", "the page has no `search_input`");
    check(&door, "type_and_submit", "email", "a", "`email` is not a field; the only one is `search_input`");
    check(&door, "click", "search", "", "the page has no element `search`");
    check(&results, "click", "", "", "the page has no element ``");
    check(&results, "click", " NEXT  > ", "ignored", "click[next >]");
    check(&results, "Click", "next >", "", "`Click` is not an action type");
    check(&results, "terminate", "next >", "", "END");
}
