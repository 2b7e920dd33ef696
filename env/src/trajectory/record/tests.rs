use super::*;

fn turn(action: &str, noop: &str) -> Result<Turn, serde_json::Error> {
    let digest = "0000000000000000";
    let after = serde_json::json!({"state": digest, "observation": digest, "actions": digest});
    let noop: serde_json::Value = serde_json::from_str(noop).unwrap();
    let turn = serde_json::json!({"action": action, "noop": noop, "reward": 0.5, "after": after, "more": 1});
    serde_json::from_value(turn)
}

#[test]
fn an_action_is_read_as_it_is_printed() {
    let cases = [
        ("search[a]b [c]", "null", Action::Search("a]b [c".into())),
        ("click[twin [38x75]]", "\"not_on_page\"", Action::Click("twin [38x75]".into())),
        ("noop", "\"unknown_verb\"", Action::Noop(NoopReason::UnknownVerb)),
        ("search[x]", "\"episode_over\"", Action::Search("x".into())),
    ];
    for (text, noop, action) in cases {
        let read = turn(text, noop).unwrap();
        assert_eq!(read.action, action);
        let json = serde_json::to_value(&read).unwrap();
        assert_eq!(json["action"], text);
        assert_eq!(serde_json::from_value::<Turn>(json).unwrap(), read);
    }
}

#[test]
fn a_text_that_no_action_prints_is_an_error() {
    for text in ["", "buy", "Search[x]", "search[x", "click[x] "] {
        let message = turn(text, "null").unwrap_err().to_string();
        assert_eq!(message, format!("`{text}` is not `search[…]`, `click[…]` or `noop`"));
    }
}
