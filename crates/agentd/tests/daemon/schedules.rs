//! Schedules: the daemon fires them without a client, each due time once, whatever is killed and whatever the clock does.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{AddSchedule, Purge, Reset, Schedule, Start, Status, Stop, When};
use agentd_client::{Error, Kind as ProblemKind};
use agentd_core::event::{
    Body, FiringOutcome, Kind, MissedPolicy, OverlapPolicy, PausedBecause, ResetSource,
    ScheduleAction, ScheduleFired, ScheduleRule, SkippedBecause,
};
use agentd_core::id::{OpId, PromptId};
use agentd_core::state::ScheduleWaits;
use agentd_core::time::Timestamp;
use agentd_failpoint::plan::Role;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// A daemon that has the key by itself, and an agent.
fn started() -> TestDaemon {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.start_daemon();
    daemon.create("coder");
    daemon
}

fn every(ms: i64, text: &str) -> AddSchedule {
    AddSchedule {
        name: None,
        when: When::Every {
            every_ms: ms.unsigned_abs(),
        },
        action: ScheduleAction::Prompt,
        prompt: Some(text.to_owned()),
        missed: MissedPolicy::Once,
        overlap: None,
    }
}

/// In a moment that is long enough for the daemon to accept it.
fn soon(text: &str) -> AddSchedule {
    let now = agentd_daemon::clock::now();
    AddSchedule {
        when: When::At {
            at: now.plus(3_000),
            zone: "UTC".to_owned(),
        },
        ..every(1000, text)
    }
}

fn add(daemon: &TestDaemon, add: &AddSchedule) -> Schedule {
    let added = daemon.client();
    daemon.block(added.add_schedule("coder", add)).unwrap()
}

fn list(daemon: &TestDaemon, name: &str) -> Vec<Schedule> {
    let listed = daemon.block(daemon.client().schedules(name));
    listed.unwrap().schedules
}

fn fired(daemon: &TestDaemon) -> Vec<ScheduleFired> {
    let events = daemon.events("coder").into_iter();
    let fired = events.filter_map(|event| match event.body {
        Body::ScheduleFired(fired) => Some(fired),
        _ => None,
    });
    fired.collect()
}

fn until_fired(daemon: &TestDaemon, count: usize) -> Vec<ScheduleFired> {
    until("the firings", || {
        let fired = fired(daemon);
        (fired.len() >= count).then_some(fired)
    })
}

fn prompt_of(fired: &ScheduleFired) -> Option<PromptId> {
    match fired.outcome {
        FiringOutcome::Fired { prompt, .. } => prompt,
        FiringOutcome::Skipped { .. } => None,
    }
}

