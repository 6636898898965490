//! How tasks end, and what is recorded about it.

use crate::fixture::Fixture;
use agentd_process::task::{self, Exit, Found, Limits};
use agentd_process::{Delivery, Error, Identity, Signal, boot_id};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// Without the fields that differ each time.
fn plain(exit: Exit) -> Exit {
    Exit {
        duration_ms: 0,
        ..exit
    }
}

#[test]
fn a_code_is_told() {
    for code in [0, 1, 7, 255] {
        let fixture = Fixture::new();
        let (exit, output) = fixture.run(&fixture.script(&format!("echo hi; exit {code}")));
        let expected = Exit {
            code: Some(code),
            output_bytes: 3,
            foreground: true,
            ..Exit::default()
        };
        assert_eq!((plain(exit), output.as_str()), (expected, "hi\n"));
    }
}

#[test]
fn a_signal_is_told() {
    let fixture = Fixture::new();
    let (exit, _) = fixture.run(&fixture.script("kill -9 $$"));
    let expected = Exit {
        signal: Some(9),
        foreground: true,
        ..Exit::default()
    };
    assert_eq!(plain(exit), expected);
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let fixture = Fixture::new();
    let mut order = fixture.script("");
    order.program = "/nowhere/at/all".into();
    let task = fixture.start(&order);
    let exit = fixture.exit(&task);
    assert_eq!((exit.code, exit.signal), (None, None));
    let error = exit.error.unwrap();
    assert!(
        error.starts_with("cannot start /nowhere/at/all: "),
        "{error}"
    );
}

#[test]
fn an_order_with_a_relative_path_is_refused() {
    let fixture = Fixture::new();
    let mut order = fixture.script("");
    order.program = "sh".into();
    let (program, dir) = (crate::fixture::shim_program(), fixture.dir());
    let start = task::start(&program, &dir, &order);
    let error = fixture.runtime.block_on(start).unwrap_err();
    assert!(matches!(error, Error::BadOrder { .. }), "{error}");
    assert!(!fixture.dir().exists());
}

#[test]
fn the_time_is_limited() {
    let fixture = Fixture::new();
    let mut order = fixture.script("echo begun; exec sleep 1000");
    order.time_limit_ms = Some(100);
    let (exit, output) = fixture.run(&order);
    assert!(exit.timed_out && !exit.stopped);
    assert_eq!((exit.signal, output.as_str()), (Some(15), "begun\n"));
    assert!((100..20_000).contains(&exit.duration_ms), "{exit:?}");
    fixture.assert_nobody_is_left();
}

#[test]
fn a_stop_is_told_and_the_program_may_end_in_its_own_way() {
    let fixture = Fixture::new();
    let order =
        fixture.script("trap 'echo bye; exit 3' TERM; : >ready; while :; do sleep 0.01; done");
    let task = fixture.start(&order);
    fixture.wait_for("ready");
    assert!(matches!(
        task::find(&fixture.dir(), None).unwrap(),
        Found::Running(_)
    ));
    assert_eq!(task.stop().unwrap(), Delivery::Sent);
    let exit = fixture.exit(&task);
    assert!(exit.stopped && !exit.timed_out);
    assert_eq!(exit.code, Some(3));
    let output = fs::read_to_string(task.output_path()).unwrap();
    assert!(output.ends_with("bye\n"), "{output}");
    fixture.assert_nobody_is_left();
}

#[test]
fn one_stop_does_not_cut_the_grace_short() {
    let fixture = Fixture::new();
    let mut order = fixture.script(
        "trap ': >asked; while ! [ -e go ]; do sleep 0.01; done; exit 3' TERM; \
         while :; do sleep 0.01; done",
    );
    order.time_limit_ms = Some(50);
    let task = fixture.start(&order);
    fixture.wait_for("asked");
    assert_eq!(task.stop().unwrap(), Delivery::Sent);
    fs::write(fixture.cwd().join("go"), "").unwrap();
    let exit = fixture.exit(&task);
    assert_eq!((exit.code, exit.timed_out), (Some(3), true));
}

#[test]
fn the_environment_and_the_input_are_what_was_ordered() {
    let fixture = Fixture::new();
    let mut order = fixture.script("");
    order.program = "/usr/bin/env".into();
    order.args = vec![];
    let (_, output) = fixture.run(&order);
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    let expected: Vec<String> = order
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    assert_eq!(lines, expected);

    let fixture = Fixture::new();
    let mut order = fixture.script("cat; pwd");
    order.stdin = Some("line\n".repeat(50_000));
    let (exit, output) = fixture.run(&order);
    assert_eq!(exit.code, Some(0));
    let expected = format!("{}{}\n", "line\n".repeat(50_000), fixture.cwd().display());
    assert!(output == expected, "{}", output.len());

    let fixture = Fixture::new();
    let (exit, output) = fixture.run(&fixture.script("cat"));
    assert_eq!((exit.code, output.as_str()), (Some(0), ""));
}

#[test]
fn signals_are_not_inherited_as_ignored() {
    let fixture = Fixture::new();
    let order = fixture.script("grep -E '^Sig(Ign|Blk)' /proc/self/status");
    let (_, output) = fixture.run(&order);
    for line in output.lines() {
        let (_, mask) = line.split_once(':').unwrap();
        let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
        for signal in [
            Signal::HUP,
            Signal::INT,
            Signal::QUIT,
            Signal::PIPE,
            Signal::TERM,
        ] {
            let signal = signal.as_raw();
            assert_eq!(mask >> (signal - 1) & 1, 0, "{signal}: {line}");
        }
    }
    assert_eq!(output.lines().count(), 2);
}

