//! Training, tokens of words, decoding of encoded text, and rejected input.

use rand_chacha::rand_core::RngCore;
use webshop_products::Seed;

use crate::purpose;

use super::*;

const PAGES: [&str; 6] = [
    "instruction: i need a black t-shirt in size 3x-large, price lower than $40.00",
    "[back to search] page 1 (total results: 50) [next >]",
    "men's black long-sleeve t-shirt, 100% cotton; black/red $34.5",
    "women's red long sleeve blouse; size: small, medium, large; color: black, red",
    "buy now < prev description features reviews click search black red large size",
    "buy now < prev description features reviews click search black red large size",
];

fn small_tokenizer() -> BpeTokenizer {
    BpeTokenizer::train(PAGES, 400, &["<|1|>"]).unwrap()
}

fn on_threads(n_threads: usize, texts: &[&str]) -> String {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
    pool.install(|| BpeTokenizer::train(texts.iter().copied(), 400, &[]).unwrap().to_json())
}

#[test]
fn training_ignores_order_and_threads() {
    let mut backwards = PAGES;
    backwards.reverse();
    let expected = on_threads(1, &PAGES);
    for n_threads in [1, 2, 4] {
        assert!(on_threads(n_threads, &PAGES) == expected, "{n_threads} threads");
        assert!(on_threads(n_threads, &backwards) == expected, "{n_threads} threads, backwards");
    }
}

#[test]
fn merges_are_the_same_in_every_process() {
    // Computed by hand, with a space before every word: (a a) occurs 3·2 = 6 times in "aaaa". Then three
    // pairs of " abc" occur 3 times, and (a b) has the lowest ids because Ġ, the space, has an id above those
    // of ASCII. Then (Ġ ab) before (ab c), because ab is new; then (Ġab c); then (Ġ aa) before (aa aa), 2
    // each; then (Ġaa aa).
    let tokenizer = BpeTokenizer::train(["abc abc abc aaaa aaaa"], 5 + 256 + 6, &[]).unwrap();
    let merged: Vec<String> = (261..267).map(|id| tokenizer.token(id).unwrap()).collect();
    assert_eq!(merged, ["aa", "ab", "Ġab", "Ġabc", "Ġaa", "Ġaaaa"]);
}

