//! Start-up time and memory.
//!
//! A separate process opens the shop of each embedded catalog, prints the first observation, and then creates
//! 10,000 sessions in the middle of their episodes. Time is measured from before the start of that process.
//! Memory is the resident size after the first observation, with the [`Session`]s, and with as many lanes of
//! a [`VecEnv`], which also hold their pages.
//!
//! ```text
//! cargo bench -p webshop-env --bench memory                     # Linux, for its /proc
//! ```

#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

mod common;

use common::{Wanderer, memory};
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;
use webshop_env::{EnvConfig, Session, Shop, ShopConfig, ShopEnv, VecEnv};

/// The number of sessions.
const N_SESSIONS: usize = 10_000;

/// Each session is after 1 to this many actions.
const MOST_MOVES: usize = 7;

/// The number of starts, of which the median is printed.
const N_STARTS: usize = 11;

/// The first argument of the child process.
const CHILD: &str = "--child";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == CHILD) {
        return open_and_fill();
    }
    println!("catalog  first observation, s      resident, MB  more per session, bytes  per lane, bytes");
    for catalog in ["100", "1000"] {
        let mut starts: Vec<f64> = (0..N_STARTS).map(|_| child(catalog).0).collect();
        starts.sort_by(f64::total_cmp);
        let [first, sessions, lanes] = child(catalog).1;
        let per = |bytes: u64| bytes as f64 / N_SESSIONS as f64;
        println!(
            "{catalog:<8} {:>6.3} ({:.3} to {:.3}) {:>11.1} {:>24.0} {:>16.0}",
            starts[N_STARTS / 2],
            starts[0],
            starts[N_STARTS - 1],
            first as f64 / 1e6,
            per(sessions.saturating_sub(first)),
            per(lanes.saturating_sub(sessions)),
        );
    }
}

/// Seconds to the first observation of a new process, and its memory in bytes at three points.
fn child(catalog: &str) -> (f64, [u64; 3]) {
    let start = Instant::now();
    let program = std::env::current_exe().expect("this program has a file");
    let mut child = Command::new(program)
        .args([CHILD, catalog])
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts again");
    let mut lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
    let mut next = || lines.next().expect("the child prints four lines").expect("in text");
    let observation = next();
    let seconds = start.elapsed().as_secs_f64();
    assert!(observation.contains("Instruction:"), "the first page: {observation}");
    let resident = [(); 3].map(|()| next().parse().expect("a number of bytes"));
    assert!(child.wait().expect("it ends").success(), "it ends well");
    (seconds, resident)
}

/// The child process.
fn open_and_fill() {
    let shop = common::shop(ShopConfig::default().remembered_searches, None);
    let mut first = ShopEnv::new(Arc::clone(&shop), EnvConfig::default());
    println!("{}", first.reset(Wanderer::new(&shop, 0).goal()).content());
    println!("{}", memory("VmRSS"));
    let sessions: Vec<Session> = (0..N_SESSIONS).map(|number| wandered(&shop, number)).collect();
    println!("{}", memory("VmRSS"));
    let goals: Vec<_> = sessions.iter().map(Session::goal).collect();
    let mut lanes = VecEnv::new(&shop, EnvConfig::default(), &goals);
    for (lane, session) in sessions.iter().enumerate() {
        lanes.resume_lane(lane, session.clone());
    }
    println!("{}", memory("VmRSS"));
    black_box((first, sessions, lanes));
}

/// A session in the middle of an episode.
fn wandered(shop: &Arc<Shop>, number: usize) -> Session {
    let mut agent = Wanderer::new(shop, number as u64);
    let mut env = ShopEnv::new(Arc::clone(shop), EnvConfig::default());
    let goal = agent.goal();
    let mut available = env.reset(goal).available_actions();
    for _ in 0..=number % MOST_MOVES {
        let before = env.session().clone();
        let step = env.step(&agent.action(goal, &available));
        if step.terminated {
            return before;
        }
        available = step.observation.available_actions();
    }
    env.session().clone()
}
