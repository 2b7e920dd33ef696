//! Tests of single template features. Tests of whole chats against transformers are in
//! `tests/it/transformers.rs`.

use serde_json::json;

use super::*;

fn render(source: &str, input: TemplateInput) -> Result<String, String> {
    let input = match input.messages.is_empty() {
        true => TemplateInput { messages: vec![json!({"role": "user", "content": "x"})], ..input },
        false => input,
    };
    let template = ChatTemplate::new(source, Map::new()).map_err(|error| error.to_string())?;
    template.render(&input).map_err(|error| error.to_string())
}

/// Renders a template with `value`.
fn check(source: &str, value: Value, expected: &str) {
    let extra = Map::from_iter([("value".to_owned(), value)]);
    let text = render(source, TemplateInput { extra, ..TemplateInput::default() });
    assert_eq!(text.as_deref(), Ok(expected), "{source}");
}

// Expected texts are from Python 3.11: `str(value)`, `json.dumps(value, ensure_ascii=False)`.
#[test]
fn values_are_printed_as_in_python() {
    for (value, printed) in [
        (json!(null), "None"),
        (json!(true), "True"),
        (json!(1.0), "1.0"),
        (json!(-0.0), "-0.0"),
        (json!(1e16), "1e+16"),
        (json!(123456789012345.6), "123456789012345.6"),
        (json!(0.0001), "0.0001"),
        (json!(1.5e-5), "1.5e-05"),
        (json!(-3), "-3"),
        (json!(["a", 1, null]), "['a', 1, None]"),
        (json!({"it's": "\"x\"", "y": "a\u{200b}\n"}), "{\"it's\": '\"x\"', 'y': 'a\\u200b\\n'}"),
        (json!({"it's": false}), "{\"it's\": False}"),
    ] {
        check("{{ value }}", value.clone(), printed);
        check("{{ value | string }}", value, printed);
    }
    check("{{ ('a',) }}{{ (1, 2) }}{{ nothing }}", json!(null), "('a',)(1, 2)");
}

#[test]
fn absurd_json_is_bounded() {
    check("{{ value | tojson(indent=9999999999999) | length }}", json!([1]), "105");
    let nested = (0..300).fold(json!(1), |inner, _| json!([inner]));
    let extra = Map::from_iter([("value".to_owned(), nested)]);
    let refused = render("{{ value | tojson }}", TemplateInput { extra, ..TemplateInput::default() });
    assert!(refused.unwrap_err().contains("more than 200 nested lists"));
}

#[test]
fn json_is_formatted_as_in_python() {
    let value = json!({"b": [1, 2.0, {}], "a": "<é> \"\u{7}\""});
    check("{{ value | tojson }}", value.clone(), "{\"b\": [1, 2.0, {}], \"a\": \"<é> \\\"\\u0007\\\"\"}");
    check(
        "{{ value | tojson(indent=2) }}",
        value.clone(),
        "{\n  \"b\": [\n    1,\n    2.0,\n    {}\n  ],\n  \"a\": \"<é> \\\"\\u0007\\\"\"\n}",
    );
    check(
        "{{ value | tojson(separators=(',', ':'), sort_keys=true, ensure_ascii=true) }}",
        value,
        "{\"a\":\"<\\u00e9> \\\"\\u0007\\\"\",\"b\":[1,2.0,{}]}",
    );
    let refused = render("{{ nothing | tojson }}", TemplateInput::default()).unwrap_err();
    assert!(refused.contains("cannot be written as JSON") && refused.contains("line 1"), "{refused}");
}

#[test]
fn string_methods_equal_python() {
    let value = json!("  it's a b-c \x1c");
    check("{{ value.strip() }}|{{ value | trim }}", value.clone(), "it's a b-c|it's a b-c");
    check("{{ value.title() }}", value.clone(), "  It'S A B-C \x1c");
    check("{{ value.split() }}", value.clone(), "[\"it's\", 'a', 'b-c']");
    check(
        "{{ value.split(None, 1) }}{{ value.rsplit(maxsplit=1) }}",
        value,
        "[\"it's\", 'a b-c \\x1c'][\"  it's a\", 'b-c']",
    );
    check("{{ value.split('-') }}{{ value.rsplit('-', 1)[-1] }}", json!("a-b-c"), "['a', 'b', 'c']c");
    check("{{ value.splitlines() }}", json!("a\r\nb\u{2028}\n"), "['a', 'b', '']");
    check("{{ value.removeprefix('a') }}{{ value.removesuffix('a') }}", json!("aba"), "baab");
    check("{{ value.lstrip('ab') }}{{ value[::-1] }}", json!("abc"), "ccba");
    // A method has precedence over a key of the same name.
    check("{% for k, v in value.items() %}{{ k }}={{ v }};{% endfor %}", json!({"items": 1}), "items=1;");
    check("{{ value is sequence }}{{ value is mapping }}", json!({}), "TrueTrue");
}

