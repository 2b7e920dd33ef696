//! Rewards and metrics against values computed by hand.

use serde_json::{Value, json};
use webshop_agent::next_action::{ActionType, NextAction, WrittenAction};
use webshop_products::Seed;

use super::*;
use crate::next_action::baselines::most_frequent_action;

fn click(name: &str) -> NextAction {
    NextAction::Click { name: name.into() }
}

fn search(text: &str) -> NextAction {
    NextAction::TypeAndSubmit { name: "search_input".into(), text: text.into() }
}

const TERMINATE: NextAction = NextAction::Terminate {};

/// A valid completion with this action.
fn completion_of(action: &NextAction) -> String {
    format!(r#"{{"rationale": "r", "action": {action}}}"#)
}

fn hierarchical(changes: Value) -> ShopR1Reward {
    let config = RewardConfig::default().with(changes.as_object().expect("an object"));
    ShopR1Reward::Hierarchical(config.expect("known keys"))
}

/// Checks the reward of a completion under changed settings, and that its parts sum to it.
#[track_caller]
fn check(changes: Value, completion: &str, gold: &NextAction, certainty: f64, expected: f64) {
    let attempt = Attempt { completion, gold, certainty, n_prompt_words: 300 };
    let breakdown = hierarchical(changes).of(&attempt);
    assert!((breakdown.total() - expected).abs() < 1e-9, "{breakdown} is not {expected}");
    let sum: f64 = breakdown.parts().into_iter().map(Part::value).sum();
    assert_eq!(sum, breakdown.total());
}

#[test]
fn the_gold_action_has_the_maximum_reward() {
    for (gold, max) in [(TERMINATE, 0.8), (click("buy now"), 1001.0), (search("lamp"), 1001.1)] {
        check(json!({}), &completion_of(&gold), &gold, 0.0, max);
        check(json!({}), &completion_of(&gold), &gold, 2.0, max + 0.01);
        check(json!({}), "broken", &gold, 2.0, 0.0);
        // In f64 the sum is within one ulp of the decimal value.
        let breakdown = hierarchical(json!({})).of(&Attempt {
            completion: &completion_of(&gold),
            gold: &gold,
            certainty: 0.0,
            n_prompt_words: 0,
        });
        assert!((breakdown.total() - max).abs() <= f64::EPSILON * max, "{:?}", breakdown.total());
    }
}

#[test]
fn small_terms_are_kept_beside_a_thousand() {
    // A self-certainty of a millionth is visible beside 1001.1; bf16 cannot represent even .8 beside 1000.
    let with = |certainty| {
        let (gold, reward) = (search("lamp"), hierarchical(json!({ "alpha": 1 })));
        let completion = completion_of(&gold);
        reward.of(&Attempt { completion: &completion, gold: &gold, certainty, n_prompt_words: 0 }).total()
    };
    assert!((with(1e-6) - with(0.0) - 1e-6).abs() < 1e-12);
    check(json!({ "w_click_name": 0 }), &completion_of(&click("red")), &click("red"), 0.0, 1000.8);
}

#[test]
fn display_prints_the_formula_with_its_numbers() {
    let printed = |changes: Value, completion: &str, gold: &NextAction, certainty| {
        hierarchical(changes).of(&Attempt { completion, gold, certainty, n_prompt_words: 0 }).to_string()
    };
    let gold = search("usb c hub");
    assert_eq!(
        printed(json!({}), &completion_of(&search("usb c hub 4k")), &gold, 0.5),
        "858.2454 = 0.5 × 1 format + 0.3 × 1 type + 0.1 × 1 name + 0.1 × 1 text + 0.1 × 4/4 same name \
         + 1000 × 6/7 same text + 0.005 × 0.5 certainty"
    );
    assert_eq!(
        printed(json!({}), &completion_of(&search("usb c hub 4k hdmi")), &gold, 0.0),
        "1.1 = 0.5 × 1 format + 0.3 × 1 type + 0.1 × 1 name + 0.1 × 1 text + 0.1 × 4/4 same name \
         + 1000 × 0 same text; below the threshold: same text 6/8"
    );
    assert_eq!(
        printed(json!({}), &completion_of(&TERMINATE), &gold, 0.0),
        "0.5 = 0.5 × 1 format + 0.3 × 0 type"
    );
    assert_eq!(
        printed(json!({}), "{}", &gold, 9.0),
        "0 = nothing; the keys are none instead of exactly `rationale` and `action`"
    );
    assert_eq!(
        printed(json!({ "gate_format": false }), "[]", &gold, 2.0),
        "0.01 = 0.5 × 0 format + 0.005 × 2 certainty; the completion is not a JSON object"
    );
}

#[test]
fn each_option_changes_the_reward_as_documented() {
    let (gold, near) = (click("size 9 wide us"), completion_of(&click("size 8 wide us")));
    // 2·3 / (4 + 4) = 3/4.
    check(json!({}), &near, &gold, 0.0, 1.0);
    check(json!({ "sim_cmp": "ge" }), &near, &gold, 0.0, 751.0);
    check(json!({ "threshold": 0.7 }), &near, &gold, 0.0, 751.0);
    check(json!({ "sim_cmp": "ge", "dars": 1 }), &near, &gold, 0.0, 1.75);
    check(json!({ "sim_cmp": "ge", "click_similarity": "exact" }), &near, &gold, 0.0, 1.0);
    check(json!({ "click_similarity": "exact" }), &completion_of(&gold), &gold, 0.0, 1001.0);
    // `exact` similarity of clicks does not affect `type_and_submit`.
    check(
        json!({ "click_similarity": "exact" }),
        &completion_of(&search("A b")),
        &search("a-b"),
        0.0,
        1001.1,
    );
    // 13 of 14 characters.
    check(json!({ "click_similarity": "repo_compat" }), &near, &gold, 0.0, 1.0 + 1000.0 * 13.0 / 14.0);
    let plural = 1.1 + 1000.0 * 6.0 / 7.0;
    check(
        json!({ "similarity": "repo_compat" }),
        &completion_of(&search("laptop")),
        &search("laptops"),
        0.0,
        plural,
    );
    check(json!({ "negative_wrong_value": -1 }), &near, &gold, 0.0, 0.0);
    check(json!({ "negative_wrong_value": -1 }), &completion_of(&gold), &gold, 0.0, 1001.0);
    check(json!({ "negative_wrong_value": -1 }), &completion_of(&search("a")), &search("b"), 0.0, 0.1);
    check(json!({ "negative_wrong_value": -1 }), &completion_of(&TERMINATE), &gold, 0.0, 0.5);
    check(json!({ "negative_wrong_value": -1 }), "broken", &gold, 0.0, 0.0);
    let weights = json!({ "class_weights": { "click": 2, "terminate": 3 } });
    check(weights.clone(), &completion_of(&gold), &gold, 1.0, 0.505 + 2.0 * 1000.5);
    check(weights.clone(), &completion_of(&TERMINATE), &TERMINATE, 0.0, 0.5 + 3.0 * 0.3);
    check(weights, &completion_of(&search("a")), &search("a"), 0.0, 1001.1);
    let red = click("红色");
    check(json!({}), &completion_of(&red), &red, 0.0, 1001.0);
    check(json!({ "exact_shortcut": false }), &completion_of(&red), &red, 0.0, 1.0);
}

#[test]
fn gates_remove_terms_without_a_valid_format_or_the_right_type() {
    let (gold, laptop) = (click("search_input"), search("laptop"));
    check(json!({}), &completion_of(&laptop), &gold, 1.0, 0.505);
    // The predicted name is present and right.
    check(json!({ "gate_type": false }), &completion_of(&laptop), &gold, 0.0, 0.5 + 0.2 + 1000.0);
    // A click has no text to compare.
    check(json!({ "gate_type": false }), &completion_of(&gold), &laptop, 0.0, 0.5 + 0.1 + 0.1);
    check(json!({ "gate_type": false }), &completion_of(&gold), &TERMINATE, 0.0, 0.5);
    check(json!({ "gate_format": false }), "broken", &gold, 2.0, 0.01);
    let terminate = completion_of(&TERMINATE);
    check(json!({ "format_mode": "schema" }), &terminate, &TERMINATE, 0.0, 0.8);
    check(json!({ "format_mode": "strict" }), &terminate, &TERMINATE, 1.0, 0.0);
    let scroll = terminate.replace("terminate", "scroll");
    check(json!({}), &scroll, &TERMINATE, 0.0, 0.5);
    check(json!({ "format_mode": "schema" }), &scroll, &TERMINATE, 1.0, 0.0);
}

#[test]
fn difficulty_factor_of_the_re_implementation() {
    // A click, 300 words, 32 characters: .4·.5 + .3·1 + .3·.5 = .65, so .85 + .3·.65 = 1.045.
    let gold = click(&"x".repeat(32));
    check(json!({ "dars_kind": "repo_compat" }), &completion_of(&gold), &gold, 0.0, 0.7 + 1.045 * 1000.3);
    // `terminate`: .3·1 of the prompt alone, so .94.
    check(
        json!({ "dars_kind": "repo_compat" }),
        &completion_of(&TERMINATE),
        &TERMINATE,
        0.0,
        0.5 + 0.94 * 0.3,
    );
    // The maximum: 1.15.
    let gold = search(&"x".repeat(64));
    check(json!({ "dars_kind": "repo_compat" }), &completion_of(&gold), &gold, 0.0, 0.8 + 1.15 * 1000.3);
}

/// The reward of the re-implementation as [format, type, presence, value], with difficulty factor 1.
fn repo(changes: Value, completion: &str, gold: &NextAction) -> [f64; 4] {
    let mut config = json!({ "enable_dars": false });
    config.as_object_mut().unwrap().extend(changes.as_object().expect("an object").clone());
    let config: RepoConfig = serde_json::from_value(config).expect("its keys");
    config.validate().expect("their ranges");
    let attempt = Attempt { completion, gold, certainty: 0.0, n_prompt_words: 0 };
    let breakdown = ShopR1Reward::RepoCompat(config).of(&attempt);
    let [attr, value] =
        [[breakdown.attr_name, breakdown.attr_text], [breakdown.value_name, breakdown.value_text]]
            .map(|parts| parts.into_iter().map(Part::value).sum::<f64>());
    [breakdown.format.value(), breakdown.action_type.value(), attr, value]
}

#[test]
fn the_re_implementation_accepts_alternative_names() {
    let gold = click("add_to_cart");
    let all = [0.5, 0.3, 0.2, 1000.0];
    let lax = |completion: &str| repo(json!({}), completion, &gold);
    assert_eq!(lax(&format!("Sure: {} Done.", completion_of(&gold))), all);
    let nested =
        r##"{"rationale": {"reason": "r"}, "next_action": {"action": "TAP", "element": "#add_to_cart"}}"##;
    assert_eq!(lax(nested), all);
    let interact =
        r#"{"rationale": "r", "action": {"type": "interact", "action": "press", "target": "add_to_cart"}}"#;
    assert_eq!(lax(interact), all);
    // Without a rationale the format is invalid, but the action is scored.
    assert_eq!(lax(r#"{"action": {"type": "click", "name": "add_to_cart"}}"#), [0.0, 0.3, 0.2, 1000.0]);
    // An unknown type is a valid format.
    assert_eq!(lax(r#"{"rationale": "r", "action": {"type": "hover", "name": "x"}}"#), [0.5, 0.0, 0.0, 0.0]);
    assert_eq!(lax("I click."), [0.0; 4]);
    let named = repo(json!({ "normalize_variants": false }), interact, &gold);
    assert_eq!(
        named,
        [0.5, 0.3, 0.2, 1000.0],
        "the format is valid, and the action is parsed with alternative names"
    );
    assert_eq!(repo(json!({ "normalize_variants": false }), nested, &gold)[0], 0.0);
}

#[test]
fn the_re_implementation_can_be_strict() {
    let gold = click("add_to_cart");
    let strict = |completion: &str| repo(json!({ "strict": true }), completion, &gold);
    let full = r#"{"rationale": "r", "action": {"type": "click", "name": "add_to_cart", "text": ""}}"#;
    assert_eq!(strict(full), [0.5, 0.3, 0.2, 1000.0]);
    assert_eq!(strict(&full.replace("\"r\"", "7")), [0.5, 0.3, 0.2, 1000.0]);
    // Text around the object makes only the format invalid; a missing key makes the action invalid too.
    assert_eq!(strict(&format!("{full} Done.")), [0.0, 0.3, 0.2, 1000.0]);
    assert_eq!(strict(&completion_of(&gold)), [0.0; 4]);
    assert_eq!(strict("{"), [0.0; 4]);
    let other =
        repo(json!({ "strict": true, "gate_subrewards_on_type": false }), full, &search("add_to_cart"));
    assert_eq!(other, [0.5, 0.0, 0.1, 0.0]);
}

#[test]
fn the_re_implementation_uses_the_first_available_evidence() {
    let check = |changes: Value, extras: Value, expected: f64| {
        let config: RepoConfig = serde_json::from_value(changes).expect("its keys");
        let certainty = config.certainty(&extras);
        assert!((certainty - expected).abs() < 1e-9, "{extras}: {certainty} is not {expected}");
    };
    let token =
        json!({ "logprob": -2.5, "top_logprobs": [{ "logprob": 0.5_f64.ln() }], "probs": [0.5, 0.5, 0, 0] });
    let reply = json!({ "choices": [{ "logprobs": { "content": [token] } }] });
    // Half of four ids: (ln 4 − ln 2) / ln 4.
    check(json!({}), json!({ "state": { "completion": reply } }), 0.5);
    check(json!({}), json!({ "task": { "full_probs": [[2, 2, 0, 0], []] } }), 0.5);
    check(json!({ "sc_vocab_size_hint": 16 }), json!({ "full_token_probs": [[1, 1, 0, 0]] }), 0.75);
    // The top id and the rest are equally likely: self-certainty 0.
    check(json!({ "sc_exact_kl": false }), json!({ "state": { "completion": reply } }), 0.0);
    check(
        json!({}),
        json!({ "state": { "responses": [{}, { "choices": [{ "logprobs": { "tokens": [
        { "top_logprobs": [{ "logprob": 0.0 }] }] } }] }] } }),
        1.0,
    );
    // A mean log-probability of −2.5 has self-certainty .5.
    check(json!({}), json!({ "avg_logprob": -2.5 }), 0.5);
    check(json!({}), json!({ "token_logprobs": [-2.0, -3.0] }), 0.5);
    check(json!({}), json!({ "meta": { "logprobs": { "content": [{ "logprob": -2.5 }] } } }), 0.5);
    check(
        json!({}),
        json!({ "state": { "completion": { "choices": [{ "logprobs": { "content": [
        { "logprob": -2.5 }] } }] } } }),
        0.5,
    );
    check(json!({ "sc_clip_max": 0.25 }), json!({ "avg_logprob": 0 }), 0.25);
    check(json!({ "enable_self_certainty": false }), json!({ "avg_logprob": 0 }), 0.0);
    check(json!({ "sc_clip_min": 0.5 }), json!({}), 0.0);
}

fn predictions(actions: &[Option<&NextAction>]) -> Vec<Option<WrittenAction>> {
    actions.iter().map(|action| action.map(WrittenAction::from)).collect()
}

#[test]
fn predictions_are_counted_by_type() {
    let (a, b, lamp) = (click("a"), click("b"), search("lamp"));
    let golds = [a.clone(), a.clone(), b.clone(), lamp.clone(), TERMINATE];
    let mut predicted = predictions(&[Some(&a), Some(&b), Some(&TERMINATE), None, Some(&TERMINATE)]);
    let scores = evaluate(&golds, &predicted, Seed(0));
    assert_eq!(scores.confusion, [[2, 0, 1, 0, 0], [0, 0, 0, 0, 1], [0, 0, 1, 0, 0]]);
    let value = |estimate: Estimate| estimate.value;
    assert_eq!([scores.exact_soft, scores.type_acc, scores.invalid_rate].map(value), [0.4, 0.6, 0.2]);
    // Clicks: 2·2 / (3 + 2) = .8. `type_and_submit`: 0. `terminate`: 2·1 / (1 + 2) = 2/3.
    let f1 = ActionType::ALL.map(|kind| scores.per_type[&kind].f1);
    assert_eq!(f1, [0.8, 0.0, 2.0 / 3.0]);
    assert!((scores.macro_f1.value - (0.8 + 2.0 / 3.0) / 3.0).abs() < 1e-15);
    assert!((scores.weighted_f1.value - (3.0 * 0.8 + 2.0 / 3.0) / 5.0).abs() < 1e-15);
    let clicks = scores.per_type[&ActionType::Click];
    assert_eq!((clicks.support, clicks.precision, clicks.type_acc.value), (3, 1.0, 2.0 / 3.0));
    for estimate in [scores.exact_soft, scores.type_acc, scores.macro_f1, scores.weighted_f1] {
        let [low, high] = estimate.ci95;
        assert!(low < estimate.value && estimate.value < high, "{estimate:?}");
    }
    // An unknown type is not invalid, but wrong.
    predicted[3] = Some(WrittenAction { type_name: "scroll".into(), ..WrittenAction::default() });
    let scores = evaluate(&golds, &predicted, Seed(0));
    assert_eq!((scores.confusion[1], scores.invalid_rate.value), ([0, 0, 0, 1, 0], 0.0));
    assert_eq!(evaluate(&golds, &predicted, Seed(0)), scores, "equal seeds give equal intervals");
    let without_terminate =
        evaluate(&[a.clone(), lamp.clone()], &predictions(&[Some(&a), Some(&lamp)]), Seed(0));
    assert_eq!((without_terminate.macro_f1.value, without_terminate.macro_f1.ci95[1]), (1.0, 1.0));
    let none = evaluate(&[], &[], Seed(0));
    assert_eq!((none.n, none.macro_f1.value, none.weighted_f1.value), (0, 0.0, 0.0));
}

#[test]
fn always_terminate_scores_nearly_as_well_as_the_paper() {
    // The type counts of the paper's test set: `terminate` is exact in 512 of 1879 steps.
    let golds: Vec<NextAction> = (0..690)
        .map(|at| click(&at.to_string()))
        .chain((0..677).map(|at| search(&at.to_string())))
        .chain((0..512).map(|_| TERMINATE))
        .collect();
    let constant = always(&TERMINATE, &golds, Seed(0));
    assert_eq!((constant.exact_soft.value * 1e4).round(), 2725.0);
    // F1 of `terminate`: 2·512 / (512 + 1879); that of the others is 0.
    assert!((constant.macro_f1.value - 1024.0 / 2391.0 / 3.0).abs() < 1e-15);
    assert_eq!(most_frequent_action(&golds), Some(&TERMINATE));
    assert_eq!(majority_type(&golds), Some(ActionType::Click));
    let first = [click("b"), click("a"), TERMINATE];
    assert_eq!(
        (most_frequent_action(&first), majority_type(&first)),
        (Some(&first[0]), Some(ActionType::Click))
    );
    assert_eq!((most_frequent_action(&[]), majority_type(&[])), (None, None));
}