fn problem<T: std::fmt::Debug>(result: Result<T, Error>) -> ProblemKind {
    match result {
        Err(Error::Problem(problem)) => problem.kind,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_due_time_starts_the_agent_without_a_client() {
    let daemon = started();
    let added = add(&daemon, &every(1000, "do: say it is time"));
    assert_eq!((added.name.as_str(), added.next.len()), ("s1", 5));
    assert_eq!(added.prompt.as_deref(), Some("do: say it is time"));
    let firings = until_fired(&daemon, 2);
    let answer = daemon.answer("coder", prompt_of(&firings[0]).unwrap());
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (Status::Completed, "it is time")
    );
    let client = daemon.client();
    let paused = daemon.block(client.pause_schedule("coder", "s1")).unwrap();
    assert_eq!(paused.paused, Some(PausedBecause::User));
    assert_eq!(paused.next, []);
    // Each due time once, in order, one interval after the other.
    let firings = fired(&daemon);
    let due: Vec<i64> = firings
        .iter()
        .map(|fired| fired.due.unwrap().as_millis())
        .collect();
    assert!(due.is_sorted_by(|a, b| a < b), "{due:?}");
    let events = daemon.events("coder");
    let rule = events.iter().find_map(|event| match &event.body {
        Body::ScheduleAdded(added) => Some(&added.rule),
        _ => None,
    });
    let Some(ScheduleRule::Every { from, .. }) = rule else {
        panic!("{rule:?}");
    };
    let from = from.as_millis();
    assert!(due.iter().all(|at| (at - from) % 1000 == 0), "{due:?}");
    // Nothing fires while it is paused.
    daemon.completed("coder", "do: say something else");
    assert_eq!(fired(&daemon).len(), firings.len());
    daemon.verify();
}

#[test]
fn a_due_time_is_handled_once_if_the_daemon_dies_over_it() {
    for point in ["before-schedule_fired", "after-schedule_fired"] {
        let daemon = TestDaemon::empty();
        daemon.daemon_has_keys();
        daemon.hold(Role::Daemon, point);
        daemon.start_daemon();
        daemon.create("coder");
        add(&daemon, &soon("do: say it is time"));
        daemon.until_held();
        daemon.kill_daemon();
        daemon.start_daemon();
        let firings = until_fired(&daemon, 1);
        let prompt = prompt_of(&firings[0]).unwrap();
        let answer = daemon.answer("coder", prompt);
        assert_eq!(answer.text, "it is time", "{point}");
        assert_eq!(fired(&daemon), firings, "{point}");
        assert_eq!(daemon.count("coder", Kind::PromptQueued), 1, "{point}");
        assert_eq!(firings[0].next, None);
        assert_eq!(list(&daemon, "coder")[0].next, []);
        daemon.verify();
    }
}

#[test]
fn missed_due_times_are_handled_by_policy_when_the_daemon_is_back() {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.set_clock(0);
    daemon.start_daemon();
    daemon.create("coder");
    let with = |name: &str, missed| AddSchedule {
        name: Some(name.to_owned()),
        missed,
        ..every(DAY_MS, &format!("do: say {name}"))
    };
    add(&daemon, &with("once", MissedPolicy::Once));
    add(&daemon, &with("skip", MissedPolicy::Skip));
    let all = add(&daemon, &with("all", MissedPolicy::All));
    assert_eq!(all.overlap, OverlapPolicy::Queue);
    daemon.kill_daemon();
    // A week and an hour later.
    daemon.set_clock(7 * DAY_MS + HOUR_MS);
    daemon.start_daemon();
    let firings = until_fired(&daemon, 9);
    let ids: Vec<_> = list(&daemon, "coder").iter().map(|it| it.id).collect();
    let of = |n: usize| {
        let id = ids[n];
        firings.iter().filter(move |it| it.schedule == id)
    };
    let once: Vec<_> = of(0).collect();
    assert_eq!((once.len(), once[0].missed), (1, 6));
    assert!(prompt_of(once[0]).is_some());
    let skipped: Vec<_> = of(1).collect();
    assert_eq!((skipped.len(), skipped[0].missed), (1, 6));
    let why = SkippedBecause::Missed;
    assert_eq!(skipped[0].outcome, FiringOutcome::Skipped { why });
    assert_eq!(of(2).filter_map(prompt_of).count(), 7);
    for prompt in firings.iter().filter_map(prompt_of) {
        assert_eq!(daemon.answer("coder", prompt).status, Status::Completed);
    }
    // The clock is set back by three days: none of them is due again.
    daemon.set_clock(4 * DAY_MS + HOUR_MS);
    daemon.completed("coder", "do: say the clock was set back");
    daemon.kill_daemon();
    daemon.start_daemon();
    daemon.completed("coder", "do: say nothing is due");
    assert_eq!(fired(&daemon), firings);
    // The next due time.
    daemon.set_clock(8 * DAY_MS + HOUR_MS);
    daemon.completed("coder", "do: say it is another day");
    let firings = until_fired(&daemon, 12);
    let on_time = |it: &ScheduleFired| it.missed == 0 && it.due.is_some();
    assert!(firings[9..].iter().all(on_time), "{firings:#?}");
    daemon.verify();
}

#[test]
fn an_overlap_is_skipped_and_a_stopped_agent_waits() {
    let daemon = started();
    add(&daemon, &every(1000, "do: hang"));
    let firings = until_fired(&daemon, 2);
    assert!(prompt_of(&firings[0]).is_some());
    let why = SkippedBecause::Overlap;
    assert_eq!(firings[1].outcome, FiringOutcome::Skipped { why });
    let client = daemon.client();
    daemon
        .block(client.stop("coder", &Stop::default()))
        .unwrap();
    let shown = daemon.show("coder").schedules;
    assert_eq!(shown[0].waits, Some(ScheduleWaits::Stopped));
    let before = fired(&daemon).len();
    // Due times pass: the next one that is handled stands for several.
    let due = shown[0].next[1].0;
    until("a missed due time", || {
        (agentd_daemon::clock::now() > due.plus(500)).then_some(())
    });
    assert_eq!(fired(&daemon).len(), before);
    let start = Start {
        env: daemon.caller(),
        ..Start::default()
    };
    daemon.block(client.start("coder", &start)).unwrap();
    let firings = until_fired(&daemon, before + 1);
    assert!(firings[before].missed > 0, "{:?}", firings[before]);
}

#[test]
fn a_fresh_prompt_waits_for_the_turn_and_is_answered_in_a_new_conversation() {
    let daemon = started();
    let sent = daemon.send("coder", "do: hang");
    daemon.until_kind("coder", Kind::RequestSent);
    let fresh = AddSchedule {
        action: ScheduleAction::Fresh,
        ..soon("do: say a fresh start")
    };
    let due = add(&daemon, &fresh).next[0].0;
    until("the due time", || {
        let shown = daemon.show("coder").schedules;
        let is_due = agentd_daemon::clock::now() > due.plus(100);
        (is_due && shown[0].waits == Some(ScheduleWaits::Turn)).then_some(())
    });
    assert_eq!(fired(&daemon), []);
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Interrupted
    );
    let firings = until_fired(&daemon, 1);
    let answer = daemon.answer("coder", prompt_of(&firings[0]).unwrap());
    assert_eq!(answer.text, "a fresh start");
    let events = daemon.events("coder");
    let began = events.iter().find_map(|event| match &event.body {
        Body::ResetBegan(began) => Some(began),
        _ => None,
    });
    assert_eq!(began.unwrap().source, ResetSource::Schedule);
    assert_ne!(answer.conversation, events[0].conversation);
    let request = daemon.requests().last().unwrap().body.to_string();
    assert!(!request.contains("do: hang"), "{request}");
    daemon.verify();
}

