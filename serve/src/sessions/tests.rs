use std::fs;

use super::*;
use crate::reset::{GoalRequest, ResetRequest};
use webshop_env::Action;
use webshop_products::{Catalog, GoalId, GoalKind, GoalSet, generate};

fn shop() -> Arc<Shop> {
    let data = generate(Seed(0), 30);
    let catalog = Catalog::from_raw(&data, Seed(0)).expect("a sound catalog");
    let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).expect("with sound goals");
    Arc::new(Shop::new(catalog, goals).expect("the shop opens"))
}

fn sessions(max_sessions: usize, idle_intervals: u32) -> Sessions {
    let defaults =
        Defaults { split: Split::Train, max_steps: 15, observation: ObservationMode::Text, seed: Seed(3) };
    Sessions::new(shop(), defaults, Limits { max_sessions, idle_intervals }).expect("goals to train on")
}

fn open(sessions: &Sessions) -> OpenSession {
    sessions.open(Interface::Native, Lifetime::Idle).expect("room")
}

fn reset(goal: GoalRequest) -> ResetRequest {
    ResetRequest::new(goal)
}

const STREAM: GoalRequest = GoalRequest::Stream { split: None };

#[test]
fn a_session_is_a_local_environment() {
    let sessions = sessions(4, 1);
    let session = open(&sessions);
    let view = session.reset(&reset(GoalRequest::Goal(5))).expect("a goal");
    let goal = sessions.shop().goals().get(GoalId(5));
    let mut env = ShopEnv::new(Arc::clone(sessions.shop()), Default::default());
    env.reset(goal.id);
    assert_eq!((view.observation, &view.instruction), (env.page().text(), &goal.instruction));
    assert_eq!((view.step, view.last, view.terminated, view.truncated), (0, None, false, false));
    let product = goal.asin.as_str().to_lowercase();
    for action in [format!("search[{}]", goal.title), "click[nothing]".into(), format!("click[{product}]")] {
        let step = env.step(&Action::parse(&action, Default::default()));
        let view = session.step(&action).expect("an episode");
        assert_eq!(view.observation, step.observation.content());
        assert_eq!(view.available_actions, step.observation.available_actions());
        assert_eq!((view.reward(), view.last.map(|last| last.noop)), (step.reward, Some(step.info.noop)));
        assert_eq!((view.digest, view.step), (env.session().digest(), env.session().steps()));
    }
}

#[test]
fn a_goal_is_chosen_by_number_index_or_seed() {
    let sessions = sessions(4, 1);
    let goals = sessions.shop().goals();
    let session = open(&sessions);
    let goal = |request| session.reset(&reset(request)).map(|view| (view.goal, view.split, view.seed));
    let test = goals.split(Split::Test);
    assert_eq!(goal(GoalRequest::Goal(u64::from(test[1].0))), Ok((test[1], Split::Test, None)));
    let split = Some(Split::Test);
    assert_eq!(goal(GoalRequest::Index { split, index: 1 }), Ok((test[1], Split::Test, None)));
    let drawn = goals.goal_for_seed(Split::Test, Seed(9)).expect("test goals");
    assert_eq!(goal(GoalRequest::Seed { split, seed: 9 }), Ok((drawn, Split::Test, Some(9))));
    let drawn = goals.goal_for_seed(Split::Train, Seed(9)).expect("training goals");
    assert_eq!(goal(GoalRequest::Seed { split: None, seed: 9 }), Ok((drawn, Split::Train, Some(9))));
    let (n_goals, n_test) = (goals.goals().len(), test.len());
    let beyond = n_goals as u64;
    assert_eq!(
        goal(GoalRequest::Goal(beyond)),
        Err(SessionError::NoSuchGoal { goal: beyond.to_string(), n_goals })
    );
    let index = n_test as u64;
    let no_such = SessionError::NoSuchIndex { split: Split::Test, index, n_goals: n_test };
    assert_eq!(goal(GoalRequest::Index { split, index }), Err(no_such));
}

#[test]
fn a_stream_depends_on_the_session_and_the_reset_only() {
    let goals = |others: bool| -> Vec<GoalId> {
        let sessions = sessions(9, 1);
        let (one, other) = (open(&sessions), open(&sessions));
        let goal = |_| {
            if others {
                other.reset(&reset(STREAM)).expect("a goal");
                other.step("search[x]").expect("an episode");
            }
            one.reset(&reset(STREAM)).expect("a goal").goal
        };
        (0..20).map(goal).collect()
    };
    assert_eq!(goals(false), goals(true));
    let sessions = sessions(9, 1);
    let (one, other) = (open(&sessions), open(&sessions));
    let stream = |session: &OpenSession| -> Vec<GoalId> {
        (0..20).map(|_| session.reset(&reset(STREAM)).expect("a goal").goal).collect()
    };
    let first = stream(&one);
    assert_ne!(first, stream(&other));
    assert_ne!(first, stream(&one), "the stream goes on");
}