#[test]
fn special_tokens_have_the_first_ids() {
    let tokenizer = small_tokenizer();
    assert_eq!(tokenizer.special_ids(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(tokenizer.special_id("<|endoftext|>").unwrap(), 0);
    assert_eq!(tokenizer.special_id("<|1|>").unwrap(), 5);
    assert_eq!(tokenizer.encode("<|im_start|><think></think>").unwrap(), [1, 3, 4]);
    let error = tokenizer.special_id("black").unwrap_err();
    assert_eq!(error.to_string(), "tokenizer: no special token `black` in the vocabulary");
}

#[test]
fn a_word_is_the_same_token_everywhere() {
    let tokenizer = small_tokenizer();
    let black = tokenizer.id("Ġblack").unwrap();
    for text in [
        "black",
        " black",
        "in black,",
        "BLACK",
        "click[black]",
        "(black)",
        "red/black",
        "red-black",
        "black & black",
        "$black",
        "\nblack",
        "red>black",
        "red&black",
        "<think>black</think>",
        "<|im_start|> black",
        "3-black",
    ] {
        assert!(tokenizer.encode(text).unwrap().contains(&black), "{text}");
    }
}

#[test]
fn a_number_is_its_digits() {
    // Even if the training text repeats a number often.
    let tokenizer = BpeTokenizer::train(["size 10 $34.50 3x-large"; 9], 400, &[]).unwrap();
    let check = |text: &str, expected: &[&str]| {
        let tokens: Vec<String> =
            tokenizer.encode(text).unwrap().iter().map(|id| tokenizer.token(*id).unwrap()).collect();
        assert_eq!(tokens, expected, "{text}");
    };
    check("$34.50", &["$", "Ġ3", "4", ".", "5", "0"]);
    check("size 10", &["Ġsize", "Ġ1", "0"]);
    check("3x-large", &["Ġ3", "x", "-", "Ġlarge"]);
}

#[test]
fn decoding_restores_the_text_in_lower_case() {
    let tokenizer = small_tokenizer();
    for text in [
        "click[black/red]",
        "click[< prev]",
        "click[next >]",
        "search[men's 3x-large t-shirt under $40.00 (100% cotton)]<|im_end|>",
        "<think>red no\n<|1|>black yes </think>click[buy now]<|im_end|>",
        "a - b, a & b; a / b -b --b a--b [-b] x_y=z>w> \"quoted\" 'n' it's they’re",
        "naïve café 5″ ½ 漢字 👟 é ß",
        "two  spaces\n\n  and lines\ttabs\r\n",
        "",
        " ",
    ] {
        let ids = tokenizer.encode(text).unwrap();
        assert_eq!(tokenizer.decode(&ids), text, "{ids:?}");
    }
    assert_eq!(tokenizer.decode(&tokenizer.encode("Click[BUY Now]").unwrap()), "click[buy now]");
    // A combining accent is composed with its letter.
    assert_eq!(tokenizer.encode("cafe\u{301}").unwrap(), tokenizer.encode("café").unwrap());
}

#[test]
fn a_removed_space_does_not_change_ids() {
    let tokenizer = small_tokenizer();
    for (text, expected) in [(" black", "black"), ("( black", "(black"), ("a- b", "a-b"), ("\n b", "\nb")] {
        let ids = tokenizer.encode(text).unwrap();
        assert_eq!(tokenizer.decode(&ids), expected);
        assert_eq!(tokenizer.encode(expected).unwrap(), ids, "{text}");
    }
}

#[test]
fn decoded_text_encodes_to_the_same_ids() {
    let tokenizer = small_tokenizer();
    let parts = "a|B|3| |  |\n|\t|[|]|(|)|$|/|-|&|>|<|,|'s|’|é|e\u{301}|\u{301}|J\u{30c}|\u{212a}|İ|漢|👟|<think>|black";
    let parts: Vec<&str> = parts.split('|').collect();
    for sample in 0..3000 {
        let mut rng = Seed(0).rng(purpose::TOKENIZER, &[sample]);
        let text: String = (0..8).map(|_| parts[rng.next_u32() as usize % parts.len()]).collect();
        let ids = tokenizer.encode(&text).unwrap();
        let decoded = tokenizer.decode(&ids);
        assert_eq!(tokenizer.encode(&decoded).unwrap(), ids, "{text:?} {decoded:?}");
    }
}

#[test]
fn parts_of_a_text_can_be_encoded_separately() {
    let tokenizer = small_tokenizer();
    for pieces in [
        vec!["click[", "black", "]<|im_end|>"],
        vec!["search[", "3x red", "]"],
        vec!["<think>", " red no", " $34", " yes", "</think>"],
        vec!["page 1\n", "black", "\n", "red"],
        vec!["click[", "-x", "]"],
    ] {
        let whole = tokenizer.encode(&pieces.concat()).unwrap();
        let joined: Vec<u32> = pieces.iter().flat_map(|piece| tokenizer.encode(piece).unwrap()).collect();
        assert_eq!(joined, whole, "{pieces:?}");
    }
}

#[test]
fn encode_text_never_yields_a_special_token() {
    let tokenizer = small_tokenizer();
    let text = "buy<|im_end|><|im_start|><think><|1|></think> <|endoftext|>";
    let ids = tokenizer.encode_text(text).unwrap();
    assert!(ids.iter().all(|id| !tokenizer.is_special(*id)));
    assert_eq!(tokenizer.decode(&ids), text);
    let without_tokens = "click[black], it's $3";
    assert_eq!(tokenizer.encode_text(without_tokens).unwrap(), tokenizer.encode(without_tokens).unwrap());
}

#[test]
fn a_special_token_spelled_in_the_training_text_is_not_merged() {
    let texts = ["<think><think><think> <|im_end|><|im_end|><|im_end|>"; 9];
    let tokenizer = BpeTokenizer::train(texts, 400, &[]).unwrap();
    let ids = tokenizer.encode_text("<think><|im_end|>").unwrap();
    assert!(ids.iter().all(|id| !tokenizer.is_special(*id)));
}

#[test]
fn a_saved_tokenizer_is_loaded_unchanged() {
    let tokenizer = small_tokenizer();
    let dir = tempfile::tempdir().unwrap();
    tokenizer.save(dir.path()).unwrap();
    let loaded = BpeTokenizer::load(dir.path()).unwrap();
    assert!(loaded.to_json() == tokenizer.to_json());
    assert_eq!(loaded.vocab_size(), tokenizer.vocab_size());
    assert_eq!(loaded.special_ids(), tokenizer.special_ids());
    for page in PAGES {
        assert_eq!(loaded.encode(page).unwrap(), tokenizer.encode(page).unwrap());
    }
}

#[test]
fn truncation_and_padding_of_a_file_are_not_applied() {
    let tokenizer = small_tokenizer();
    let mut json: serde_json::Value = serde_json::from_str(&tokenizer.to_json()).unwrap();
    json["truncation"] =
        serde_json::json!({ "direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0 });
    json["padding"] = serde_json::json!({
        "strategy": { "Fixed": 500 }, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
        "pad_type_id": 0, "pad_token": "<|endoftext|>",
    });
    let loaded = BpeTokenizer::from_json(&json.to_string()).unwrap();
    assert_eq!(loaded.encode(PAGES[0]).unwrap(), tokenizer.encode(PAGES[0]).unwrap());

    json["model"]["dropout"] = serde_json::json!(0.1);
    let error = BpeTokenizer::from_json(&json.to_string()).unwrap_err().to_string();
    assert!(error.contains("dropout of 0.1"), "{error}");
}

#[test]
fn invalid_tokenizers_are_refused() {
    let message = |result: Result<BpeTokenizer, LmError>| result.unwrap_err().to_string();
    assert_eq!(
        message(BpeTokenizer::train(["a"], 200, &[])),
        "tokenizer: a vocabulary of `200` tokens has no room for the 261 special and byte tokens"
    );
    assert_eq!(
        message(BpeTokenizer::train(["a"], 300, &["word"])),
        "tokenizer: special token `word` must look like `<this>`"
    );
    let dir = tempfile::tempdir().unwrap();
    assert!(message(BpeTokenizer::load(dir.path())).contains("tokenizer.json"));
    let words =
        r#"{"version":"1.0","added_tokens":[],"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"}}"#;
    assert!(message(BpeTokenizer::from_json(words)).contains("only byte-level BPE"));
}

#[test]
fn streamed_texts_concatenate_to_the_decoded_text() {
    let tokenizer = small_tokenizer();
    for text in ["<think> red no </think> click[3x-large/black]<|im_end|>", "é 👟 漢字 a\n b", "( x", ""]
    {
        let ids = tokenizer.encode(text).unwrap();
        let mut stream = TextStream::new(&tokenizer);
        let mut pieces_so_far: Vec<String> = ids.iter().map(|id| stream.push(*id)).collect();
        pieces_so_far.push(stream.finish());
        assert!(
            pieces_so_far.iter().all(|piece| !piece.contains(char::REPLACEMENT_CHARACTER)),
            "{pieces_so_far:?}"
        );
        assert_eq!(pieces_so_far.concat(), tokenizer.decode(&ids));
    }
}

#[test]
fn incomplete_characters_and_unknown_ids_are_decoded() {
    let tokenizer = small_tokenizer();
    let euro = tokenizer.encode("€").unwrap();
    assert_eq!(euro.len(), 3);
    assert_eq!(tokenizer.decode(&euro[..2]), "\u{fffd}");
    assert_eq!(tokenizer.decode(&[]), "");
    assert_eq!(tokenizer.decode(&[1_000_000]), "");
}
