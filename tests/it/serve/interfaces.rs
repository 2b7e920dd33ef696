//! Through every interface an episode is the episode of a local session, however many others run beside it.

use rand::Rng;
use std::thread;
use webshop_agent::OraclePolicy;
use webshop_env::Action;
use webshop_products::{Purpose, Seed};

use super::players::{AgentGym, Local, McpTools, Native, OpenEnv, Player, Seen, Site, Tools};
use crate::common::client::{SHOP, Served, config, served};
use crate::common::model::{local_episodes, tasks};

const MAX_STEPS: u32 = 15;

/// The site has no limit of its own.
const NO_LIMIT: u32 = 1000;

/// A player at each interface, by name, with a local one that must see the same.
fn players(server: &Served) -> Vec<(&'static str, Box<dyn Player + '_>, Local)> {
    let local = |limit| Local::new(&SHOP, limit);
    vec![
        ("native", Box::new(Native::new(server)), local(MAX_STEPS)),
        ("openenv", Box::new(OpenEnv::new(server)), local(MAX_STEPS)),
        ("tools", Box::new(Tools::new(server)), local(MAX_STEPS)),
        ("mcp", Box::new(McpTools::new(server)), local(MAX_STEPS)),
        ("agentgym", Box::new(AgentGym::new(server)), local(MAX_STEPS)),
        ("site", Box::new(Site::new(server)), local(NO_LIMIT)),
    ]
}

#[test]
fn the_oracle_earns_1_through_every_interface() {
    let server = served(config());
    let episodes = local_episodes(&tasks(&SHOP, 12), &mut OraclePolicy);
    for (name, mut player, mut local) in players(&server) {
        for (goal, episode) in episodes.iter().enumerate() {
            assert_eq!(player.reset(goal as u32), local.reset(goal as u32), "{name}, goal {goal}");
            let seen: Vec<Seen> = episode
                .turns
                .iter()
                .map(|turn| {
                    let action = turn.action.to_string();
                    let (seen, expected) = (player.step(&action), local.step(&action));
                    assert_eq!(seen, expected, "{name}, goal {goal}, {action}");
                    seen
                })
                .collect();
            let last = seen.last().expect("an episode has turns");
            assert_eq!((last.reward, last.done), (1.0, true), "{name}, goal {goal}");
        }
    }
}

/// An action that depends on the page and the coordinates only: mostly one of the page's.
fn chosen(seen: &Seen, goal: u32, coordinates: [u64; 2]) -> String {
    let mut rng = Seed(5).rng(Purpose::new("policy"), &coordinates);
    let clicks: Vec<String> = seen.actions.clicks().map(|action| action.to_string()).collect();
    let others = ["", "buy", "search[", "click[nothing]", "search[<r>]", "search[ünï \u{1f600} c++ / ']"];
    match rng.random_range(0..10) {
        0 => others[rng.random_range(0..others.len())].to_owned(),
        _ if seen.actions.has_search_bar || clicks.is_empty() => {
            let goal = &SHOP.goals().goals()[goal as usize];
            Action::Search(goal.query.to_lowercase()).to_string()
        }
        _ => clicks[rng.random_range(0..clicks.len())].clone(),
    }
}

#[test]
fn ninety_six_sessions_side_by_side_are_local_sessions() {
    let server = served(config());
    let n_goals = SHOP.goals().goals().len() as u32;
    // Four threads, each of which steps its sessions in turn.
    let work = |thread: u64| {
        let mut all: Vec<_> = (0..5).flat_map(|_| players(&server)).take(24).collect();
        let mut seen: Vec<Seen> = Vec::new();
        let goal = |number: usize| (thread as u32 * 31 + number as u32 * 7) % n_goals;
        for (number, (name, player, local)) in all.iter_mut().enumerate() {
            seen.push(player.reset(goal(number)));
            assert_eq!(seen[number], local.reset(goal(number)), "{name}");
        }
        let mut n_bought = 0;
        for turn in 0..18 {
            for (number, (name, player, local)) in all.iter_mut().enumerate() {
                let session = thread * 24 + number as u64;
                let action = chosen(&seen[number], goal(number), [session, turn]);
                let (next, expected) = (player.step(&action), local.step(&action));
                assert_eq!(next, expected, "{name}, session {session}, turn {turn}, {action}");
                n_bought += u32::from(next.actions.clickables.is_empty() && next.done && !seen[number].done);
                seen[number] = next;
            }
        }
        (n_bought, seen.iter().filter(|seen| seen.done).count())
    };
    let outcomes: Vec<(u32, usize)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("every session is local")).collect()
    });
    let n_bought: u32 = outcomes.iter().map(|(n_bought, _)| n_bought).sum();
    let n_done: usize = outcomes.iter().map(|(_, n_done)| n_done).sum();
    assert!(n_bought > 5 && n_done > 60, "{n_bought} purchases, {n_done} ends");
}

#[test]
fn a_seed_is_the_same_goal_through_every_interface() {
    use serde_json::{Value, json};
    let server = served(config());
    let expected = SHOP.goals().goal_for_seed(webshop_products::Split::Test, Seed(11)).expect("test goals").0;
    let reset = json!({"split": "test", "seed": 11});
    let native = server.post("/api/v1/sessions", &reset).json();
    let batch = server.post("/api/v1/batch/reset", &json!({"split": "test", "seeds": [11]})).json();
    let http = server.post("/reset", &reset).json();
    let socket = server.socket("/ws").say(json!({"type": "reset", "data": reset}));
    let goals: [&Value; 4] = [
        &native["goal"],
        &batch["goal"][0],
        &http["observation"]["goal"],
        &socket["data"]["observation"]["goal"],
    ];
    assert_eq!(goals, [&Value::from(expected); 4]);
}
