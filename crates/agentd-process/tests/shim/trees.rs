//! Everything that a task started ends with it.

use crate::fixture::{Fixture, script, wait_until};
use agentd_process::task::{self, Order};
use agentd_process::{Delivery, Exit, Identity, Signal, Start, kill_tree};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Stops a task when it is ready. Only processes that ignore SIGTERM use up the grace period.
fn stopped(fixture: &Fixture, text: &str) -> task::Exit {
    let order = Order {
        grace_ms: 200,
        ..fixture.script(text)
    };
    let task = fixture.start(&order);
    fixture.wait_for("ready");
    assert!(!fixture.alive().is_empty());
    assert_eq!(task.stop().unwrap(), Delivery::Sent);
    let exit = fixture.exit(&task);
    assert!(exit.stopped, "{exit:?}");
    fixture.assert_nobody_is_left();
    exit
}

#[test]
fn those_who_do_not_listen_are_killed() {
    let fixture = Fixture::new();
    let deaf = "trap '' TERM HUP INT; while :; do sleep 0.05; done";
    let exit = stopped(&fixture, &format!("({deaf}) & ({deaf}) & : >ready; {deaf}"));
    assert_eq!(exit.signal, Some(9));
}

#[test]
fn those_who_leave_group_session_and_parents_are_found() {
    let fixture = Fixture::new();
    stopped(
        &fixture,
        "setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000 &' &) ; \
         (trap '' TERM; setsid sh -c 'trap \"\" TERM; : >ready; while :; do sleep 0.05; done' &); \
         sleep 1000",
    );
}

#[test]
fn those_who_are_stopped_are_found() {
    let fixture = Fixture::new();
    stopped(
        &fixture,
        "sleep 1000 & kill -STOP $!; \
         sh -c 'trap \"\" TERM; : >deaf; while :; do kill -STOP $$; done' & \
         while ! [ -e deaf ]; do sleep 0.01; done; : >ready; sleep 1000",
    );
}

/// Kills a task when it is ready.
fn killed(fixture: &Fixture, order: &Order) {
    let task = fixture.start(order);
    fixture.wait_for("ready");
    assert_eq!(task.kill().unwrap(), Delivery::Sent);
    assert!(fixture.exit(&task).stopped);
    fixture.assert_nobody_is_left();
}

