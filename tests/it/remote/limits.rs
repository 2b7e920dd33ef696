//! How many episodes run at one time, and how a rollout is stopped.

use std::sync::Condvar;

use super::*;

/// How many requests are open, and the most at one time so far.
#[derive(Default)]
struct Load {
    now: usize,
    most: usize,
}

/// The most requests at one time where so many episodes may run; the first of them wait for each other.
fn most_at_once(concurrency: usize) -> usize {
    let shop = Arc::new(corner_shop());
    let model = Model::new(&shop, PromptFormat::VerlAgent);
    let load: Arc<(Mutex<Load>, Condvar)> = Arc::default();
    let shared = load.clone();
    let address = serve(move |asked| {
        let (load, arrived) = &*shared;
        let mut locked = load.lock().expect("no thread panics");
        locked.now += 1;
        locked.most = locked.most.max(locked.now);
        arrived.notify_all();
        // Where fewer come, no request is answered, and the episodes fail at their time limit.
        drop(arrived.wait_while(locked, |load| load.most < concurrency).expect("no thread panics"));
        let answer = model.answer(asked);
        load.lock().expect("no thread panics").now -= 1;
        answer
    });
    let config = requesting(PromptFormat::VerlAgent, |request| request.concurrency = concurrency);
    let episodes = play(&policy(&address, config), &tasks(&shop, 10)).expect("the server is there");
    assert!(episodes.iter().all(Result::is_ok), "{episodes:?}");
    load.0.lock().expect("no thread panics").most
}

#[test]
fn exactly_as_many_episodes_as_allowed_run_at_one_time() {
    for concurrency in [1, 3] {
        assert_eq!(most_at_once(concurrency), concurrency);
    }
}

#[test]
fn running_episodes_are_abandoned_at_a_stop() {
    let shop = Arc::new(corner_shop());
    let tasks: Vec<(usize, Task)> = tasks(&shop, 6).into_iter().enumerate().collect();
    let slow = instruction(&shop, &tasks[1].1);
    let address = served(&shop, PromptFormat::VerlAgent, move |instruction, _| {
        (instruction == slow).then(|| {
            loop {
                std::thread::park();
            }
        })
    });
    let (stop, mut n_ended) = (AtomicBool::new(false), 0);
    let config = requesting(PromptFormat::VerlAgent, |request| request.concurrency = 2);
    let played = policy(&address, config).run(&tasks, &stop, &mut |_, outcome| {
        outcome.expect("no episode fails");
        n_ended += 1;
        stop.store(n_ended == 3, Ordering::Relaxed);
        Ok(())
    });
    played.expect("to stop is no error");
    assert_eq!(n_ended, 3);
}
