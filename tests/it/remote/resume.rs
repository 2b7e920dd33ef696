//! A file of episodes is continued where it ends, and a file of other episodes is refused.

use std::fs;

use super::*;
use webshop_agent::ShopR1Variant;
use webshop_remote::resume_file;

/// A file with the records of these episodes, and `more` behind them.
fn file_of(episodes: &[Episode], more: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), lines(episodes) + more).expect("a written file");
    file
}

#[test]
fn a_file_of_episodes_is_continued() {
    let shop = Arc::new(corner_shop());
    let tasks = tasks(&shop, 4);
    let policy = policy(&served(&shop, PromptFormat::Ragen, |_, _| None), config(PromptFormat::Ragen));
    let made = play(&policy, &tasks).expect("the server is there");
    let made: Vec<Episode> = made.into_iter().map(|episode| episode.expect("no episode fails")).collect();
    // The episodes of the second and the last task, and the beginning of another.
    let half = &line(&made[0])[..300];
    let file = file_of(&[made[3].clone(), made[1].clone()], half);
    let (mut episodes, kept) = resume_file(file.path(), &policy, &tasks, &shop).expect("its own episodes");
    assert_eq!(kept.dropped_bytes, 300);
    let places: Vec<usize> = (0..4).filter(|&place| kept.episodes[place].is_some()).collect();
    assert_eq!(places, [1, 3]);
    for place in places {
        let kept = kept.episodes[place].as_ref().expect("one of those places");
        assert_eq!(line(kept), line(&made[place]), "read and written again, it is the same line");
    }
    let second = resume_file(file.path(), &policy, &tasks, &shop).expect_err("it is being written to");
    assert!(second.to_string().ends_with("another program has the file open"), "{second}");
    episodes.append(&made[0]).expect("a written line");
    let whole: String = [3, 1, 0].map(|place| line(&made[place])).concat();
    assert_eq!(fs::read_to_string(file.path()).expect("a file"), whole);
}

#[test]
fn a_file_of_other_episodes_is_refused() {
    let shop = Arc::new(corner_shop());
    let tasks = tasks(&shop, 2);
    let address = served(&shop, PromptFormat::Ragen, |_, _| None);
    let as_configured = |config: RemoteConfig| policy(&address, config);
    let first = as_configured(config(PromptFormat::Ragen));
    let made = play(&first, &tasks).expect("the server is there");
    let made: Vec<Episode> = made.into_iter().map(|episode| episode.expect("no episode fails")).collect();
    let check = |expected: &str, policy: &RemotePolicy, tasks: &[Task], episodes: &[Episode], more: &str| {
        let file = file_of(episodes, more);
        let before = fs::read(file.path()).expect("a file");
        let refusal =
            resume_file(file.path(), policy, tasks, &shop).expect_err("it does not belong").to_string();
        let message = refusal.replace(file.path().to_str().expect("a plain name"), "FILE");
        assert_eq!(message, format!("cannot resume `FILE`: {expected}"));
        assert_eq!(fs::read(file.path()).expect("a file"), before, "it is left alone");
    };
    let differs = |what: &str| format!("line 1: the settings differ: {what}");
    let other = |change: &dyn Fn(&mut RemoteConfig)| {
        let mut config = config(PromptFormat::Ragen);
        change(&mut config);
        as_configured(config)
    };
    let model = other(&|config| config.request.model = "owl".into());
    check(&differs("model was `parrot`, is `owl`"), &model, &tasks, &made, "");
    let prompt_format =
        other(&|config| config.request.prompt_format = PromptFormat::ShopR1(ShopR1Variant::AllPages));
    let expected = "prompt format was `ragen`, is `shop-r1`, prompt version was `ragen-v1`, is `shop-r1-v3`";
    check(&differs(expected), &prompt_format, &tasks, &made, "");
    let steps = other(&|config| config.max_steps = 9);
    check(&differs("step limit was `15`, is `9`"), &steps, &tasks, &made, "");
    let oracles = local_episodes(&tasks, &mut OraclePolicy);
    let file = file_of(&oracles, "");
    let refusal = resume_file(file.path(), &first, &tasks, &shop).expect_err("the oracle's").to_string();
    assert!(refusal.contains("policy was `oracle`, is `remote`"), "{refusal}");
    check("line 2: goal 1 (sample 0) is not among the tasks", &first, &tasks[..1], &made, "");
    let twice = [made[0].clone(), made[1].clone(), made[0].clone()];
    check("line 3: a second episode for goal 0 (sample 0)", &first, &tasks, &twice, "");
    let broken = "line 3: not a recorded episode: EOF while parsing an object at column 1";
    check(broken, &first, &tasks, &made, "{\n");
    check("line 1: it has no end of line", &first, &tasks, &[], "a file of something else");
    let forged = lines(&made).replacen("click[buy now]", "click[description]", 1);
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), forged).expect("a written file");
    let refusal = resume_file(file.path(), &first, &tasks, &shop).expect_err("it went otherwise").to_string();
    assert!(refusal.contains("line 1: turn ") && refusal.contains("` in the recording and `"), "{refusal}");
}
