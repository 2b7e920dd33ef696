//! Steps per second on one core and on two, and the time for each kind of page.
//!
//! On one core a step is action, page, rendered text and available actions; resets are included. The agent is
//! a [`common::Wanderer`]. Searches are cached or not, as stated. On two cores, the lanes of a `VecEnv`
//! replay recorded episodes without rendering. Forking a session in the middle of an episode is timed beside
//! a replay from the start, and opening the shop with and without a cached index.
//!
//! ```text
//! cargo bench -p webshop-env --bench step                       # the embedded 1,000 products
//! cargo bench -p webshop-env --bench step -- DIR [human|synthetic]
//! ```

#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

mod common;

use common::{Wanderer, memory};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use webshop_env::{Action, EnvConfig, ObservationMode, Page, Shop, ShopConfig, ShopEnv, VecEnv};
use webshop_products::{GoalId, Split};

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The duration of each measurement, in rounds of [`N_STEPS`], after one round that is not counted.
const LONG_ENOUGH: Duration = Duration::from_secs(3);
const N_STEPS: usize = 2_000;

/// Lanes and turns of the recorded episodes, and how often they are played.
const N_LANES: usize = 4_096;
const N_TURNS: usize = 16;
const N_ROUNDS: usize = 25;

/// In larger catalogs the recorded episodes would take hours.
const MOST_PRODUCTS_TO_SCALE: usize = 100_000;

/// Episodes to continue, each after 1 to [`MOST_MOVES`] actions.
const N_FORKED: usize = 20_000;
const MOST_MOVES: usize = 7;

/// The number of steps timed one by one, unless that takes [`TOO_LONG`].
const N_TIMED: usize = 200_000;
const TOO_LONG: Duration = Duration::from_secs(30);

fn main() {
    let cache = std::env::temp_dir().join(format!("webshop-bench-{}", std::process::id()));
    {
        let shop = open("built", 0, &cache);
        println!("\none core                          steps/s  (slowest and fastest round)");
        for (name, observation) in [
            ("text", ObservationMode::Text),
            ("text_rich", ObservationMode::TextRich),
            ("html", ObservationMode::Html),
        ] {
            print_rate(&format!("{name}, every search made"), &wander(&shop, observation));
        }
        if shop.catalog().len() <= MOST_PRODUCTS_TO_SCALE {
            println!("\nVecEnv of {N_LANES} lanes, text, every search made");
            print_scaling(&shop);
        }
        println!("\nstep, text, every search made      steps    mean     p50     p99   microseconds");
        print_times(steps_by_kind(&shop));
        println!("search alone, whole instructions");
        print_times(searches(&shop));
        println!("to the middle of an episode, every search made");
        print_times(forks(&shop));
        println!();
    }
    let shop = open("loaded", ShopConfig::default().remembered_searches, &cache);
    print_rate("text, searches remembered", &wander(&shop, ObservationMode::Text));
    println!("to the middle of an episode, searches remembered");
    print_times(forks(&shop));
    std::fs::remove_dir_all(&cache).expect("the index is removed again");
}

/// Opens the shop and prints the time and memory that takes.
fn open(how: &str, remembered_searches: usize, cache: &Path) -> Arc<Shop> {
    let start = Instant::now();
    let shop = common::shop(remembered_searches, Some(cache));
    let seconds = start.elapsed().as_secs_f64();
    let kept = std::fs::read_dir(cache).expect("the index is cached").flatten();
    let disk: u64 = kept.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum();
    let [disk, now, most] = [disk, memory("VmRSS"), memory("VmHWM")].map(|bytes| bytes as f64 / 1e6);
    println!(
        "{} products, {} goals: open in {seconds:.2} s, index {how}, {disk:.1} MB of it on disk; \
         {now:.0} MB resident, {most:.0} MB at most",
        shop.catalog().len(),
        shop.goals().goals().len(),
    );
    shop
}

/// Prints steps per second over all rounds, and returns that of the fastest, which was disturbed least.
fn print_rate(name: &str, rounds: &[f64]) -> f64 {
    // The mean over rounds of equally many steps.
    let rate = rounds.len() as f64 / rounds.iter().map(|rate| 1.0 / rate).sum::<f64>();
    let slowest = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let fastest = rounds.iter().copied().fold(0.0, f64::max);
    println!("{name:<32} {rate:>8.0}  ({slowest:.0}, {fastest:.0})");
    fastest
}