#[test]
fn a_session_without_a_reset_begins_by_its_stream() {
    let sessions = sessions(9, 1);
    let (first, again) = (open(&sessions).view().expect("a goal"), self::sessions(9, 1));
    assert_eq!(open(&again).reset(&reset(STREAM)).expect("a goal"), first);
    assert_eq!(open(&sessions).step("click[x]").expect("a goal").step, 1);
}

#[test]
fn a_full_table_refuses_and_numbers_are_never_used_again() {
    let sessions = sessions(2, 1);
    let (first, second) = (open(&sessions), open(&sessions));
    let full = SessionError::Full { active: 2, limit: 2 };
    assert_eq!(sessions.open(Interface::AgentGym, Lifetime::Idle).map(|s| s.id()), Err(full.clone()));
    assert_eq!(sessions.fork(&first, 1).map(|copies| copies.len()), Err(full));
    let too_many = SessionError::TooMany { n: 3, limit: 2 };
    assert_eq!(sessions.fork(&first, 3).map(|copies| copies.len()), Err(too_many));
    assert!(sessions.close(first.id()) && !sessions.close(first.id()));
    let third = sessions.open(Interface::AgentGym, Lifetime::Idle).expect("room");
    assert_eq!([first, second, third].map(|session| session.id().ordinal), [0, 1, 2]);
    assert_eq!(sessions.counts(Interface::AgentGym).refused, 1);
    // Sessions of one interface are not found at another.
    let found = |interface, name| sessions.find_named(interface, name).map(|session| session.id().ordinal);
    assert_eq!(found(Interface::AgentGym, "2"), Ok(2));
    for (interface, name) in [
        (Interface::Native, "2"),
        (Interface::Native, "0"),
        (Interface::Native, "01"),
        (Interface::Native, ""),
    ] {
        assert_eq!(found(interface, name), Err(SessionError::NoSuchSession(name.into())), "{name}");
    }
}

#[test]
fn idle_sessions_are_dropped_and_connected_ones_are_not() {
    let sessions = sessions(9, 2);
    let idle = open(&sessions).id();
    let used = open(&sessions).id();
    let attached = sessions.open(Interface::OpenEnv, Lifetime::Idle).expect("room").id();
    let connected = sessions.open(Interface::OpenEnv, Lifetime::Connection).expect("room").id();
    let (_, attachment) = sessions.attach(Interface::OpenEnv, &attached.to_string()).expect("it is there");
    let again = sessions.attach(Interface::OpenEnv, &attached.to_string()).map(|_| ());
    assert_eq!(again, Err(SessionError::Attached("2".into())));
    for _ in 0..2 {
        sessions.expire_idle();
        sessions.find(Interface::Native, used.ordinal).expect("it is used");
    }
    assert_eq!(sessions.len(), 4, "two intervals are allowed");
    sessions.expire_idle();
    assert_eq!(sessions.ordinals(Interface::Native), [used.ordinal], "but not three: {idle}");
    drop(attachment);
    (0..3).for_each(|_| sessions.expire_idle());
    assert_eq!(sessions.ordinals(Interface::OpenEnv), [connected.ordinal]);
}

#[test]
fn snapshots_and_forks_continue_the_episode() {
    let sessions = sessions(9, 1);
    let session = open(&sessions);
    session.reset(&reset(GoalRequest::Goal(1))).expect("a goal");
    session.step("search[lamp]").expect("an episode");
    let snapshot = session.snapshot().expect("an episode");
    let copies = sessions.fork(&session, 2).expect("room");
    let restored = sessions.restore(Interface::Native, &snapshot).expect("our own bytes");
    let there = session.step("click[next >]").expect("an episode");
    assert_eq!(copies[1].view().expect("an episode").step, 1, "a copy is apart");
    for other in [&copies[0], &restored] {
        assert_eq!(other.step("click[next >]"), Ok(there.clone()));
    }
    let damaged = sessions.restore(Interface::Native, &snapshot[1..]).map(|session| session.id());
    assert!(matches!(damaged, Err(SessionError::Snapshot(_))));
}