#[test]
fn blocks_are_trimmed_and_generation_blocks_removed() {
    let source = "{% for m in messages %}\r\n  {%- generation -%}\n  {{ '{% generation %}' }}{% set x = 1 %}\n  \
                  {% endgeneration %}\n{{ x }}{# {% generation %} #}{% break %}\n{% endfor %}";
    check(source, json!(null), "{% generation %}");
    check("{% raw %}{% generation %}{{{% endraw %}", json!(null), "{% generation %}{{");
}

#[test]
fn dates_are_inputs() {
    let now = chrono::NaiveDate::from_ymd_opt(2024, 7, 6).unwrap().and_hms_opt(9, 5, 0);
    let input = || TemplateInput { now, ..TemplateInput::default() };
    let text = render("{{ strftime_now('%d %b %Y, %A %-d, %H:%M') }}", input());
    assert_eq!(text.as_deref(), Ok("06 Jul 2024, Saturday 6, 09:05"));
    assert!(render("{{ strftime_now('%Q') }}", input()).unwrap_err().contains("is not a date format"));
    let refused = render("{{ strftime_now('%Y') }}", TemplateInput::default()).unwrap_err();
    assert!(refused.contains("no date is given"), "{refused}");
}

#[test]
fn template_errors_are_returned() {
    let refused = render("\n{{ raise_exception('no ' ~ 1) }}", TemplateInput::default()).unwrap_err();
    assert!(refused.contains("the template raised an exception: no 1 in line 2"), "{refused}");
    assert!(render("{% if %}", TemplateInput::default()).unwrap_err().contains("line 1"));
    let empty = ChatTemplate::new("x", Map::new()).unwrap().render(&TemplateInput::default()).unwrap_err();
    assert!(empty.to_string().contains("at least one message"), "{empty}");
    let text = TemplateInput { messages: vec![json!("hello")], ..TemplateInput::default() };
    assert!(render("x", text).unwrap_err().contains("must be an object"));
}

#[test]
fn null_fields_are_absent_and_reasoning_has_three_names() {
    let messages = vec![json!({"role": "assistant", "content": null, "reasoning": "r", "x": 1})];
    let text = render("{{ messages }}", TemplateInput { messages, ..TemplateInput::default() });
    let expected =
        "[{'thinking': 'r', 'role': 'assistant', 'reasoning': 'r', 'x': 1, 'reasoning_content': 'r'}]";
    assert_eq!(text.as_deref(), Ok(expected));
}

#[test]
fn templates_are_found_in_every_file_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let rendered = |with_tools: bool| {
        let input = TemplateInput {
            messages: vec![json!({"role": "user"})],
            tools: with_tools.then(Vec::new),
            ..TemplateInput::default()
        };
        ChatTemplate::load(folder.path())
            .and_then(|template| template.render(&input))
            .map_err(|error| error.to_string())
    };
    assert!(rendered(false).unwrap_err().contains("no chat template"));
    let tokens = json!({"eos_token": {"content": "<e>"}, "add_bos_token": true, "extra_special_tokens": {"img": "<i>"}});
    let with = |templates: Value| {
        let mut config = tokens.clone();
        config["chat_template"] = templates;
        config.to_string()
    };
    write("tokenizer_config.json", &with(json!("{{ eos_token }}{{ img }}{{ add_bos_token }}")));
    assert_eq!(rendered(true).as_deref(), Ok("<e><i>"));
    write(
        "tokenizer_config.json",
        &with(json!([
            {"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}
        ])),
    );
    assert_eq!((rendered(false).as_deref(), rendered(true).as_deref()), (Ok("plain"), Ok("tools")));
    write("tokenizer_config.json", &with(json!([{"name": "rag", "template": "x"}])));
    assert!(rendered(false).unwrap_err().contains("[\"rag\"]"));
    write("tokenizer_config.json", &with(json!([{"name": "rag"}])));
    assert!(rendered(false).unwrap_err().contains("neither a string nor a list"));
    write("chat_template.jinja", "file {{ eos_token }}");
    assert_eq!(rendered(true).as_deref(), Ok("file <e>"));
    std::fs::create_dir(folder.path().join("additional_chat_templates")).unwrap();
    write("additional_chat_templates/tool_use.jinja", "another");
    assert_eq!((rendered(false).as_deref(), rendered(true).as_deref()), (Ok("file <e>"), Ok("another")));
}