fn print_times(kinds: BTreeMap<&'static str, Vec<Duration>>) {
    for (kind, mut times) in kinds {
        times.sort_unstable();
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let mean = micros(times.iter().sum::<Duration>()) / times.len() as f64;
        let [p50, p99] = [50, 99].map(|percent| micros(times[(times.len() - 1) * percent / 100]));
        println!("{kind:<32} {:>8} {mean:>7.1} {p50:>7.1} {p99:>7.1}", times.len());
    }
}

/// Steps per second in each round of [`N_STEPS`].
fn rounds(mut play: impl FnMut()) -> Vec<f64> {
    play();
    let start = Instant::now();
    let mut rates = Vec::new();
    while start.elapsed() < LONG_ENOUGH {
        let start = Instant::now();
        play();
        rates.push(N_STEPS as f64 / start.elapsed().as_secs_f64());
    }
    rates
}

fn wander(shop: &Arc<Shop>, observation: ObservationMode) -> Vec<f64> {
    let mut env = ShopEnv::new(Arc::clone(shop), EnvConfig { observation, ..EnvConfig::default() });
    let mut agent = Wanderer::new(shop, 0);
    let mut goal = agent.goal();
    let mut available = env.reset(goal).available_actions();
    rounds(|| {
        for _ in 0..N_STEPS {
            let step = env.step(&agent.action(goal, &available));
            black_box((&step.observation.content(), step.reward));
            available = if step.terminated || step.truncated {
                goal = agent.goal();
                env.reset(goal).available_actions()
            } else {
                step.observation.available_actions()
            };
        }
    })
}

/// The actions and resets of all lanes.
struct Script {
    starts: Vec<GoalId>,
    turns: Vec<Turn>,
}

/// One action for each lane, and then a new episode for some.
struct Turn {
    actions: Vec<Action>,
    resets: Vec<(usize, GoalId)>,
}

impl Script {
    fn record(shop: &Arc<Shop>) -> Self {
        let mut agents: Vec<_> = (0..N_LANES as u64).map(|lane| Wanderer::new(shop, lane)).collect();
        let mut goals: Vec<GoalId> = agents.iter_mut().map(Wanderer::goal).collect();
        let starts = goals.clone();
        let mut env = VecEnv::new(shop, EnvConfig::default(), &goals);
        let turns = (0..N_TURNS).map(|_| {
            let act = |lane: usize, agent: &mut Wanderer| {
                agent.action(goals[lane], &env.steps()[lane].observation.available_actions())
            };
            let actions: Vec<_> = agents.iter_mut().enumerate().map(|(lane, who)| act(lane, who)).collect();
            let mut resets = Vec::new();
            for (lane, step) in env.step(&actions).iter().enumerate() {
                if step.terminated || step.truncated {
                    goals[lane] = agents[lane].goal();
                    resets.push((lane, goals[lane]));
                }
            }
            env.reset_lanes(&resets);
            Turn { actions, resets }
        });
        Script { turns: turns.collect(), starts }
    }

    /// Steps per second of playing all of it once, from the start.
    fn play(&self, lanes: &mut VecEnv) -> f64 {
        let start = Instant::now();
        lanes.reset_lanes(&self.starts.iter().copied().enumerate().collect::<Vec<_>>());
        for Turn { actions, resets } in &self.turns {
            black_box(lanes.step(actions));
            black_box(lanes.reset_lanes(resets));
        }
        (N_LANES * N_TURNS) as f64 / start.elapsed().as_secs_f64()
    }
}