#[test]
fn episodes_are_counted_once_at_their_end() {
    let sessions = sessions(9, 1);
    let session = open(&sessions);
    let short = ResetRequest { max_steps: Some(2), ..reset(GoalRequest::Goal(0)) };
    session.reset(&short).expect("a goal");
    let ends: Vec<bool> = (0..3).map(|_| session.step("click[x]").expect("an episode").truncated).collect();
    assert_eq!(ends, [false, true, true]);
    let counts = sessions.counts(Interface::Native);
    assert_eq!((counts.resets, counts.steps, counts.ends.truncated, counts.ends.terminated), (1, 3, 1, 0));
}

/// A table over [`shop`] that keeps its sessions in `folder`.
fn kept(folder: &Path, max_sessions: usize, idle_intervals: u32) -> Sessions {
    let defaults = *sessions(1, 1).defaults();
    Sessions::open_persistent(folder, shop(), defaults, Limits { max_sessions, idle_intervals })
        .expect("a folder")
}

#[test]
fn a_table_goes_on_with_the_sessions_of_the_one_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = kept(folder.path(), 9, 1);
    let session = open(&before);
    let named =
        ResetRequest { episode_id: Some("e".into()), ..reset(GoalRequest::Seed { split: None, seed: 4 }) };
    session.reset(&named).expect("a goal");
    session.step("search[lamp]").expect("an episode");
    let seen = session.step("click[no such label]").expect("an episode");
    let fork = before.fork(&session, 1).expect("room").remove(0);
    before.open(Interface::Native, Lifetime::Connection).expect("room");
    let closed = open(&before);
    closed.reset(&reset(GoalRequest::Goal(0))).expect("a goal");
    before.close(closed.id());
    // Who still has a handle does not bring the file back.
    closed.step("search[x]").expect("an episode");
    drop((before, session, fork, closed));
    let after = kept(folder.path(), 9, 1);
    assert_eq!(after.ordinals(Interface::Native), [0, 1]);
    for ordinal in 0..2 {
        let found = after.find(Interface::Native, ordinal).expect("it was kept");
        assert_eq!(found.view(), Ok(seen.clone()), "the last action and the origin included");
    }
    assert_eq!(open(&after).id().ordinal, 4);
    assert_eq!(after.counts(Interface::Native).opened, 1, "the others were opened before");
}

#[test]
fn what_is_idle_for_too_long_has_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = kept(folder.path(), 9, 0);
    open(&before);
    before.expire_idle();
    drop(before);
    assert!(kept(folder.path(), 9, 0).is_empty());
}

#[test]
fn kept_sessions_may_be_more_than_the_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = kept(folder.path(), 3, 1);
    (0..3).for_each(|_| drop(open(&before)));
    drop(before);
    let after = kept(folder.path(), 2, 1);
    let full = |active| Err(SessionError::Full { active, limit: 2 });
    let opened = || after.open(Interface::Native, Lifetime::Idle).map(|session| session.id().ordinal);
    assert_eq!((after.len(), opened()), (3, full(3)));
    after.close(SessionId { interface: Interface::Native, ordinal: 0 });
    assert_eq!(opened(), full(2));
    after.close(SessionId { interface: Interface::Native, ordinal: 1 });
    assert_eq!(opened(), Ok(3));
}

#[test]
fn a_state_that_cannot_be_written_is_not_replaced_by_an_older_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = kept(folder.path(), 9, 1);
    let session = open(&before);
    session.reset(&reset(GoalRequest::Goal(0))).expect("a goal");
    // Nothing can be written where a folder is.
    let place = folder.path().join("native-0.session.tmp");
    fs::create_dir(&place).expect("a folder");
    assert_eq!(session.step("search[lamp]").expect("the session itself goes on").step, 1);
    fs::remove_dir(&place).expect("an empty folder");
    drop((before, session));
    assert!(kept(folder.path(), 9, 1).is_empty());
}

#[test]
fn what_was_being_written_is_removed_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = ["native-7.session.tmp", "server.json.tmp"];
    let foreign =
        ["letter.tmp", "native-07.session.tmp", "native-07.session", "letter-1.session", "native-1.damaged"];
    for name in own.iter().chain(&foreign) {
        fs::write(folder.path().join(name), "webshop-ses").expect("a written file");
    }
    assert!(kept(folder.path(), 9, 1).is_empty());
    let exist = |names: &[&str]| names.iter().filter(|name| folder.path().join(name).exists()).count();
    assert_eq!((exist(&own), exist(&foreign)), (0, foreign.len()));
}