#[test]
fn open_files_are_limited() {
    let fixture = Fixture::new();
    let mut order = fixture.script("ulimit -n");
    order.limits = Limits {
        open_files: Some(37),
        ..Limits::default()
    };
    let (_, output) = fixture.run(&order);
    assert_eq!(output, "37\n");
}

#[test]
fn memory_is_limited() {
    let fixture = Fixture::new();
    let mut order = fixture.script("ulimit -d; : >ready; while ! [ -e go ]; do sleep 0.01; done");
    order.limits.memory_bytes = Some(64 << 20);
    let task = fixture.start(&order);
    fixture.wait_for("ready");
    let cgroup = fixture.running()["cgroup"].as_str().map(PathBuf::from);
    let together = cgroup.and_then(|path| fs::read_to_string(path.join("memory.max")).ok());
    fs::write(fixture.cwd().join("go"), "").unwrap();
    fixture.exit(&task);
    match together {
        Some(limit) => assert_eq!(limit.trim(), (64 << 20).to_string()),
        None => assert_eq!(fs::read_to_string(task.output_path()).unwrap(), "65536\n"),
    }
}

#[test]
fn numbers_that_no_clock_can_hold_are_no_limit() {
    let fixture = Fixture::new();
    let mut order = fixture.script("(sleep 1000 &); exit 1");
    (order.time_limit_ms, order.grace_ms) = (Some(u64::MAX), u64::MAX);
    order.output_limit_bytes = u64::MAX;
    let (exit, _) = fixture.run(&order);
    assert_eq!((exit.code, exit.timed_out), (Some(1), false));
}

#[test]
fn no_zombie_is_left_and_the_directory_is_for_us_alone() {
    let fixture = Fixture::new();
    let task = fixture.start(&fixture.script("sleep 0 & exit 0"));
    fixture.exit(&task);
    let shim = task.shim();
    crate::fixture::wait_until("the shim is reaped", || {
        matches!(Identity::of(shim.pid), Err(Error::NoSuchProcess { .. }))
    });
    let mode = |name| {
        let path = fixture.dir().join(name);
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode(""), 0o700);
    for name in ["claim", "running", "output", "exit"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    assert_eq!(fs::read_dir(fixture.dir()).unwrap().count(), 4);
}

#[test]
fn a_task_of_another_boot_is_unknown_unless_it_says_how_it_ended() {
    let fixture = Fixture::new();
    let found = task::find(&fixture.dir(), Some("another")).unwrap();
    assert!(matches!(found, Found::Unknown), "{found:?}");

    let fixture = Fixture::new();
    let task = fixture.start(&fixture.script(": >ready; sleep 1000"));
    fixture.wait_for("ready");
    let boot = boot_id().unwrap();
    let found = task::find(&fixture.dir(), Some(&boot)).unwrap();
    assert!(matches!(found, Found::Running(_)), "{found:?}");
    let found = task::find(&fixture.dir(), Some("another")).unwrap();
    assert!(matches!(found, Found::Unknown), "{found:?}");
    assert!(
        task.shim().is_alive().unwrap(),
        "nobody is ended by a pid of another boot"
    );
    assert_eq!(task.kill().unwrap(), Delivery::Sent);
    fixture.exit(&task);
    let found = task::find(&fixture.dir(), Some("another")).unwrap();
    assert!(matches!(found, Found::Ended(_)), "{found:?}");
}

#[test]
fn a_claim_that_was_lost_with_the_system_is_unknown() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.dir()).unwrap();
    for text in ["", "\0\0\0"] {
        fs::write(fixture.dir().join("claim"), text).unwrap();
        let found = task::find(&fixture.dir(), None).unwrap();
        assert!(matches!(found, Found::Unknown), "{found:?}");
    }
    fs::write(fixture.dir().join("claim"), "{").unwrap();
    let error = task::find(&fixture.dir(), None).unwrap_err();
    assert!(matches!(error, Error::BadRecord { .. }), "{error}");
}

#[test]
fn a_claim_of_another_boot_is_not_taken_for_a_living_one() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.dir()).unwrap();
    let me = Identity::current().unwrap();
    let claim = format!(
        r#"{{"by":"shim","pid":{},"start_ticks":{},"boot":"another"}}"#,
        me.pid, me.start_ticks
    );
    fs::write(fixture.dir().join("claim"), claim).unwrap();
    let found = task::find(&fixture.dir(), None).unwrap();
    assert!(matches!(found, Found::Unknown), "{found:?}");
}

#[test]
fn a_task_that_cannot_stop_in_time_is_killed_and_a_second_stop_does_not_wait() {
    for hurry in [false, true] {
        let fixture = Fixture::new();
        let mut order = fixture.script("trap '' TERM; : >ready; while :; do sleep 0.01; done");
        order.grace_ms = if hurry { 600_000 } else { 50 };
        let task = fixture.start(&order);
        fixture.wait_for("ready");
        assert_eq!(task.stop().unwrap(), Delivery::Sent);
        if hurry {
            // Two that come at once may be one: until it is over.
            crate::fixture::wait_until("the second stop", || {
                let _ = task.stop().unwrap();
                fixture.dir().join("exit").exists()
            });
        }
        let exit = fixture.exit(&task);
        assert_eq!((exit.stopped, exit.signal), (true, Some(9)));
        assert!(Duration::from_millis(exit.duration_ms) < crate::fixture::PATIENCE);
        fixture.assert_nobody_is_left();
    }
}