/// Prints the rates of one thread, of two, and of two with separate `VecEnv`s, which is the upper bound on
/// this machine. The three take turns, so that a slower machine slows all of them.
fn print_scaling(shop: &Arc<Shop>) {
    let script = Script::record(shop);
    let lanes = || VecEnv::new(shop, EnvConfig::default(), &script.starts);
    let pool = |n_threads| rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads");
    let (mut first, mut second) = (lanes(), lanes());
    let (one, other, both) = (pool(1), pool(1), pool(2));
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..N_ROUNDS {
        rates[0].push(one.install(|| script.play(&mut first)));
        rates[1].push(both.install(|| script.play(&mut first)));
        rates[2].push(std::thread::scope(|scope| {
            let apart = scope.spawn(|| other.install(|| script.play(&mut second)));
            one.install(|| script.play(&mut first)) + apart.join().expect("it plays to the end")
        }));
    }
    let names = ["1 thread", "2 threads", "2 threads with lanes of their own"];
    let [one, two, apart] = [0, 1, 2].map(|which| print_rate(names[which], &rates[which]));
    println!("fastest rounds: {:.2} times, of at most {:.2}", two / one, apart / one);
}

/// The time of each step with its observation, by action and resulting page.
fn steps_by_kind(shop: &Arc<Shop>) -> BTreeMap<&'static str, Vec<Duration>> {
    let mut env = ShopEnv::new(Arc::clone(shop), EnvConfig::default());
    let mut agent = Wanderer::new(shop, 0);
    let mut times: BTreeMap<&'static str, Vec<Duration>> = BTreeMap::new();
    let mut goal = agent.goal();
    let mut available = env.reset(goal).available_actions();
    let begin = Instant::now();
    for _ in (0..N_TIMED).take_while(|_| begin.elapsed() < TOO_LONG) {
        let action = agent.action(goal, &available);
        let start = Instant::now();
        let step = env.step(&action);
        black_box((step.observation.content(), step.observation.available_actions()));
        let time = start.elapsed();
        let kind = match (&action, env.page()) {
            (Action::Search(_), _) => "search -> results",
            (_, Page::Results(_)) => "click -> results",
            (_, Page::Item(_)) => "click -> item",
            (_, Page::Detail(_)) => "click -> detail",
            (_, Page::Search(_)) => "click -> search",
            (_, Page::Done(_)) => "buy -> done",
        };
        times.entry(kind).or_default().push(time);
        available = step.observation.available_actions();
        if step.terminated || step.truncated {
            goal = agent.goal();
            let start = Instant::now();
            available = env.reset(goal).available_actions();
            times.entry("reset -> search").or_default().push(start.elapsed());
        }
    }
    times
}

/// The times of three ways to the middle of an episode: a fork of the session, a fork with its page rendered,
/// and a replay from the start.
fn forks(shop: &Arc<Shop>) -> BTreeMap<&'static str, Vec<Duration>> {
    let mut first = ShopEnv::new(Arc::clone(shop), EnvConfig::default());
    let mut other = first.clone();
    let mut times: BTreeMap<&'static str, Vec<Duration>> = BTreeMap::new();
    let mut agent = Wanderer::new(shop, 1);
    let begin = Instant::now();
    for episode in (0..N_FORKED).take_while(|_| begin.elapsed() < TOO_LONG) {
        let goal = agent.goal();
        let mut available = first.reset(goal).available_actions();
        let mut actions = Vec::new();
        while actions.len() <= episode % MOST_MOVES && !first.is_over() {
            let action = agent.action(goal, &available);
            available = first.step(&action).observation.available_actions();
            actions.push(action);
        }
        let mut time = |way, go: &mut dyn FnMut()| {
            let start = Instant::now();
            go();
            times.entry(way).or_default().push(start.elapsed());
        };
        time("session forked", &mut || drop(black_box(first.session().clone())));
        // `other` is in another episode, so that nothing of this one is cached.
        time("session forked and rendered", &mut || {
            drop(black_box(other.resume(first.session().clone()).content()))
        });
        other.reset(agent.goal());
        time("episode replayed", &mut || {
            black_box(other.reset(goal));
            for action in &actions {
                black_box(other.step(action));
            }
        });
        assert_eq!(other.session(), first.session(), "all ways lead to the same state");
        other.reset(agent.goal());
    }
    times
}

/// The time of one search for each of the first 2,000 training goals.
fn searches(shop: &Shop) -> BTreeMap<&'static str, Vec<Duration>> {
    let goals = shop.goals().split(Split::Train);
    let times = goals.iter().take(2_000).map(|&goal| {
        let words = &shop.goals().get(goal).instruction;
        let start = Instant::now();
        black_box(shop.search(words));
        start.elapsed()
    });
    BTreeMap::from([("search", times.collect())])
}