#[test]
fn a_schedule_is_run_paused_resumed_and_removed_once_for_each_op() {
    let daemon = started();
    let op = |n: u8| Some(OpId::from_bytes([n; 16]));
    let schedule = every(HOUR_MS, "do: say it was run");
    let client = daemon.client();
    for _ in 0..2 {
        let added = client.under(op(1));
        let added = daemon.block(added.add_schedule("coder", &schedule));
        assert_eq!(added.unwrap().name, "s1");
        let run = client.under(op(2));
        let run = daemon.block(run.run_schedule("coder", "s1")).unwrap();
        assert_eq!(run.last.unwrap().due, None);
    }
    let firings = fired(&daemon);
    assert_eq!(firings.len(), 1);
    let answer = daemon.answer("coder", prompt_of(&firings[0]).unwrap());
    assert_eq!(answer.text, "it was run");
    // The same op with another text is another change.
    let other = every(HOUR_MS, "do: say something else");
    let again = client.under(op(1));
    let again = daemon.block(again.add_schedule("coder", &other));
    assert_eq!(problem(again), ProblemKind::Conflict);
    for _ in 0..2 {
        let paused = client.under(op(3));
        daemon.block(paused.pause_schedule("coder", "s1")).unwrap();
        let resumed = client.under(op(4));
        let resumed = daemon.block(resumed.resume_schedule("coder", "s1"));
        assert_eq!(resumed.unwrap().paused, None);
    }
    assert_eq!(daemon.count("coder", Kind::ScheduleResumed), 1);
    for _ in 0..2 {
        let removed = client.under(op(5));
        let left = daemon.block(removed.remove_schedule("coder", "s1"));
        assert_eq!(left.unwrap().schedules, []);
    }
    assert_eq!(daemon.count("coder", Kind::ScheduleRemoved), 1);
}

