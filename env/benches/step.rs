//! How fast the shop answers: steps per second on one core and on two, and the time for each kind of page.
//!
//! A step is everything an agent waits for: the action, the page, its text, and the list of available actions; resets
//! are included. The customer is the [`common::Wanderer`]. Searches are remembered or not, as stated: a memo answers
//! words that were searched for before. On two cores, lanes of a `VecEnv` repeat trips that were recorded before, so
//! that nothing is measured but the shop. Opening is timed too: with its index built, and with its index kept before.
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

/// How long each figure is measured for, in rounds of [`N_STEPS`], after one round that is not counted.
const LONG_ENOUGH: Duration = Duration::from_secs(3);
const N_STEPS: usize = 2_000;

/// Lanes and turns of the recorded trips.
const N_LANES: usize = 512;
const N_TURNS: usize = 50;

/// So many steps are timed one by one, unless that takes too long.
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
            print_rate(&format!("{name}, every search made"), wander(&shop, observation));
        }
        println!("\nVecEnv of {N_LANES} lanes, text, every search made");
        let script = Script::record(&shop);
        let [one, two] = [1, 2].map(|n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("a few threads");
            let rates = pool.install(|| script.play(&shop));
            print_rate(if n_threads == 1 { "1 thread" } else { "2 threads" }, rates)
        });
        println!("{:<32} {:>8.2} times", "", two / one);
        println!("\nstep, text, every search made      steps    mean     p50     p99   microseconds");
        print_times(steps_by_kind(&shop));
        println!("search alone, whole instructions");
        print_times(searches(&shop));
        println!();
    }
    let shop = open("loaded", ShopConfig::default().remembered_searches, &cache);
    print_rate("text, searches remembered", wander(&shop, ObservationMode::Text));
    std::fs::remove_dir_all(&cache).expect("the index is removed again");
}

/// Opens the shop, and tells what that takes.
fn open(how: &str, remembered_searches: usize, cache: &Path) -> Arc<Shop> {
    let start = Instant::now();
    let shop = common::shop(remembered_searches, Some(cache));
    let seconds = start.elapsed().as_secs_f64();
    let kept = std::fs::read_dir(cache).expect("the index is kept").flatten();
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

/// Prints steps per second over all rounds, and returns it.
fn print_rate(name: &str, rounds: Vec<f64>) -> f64 {
    // The mean over rounds of equally many steps.
    let rate = rounds.len() as f64 / rounds.iter().map(|rate| 1.0 / rate).sum::<f64>();
    let slowest = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let fastest = rounds.iter().copied().fold(0.0, f64::max);
    println!("{name:<32} {rate:>8.0}  ({slowest:.0}, {fastest:.0})");
    rate
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

/// Steps per second in each round, each round's `play` being [`N_STEPS`] of them or as many as it says.
fn rounds(n_steps: usize, mut play: impl FnMut()) -> Vec<f64> {
    play();
    let start = Instant::now();
    let mut rates = Vec::new();
    while start.elapsed() < LONG_ENOUGH {
        let start = Instant::now();
        play();
        rates.push(n_steps as f64 / start.elapsed().as_secs_f64());
    }
    rates
}

fn wander(shop: &Arc<Shop>, observation: ObservationMode) -> Vec<f64> {
    let mut env = ShopEnv::new(Arc::clone(shop), EnvConfig { observation, ..EnvConfig::default() });
    let mut customer = Wanderer::new(shop, 0);
    let mut goal = customer.goal();
    let mut available = env.reset(goal).available_actions;
    rounds(N_STEPS, || {
        for _ in 0..N_STEPS {
            let step = env.step(&customer.action(goal, &available));
            black_box((&step.observation.content, step.reward));
            available = if step.terminated || step.truncated {
                goal = customer.goal();
                env.reset(goal).available_actions
            } else {
                step.observation.available_actions
            };
        }
    })
}

/// What all lanes do.
struct Script {
    starts: Vec<GoalId>,
    turns: Vec<Turn>,
}

/// One action for each lane, and then a new trip for some.
struct Turn {
    actions: Vec<Action>,
    resets: Vec<(usize, GoalId)>,
}

impl Script {
    fn record(shop: &Arc<Shop>) -> Self {
        let mut customers: Vec<_> = (0..N_LANES as u64).map(|lane| Wanderer::new(shop, lane)).collect();
        let mut goals: Vec<GoalId> = customers.iter_mut().map(Wanderer::goal).collect();
        let starts = goals.clone();
        let mut env = VecEnv::new(shop, EnvConfig::default(), &goals);
        let mut seen = env.observations();
        let turns = (0..N_TURNS).map(|_| {
            let act = |lane: usize, customer: &mut Wanderer| {
                customer.action(goals[lane], &seen[lane].available_actions)
            };
            let actions: Vec<_> =
                customers.iter_mut().enumerate().map(|(lane, who)| act(lane, who)).collect();
            let steps = env.step(&actions);
            let mut resets = Vec::new();
            for (lane, step) in steps.into_iter().enumerate() {
                seen[lane] = step.observation;
                if step.terminated || step.truncated {
                    goals[lane] = customers[lane].goal();
                    seen[lane] = env.reset_lane(lane, goals[lane]);
                    resets.push((lane, goals[lane]));
                }
            }
            Turn { actions, resets }
        });
        Script { turns: turns.collect(), starts }
    }

    fn play(&self, shop: &Arc<Shop>) -> Vec<f64> {
        let mut env = VecEnv::new(shop, EnvConfig::default(), &self.starts);
        rounds(N_LANES * N_TURNS, || {
            for (lane, &goal) in self.starts.iter().enumerate() {
                env.reset_lane(lane, goal);
            }
            for Turn { actions, resets } in &self.turns {
                black_box(env.step(actions));
                for &(lane, goal) in resets {
                    black_box(env.reset_lane(lane, goal));
                }
            }
        })
    }
}

/// The time of each step, by what the customer did and where it led.
fn steps_by_kind(shop: &Arc<Shop>) -> BTreeMap<&'static str, Vec<Duration>> {
    let mut env = ShopEnv::new(Arc::clone(shop), EnvConfig::default());
    let mut customer = Wanderer::new(shop, 0);
    let mut times: BTreeMap<&'static str, Vec<Duration>> = BTreeMap::new();
    let mut goal = customer.goal();
    let mut available = env.reset(goal).available_actions;
    let begin = Instant::now();
    for _ in (0..N_TIMED).take_while(|_| begin.elapsed() < TOO_LONG) {
        let action = customer.action(goal, &available);
        let start = Instant::now();
        let step = env.step(&action);
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
        available = step.observation.available_actions;
        if step.terminated || step.truncated {
            goal = customer.goal();
            let start = Instant::now();
            available = env.reset(goal).available_actions;
            times.entry("reset -> search").or_default().push(start.elapsed());
        }
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