#[test]
fn those_who_hand_on_to_others_all_the_time_are_found() {
    let fixture = Fixture::new();
    // Each one is deaf, starts the next one in another session, and ends; 60 times at most.
    let text = "trap '' TERM; [ $N -gt 60 ] && exit; [ $N -eq 3 ] && : >ready; \
                N=$((N+1)) setsid sh -c \"$SELF\" & sleep 0.02";
    let mut order = fixture.script(r#"sh -c "$SELF" & sh -c "$SELF" & sleep 1000"#);
    order.env.insert("SELF".into(), text.into());
    order.env.insert("N".into(), "0".into());
    killed(&fixture, &order);
}

#[test]
fn those_who_become_more_and_more_are_found() {
    let fixture = Fixture::new();
    // Each one starts two more, at most 127 in all; the program itself ends.
    let text = "trap '' TERM; [ $N -eq 4 ] && : >ready; [ $N -eq 6 ] && exec sleep 1000; \
                N=$((N+1)) sh -c \"$SELF\" & N=$((N+1)) sh -c \"$SELF\" & exit 0";
    let mut order = fixture.script(r#"sh -c "$SELF" & exit 0"#);
    order.env.insert("SELF".into(), text.into());
    order.env.insert("N".into(), "0".into());
    order.foreground = false;
    killed(&fixture, &order);
}

#[test]
fn what_a_foreground_task_leaves_behind_is_ended_at_once() {
    let fixture = Fixture::new();
    let (exit, output) =
        fixture.run(&fixture.script("setsid sleep 1000 & sleep 1000 & echo done; exit 2"));
    assert_eq!((exit.code, output.as_str()), (Some(2), "done\n"));
    assert!(!exit.stopped && !exit.timed_out, "{exit:?}");
    assert!(exit.duration_ms < 20_000, "far below the grace: {exit:?}");
    fixture.assert_nobody_is_left();
}

#[test]
fn a_background_task_is_over_when_all_of_it_is() {
    let fixture = Fixture::new();
    let mut order = fixture.script(
        "(setsid sh -c ': >ready; while ! [ -e go ]; do sleep 0.01; done; echo late' &); \
         echo early; exit 6",
    );
    order.foreground = false;
    let task = fixture.start(&order);
    fixture.wait_for("ready");
    wait_until("the program ends", || {
        let leader = serde_json::from_value::<Identity>(fixture.running()["leader"].clone());
        leader.is_ok_and(|leader| !leader.is_alive().unwrap())
    });
    assert!(task.shim().is_alive().unwrap());
    assert!(!fixture.alive().is_empty());
    std::fs::write(fixture.cwd().join("go"), "").unwrap();
    let exit = fixture.exit(&task);
    assert_eq!((exit.code, exit.stopped), (Some(6), false));
    assert_eq!(
        std::fs::read_to_string(task.output_path()).unwrap(),
        "early\nlate\n"
    );
    fixture.assert_nobody_is_left();
}

#[test]
fn a_background_task_can_be_stopped_after_its_program_ended() {
    let fixture = Fixture::new();
    let mut order = fixture.script("(setsid sleep 1000 &); : >ready");
    order.foreground = false;
    let task = fixture.start(&order);
    fixture.wait_for("ready");
    assert_eq!(task.stop().unwrap(), Delivery::Sent);
    let exit = fixture.exit(&task);
    assert!(exit.stopped, "{exit:?}");
    fixture.assert_nobody_is_left();
}

#[test]
fn a_task_within_a_task_ends_with_it() {
    let fixture = Fixture::new();
    let inner = fixture.cwd().join("inner");
    std::fs::create_dir(&inner).unwrap();
    // It has the outer one's mark, so that it is looked for too.
    let order = script(": >ready; sleep 1000", fixture.cwd());
    std::fs::write(
        fixture.cwd().join("order"),
        serde_json::to_vec(&order).unwrap(),
    )
    .unwrap();
    let exe = std::env::current_exe().unwrap();
    let text = format!(
        "{} --exact shim_child -- --agentd-shim {} <order",
        exe.display(),
        inner.display()
    );
    stopped(&fixture, &text);
}

#[test]
fn a_tree_without_a_shim_is_ended() {
    let fixture = Fixture::new();
    let order = fixture.script(
        "trap '' TERM; setsid sleep 1000 & sleep 1000 & (trap '' TERM; sleep 1000; sleep 1000) & \
         (setsid sh -c 'sleep 1000; :') & : >ready; while :; do sleep 0.05; done",
    );
    let mut start = Start::new(order.program);
    start.args = order.args.into_iter().map(Into::into).collect();
    let env = order.env.into_iter();
    start.env = env.map(|(name, it)| (name.into(), it.into())).collect();
    start.cwd = Some(order.cwd);
    let mut root = start.spawn().unwrap();
    fixture.wait_for("ready");
    let grace = Duration::from_millis(100);
    let begin = Instant::now();
    kill_tree(root.identity(), grace).unwrap();
    assert!(begin.elapsed() >= grace, "it had its grace");
    fixture.assert_nobody_is_left();
    assert_eq!(root.wait().unwrap(), Exit::Signal(Signal::KILL.as_raw()));
    // No process of the tree is left.
    kill_tree(root.identity(), Duration::MAX).unwrap();
}

#[test]
fn the_cgroup_of_a_task_goes_with_it() {
    let fixture = Fixture::new();
    let task = fixture.start(&fixture.script(": >ready; sleep 1000 & sleep 1000"));
    fixture.wait_for("ready");
    wait_until("the program", || fixture.running()["leader"].is_object());
    let running = fixture.running();
    // Not every system lets us make one.
    let path = running["cgroup"].as_str().map(PathBuf::from);
    assert!(path.as_ref().is_none_or(|path| path.is_dir()));
    assert_eq!(task.kill().unwrap(), Delivery::Sent);
    fixture.exit(&task);
    assert!(!path.is_some_and(|path| path.exists()));
}