#[test]
fn what_cannot_be_scheduled_is_refused() {
    let daemon = started();
    let client = daemon.client();
    let refused = |schedule: &AddSchedule| {
        let added = daemon.block(client.add_schedule("coder", schedule));
        problem(added)
    };
    let cron = |expression: &str, zone: &str| AddSchedule {
        when: When::Cron {
            expression: expression.to_owned(),
            zone: zone.to_owned(),
        },
        ..every(HOUR_MS, "do: say hello")
    };
    let past = AddSchedule {
        when: When::At {
            at: Timestamp::from_millis(1),
            zone: "UTC".to_owned(),
        },
        ..every(HOUR_MS, "do: say hello")
    };
    let no_prompt = AddSchedule {
        prompt: None,
        ..every(HOUR_MS, "")
    };
    let both = AddSchedule {
        missed: MissedPolicy::All,
        overlap: Some(OverlapPolicy::Skip),
        ..every(HOUR_MS, "do: say hello")
    };
    let odd_name = AddSchedule {
        name: Some("two words".to_owned()),
        ..every(HOUR_MS, "do: say hello")
    };
    for schedule in [
        cron("at nine", "UTC"),
        cron("0 9 * * *", "Europe/Nowhere"),
        cron("0 0 30 2 *", "UTC"),
        every(1, "do: say hello"),
        every(HOUR_MS, " "),
        past,
        no_prompt,
        both,
        odd_name,
    ] {
        assert_eq!(refused(&schedule), ProblemKind::Invalid, "{schedule:?}");
    }
    let named = AddSchedule {
        name: Some("daily".to_owned()),
        ..cron("0 9 * * *", "Europe/Zurich")
    };
    add(&daemon, &named);
    assert_eq!(refused(&named), ProblemKind::Conflict);
    let missing = daemon.block(client.run_schedule("coder", "weekly"));
    assert_eq!(problem(missing), ProblemKind::NotFound);
}

#[test]
fn schedules_stay_with_a_rename_a_reset_and_a_purge_and_pause_with_an_archive() {
    let daemon = started();
    daemon.completed("coder", "do: say hello");
    add(&daemon, &every(HOUR_MS, "do: say it was run"));
    let first = daemon.show("coder").conversation.unwrap().id;
    let client = daemon.client();
    daemon
        .block(client.reset("coder", &Reset::default()))
        .unwrap();
    let purge = Purge {
        conversation: Some(first),
        dry_run: false,
    };
    daemon.block(client.purge("coder", &purge)).unwrap();
    assert_eq!(daemon.count("coder", Kind::ScheduleMoved), 1);
    let cli = |args: &[&str]| {
        let ran = daemon.cli(args);
        let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{args:?}: {errors}");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    cli(&["rename", "coder", "author"]);
    let listed = list(&daemon, "author");
    assert_eq!(listed[0].prompt.as_deref(), Some("do: say it was run"));
    assert_eq!(listed[0].agent.name.as_deref(), Some("author"));
    let run = daemon.block(client.run_schedule("author", "s1")).unwrap();
    let FiringOutcome::Fired { prompt, .. } = run.last.unwrap().outcome else {
        panic!("{run:?}");
    };
    assert_eq!(daemon.answer("author", prompt.unwrap()).text, "it was run");
    // A fork has none, and an import brings them paused.
    cli(&["fork", "author", "twin"]);
    assert_eq!(list(&daemon, "twin"), []);
    let file = daemon.root().join("author.jsonl.zst");
    let file = file.to_str().unwrap();
    cli(&["export", "author", file]);
    cli(&["import", file, "--as", "copy"]);
    assert_eq!(
        list(&daemon, "copy")[0].paused,
        Some(PausedBecause::Imported)
    );
    let resumed = daemon.block(client.resume_schedule("copy", "s1"));
    assert_eq!(problem(resumed), ProblemKind::Waiting);
    let shown = cli(&["schedule", "list"]);
    assert!(shown.contains("paused (imported)"), "{shown}");
    // An archived agent has no active schedule, and neither has a restored one.
    cli(&["rm", "author"]);
    cli(&["restore", "author"]);
    assert_eq!(
        list(&daemon, "author")[0].paused,
        Some(PausedBecause::Archived)
    );
    let resumed = daemon.block(client.resume_schedule("author", "s1"));
    assert_eq!(resumed.unwrap().paused, None);
    // The text goes with the agent, when no branch needs its conversation.
    for name in ["twin", "author"] {
        cli(&["rm", name]);
    }
    cli(&["purge", "twin", "--yes"]);
    let archived = list(&daemon, "author");
    assert_eq!(archived[0].paused, Some(PausedBecause::Archived));
    cli(&["purge", "author", "--yes"]);
    assert_eq!(list(&daemon, "author"), []);
    daemon.verify();
}
