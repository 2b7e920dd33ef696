//! Few-shot examples in front of prompts.

use super::*;

#[test]
fn examples_stand_behind_the_system_message_and_before_the_first_page() {
    let (shop, tokenizer) = (shop(), tokenizer());
    let expert = Expert::new(&shop, 5);
    let demonstrated =
        (0..40).filter_map(|goal| Some((GoalId(goal), expert.episode(GoalId(goal), ExpertKind::Thinking)?)));
    let demonstrated: Vec<_> = demonstrated.take(2).collect();
    let [(example, example_turns), (goal, turns)] = &demonstrated[..] else { panic!("two are demonstrated") };
    for prompt_format in chats() {
        let plain = format(prompt_format, CHAT);
        let mut shot = plain.clone();
        assert!(shot.few_shot.add(prompt_format, &shop, *example, example_turns, 15), "{prompt_format}");
        let prompts = |format: &ChatFormat| -> Vec<String> {
            let renderer = DemonstrationRenderer::new(&tokenizer, format, &config(false), 15).unwrap();
            let rendered =
                renderer.render(&shop, *goal, turns).unwrap().expect("every action can be rendered");
            rendered.iter().map(|turn| tokenizer.decode(&turn.prompt_ids)).collect()
        };
        let (without, with) = (prompts(&plain), prompts(&shot));
        let is_rebuilt = prompt_format.history() == History::Rebuild;
        for (turn, (without, with)) in without.iter().zip(&with).enumerate() {
            if turn > 0 && !is_rebuilt {
                assert_eq!(with, without, "{prompt_format}: a growing chat has the examples once");
                continue;
            }
            let at = without.find("<|im_start|>user").expect("a prompt has a user's message");
            let (system, rest) = without.split_at(at);
            let shown = with.strip_prefix(system).and_then(|text| text.strip_suffix(rest));
            let mut shown = shown.unwrap_or_else(|| panic!("{prompt_format}: {with}"));
            assert_eq!(tokenizer.encode(shown).unwrap().len(), shot.n_example_tokens(&tokenizer).unwrap());
            for turn in example_turns {
                let thought = prompt_format.demonstrated_thought(&turn.thought, &turn.action);
                let completion = prompt_format.render_completion(&thought, &turn.action);
                let (_, rest) = shown.split_once(&completion).expect("all completions, in their order");
                shown = rest;
            }
            assert_eq!(shown, format!("{END}\n"), "{prompt_format}: the example ends with its purchase");
        }
        assert_ne!(plain.version().unwrap(), shot.version().unwrap());
        assert_eq!(plain.n_example_tokens(&tokenizer).unwrap(), 0);
    }
}

#[test]
fn a_model_folder_keeps_its_examples() {
    let (shop, folder) = (shop(), tempfile::tempdir().unwrap());
    let expert = Expert::new(&shop, 5);
    let (goal, turns) = (0..40)
        .find_map(|goal| Some((GoalId(goal), expert.episode(GoalId(goal), ExpertKind::Thinking)?)))
        .unwrap();
    let load = |prompt_format| FewShot::load(folder.path(), prompt_format);
    FewShot::default().save(folder.path(), PromptFormat::ToolCall).unwrap();
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "no examples, no file");
    let mut examples = FewShot::default();
    assert!(examples.add(PromptFormat::ToolCall, &shop, goal, &turns, 15));
    examples.save(folder.path(), PromptFormat::ToolCall).unwrap();
    assert_eq!(load(PromptFormat::ToolCall).unwrap(), examples);
    assert!(load(PromptFormat::Ragen).unwrap().is_empty(), "they are of another format");
    std::fs::write(folder.path().join("few_shot.json"), "{}").unwrap();
    let error = load(PromptFormat::ToolCall).unwrap_err().to_string();
    assert!(error.contains("few_shot.json") && error.contains("prompt_format"), "{error}");
}
