//! How a sandbox begins and ends.

use crate::testbed::{Testbed, can, testbeds};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

#[track_caller]
pub fn until(mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain");
        // tidy: polls for the condition
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Outside pids of processes whose command line has this mark.
fn marked(mark: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(mark) {
            found.push(pid);
        }
    }
    found
}

/// A sleep that no other test has.
fn mark(testbed: &Testbed) -> String {
    let name = testbed.root.file_name().unwrap().to_string_lossy();
    let number: u64 = name
        .bytes()
        .fold(7, |sum, byte| sum * 31 % 99_991 + u64::from(byte));
    format!("sleep 1{number:06}.{}", testbed.user.unwrap_or(0))
}

fn error(ran: &Value) -> (&str, Option<i64>) {
    let error = &ran["error"];
    (
        error["step"].as_str().unwrap_or_default(),
        error["errno"].as_i64(),
    )
}

#[test]
fn the_leaders_exit_code_and_signal_are_told() {
    for testbed in testbeds() {
        assert_eq!(testbed.shell("exit 7").code(), Some(7));
        let killed = testbed.shell("kill -9 $$");
        assert_eq!(killed.signal(), Some(9), "{killed:?}");
        assert_eq!(testbed.shell("kill -SEGV $$").signal(), Some(11));
    }
}

#[test]
fn term_to_the_init_ends_the_leader() {
    for testbed in testbeds() {
        let script = "touch ready; while :; do sleep 0.05; done";
        let running = testbed.begin(testbed.job("/bin/sh", &["-c", script]));
        until(|| testbed.tree().join("ready").exists());
        signal(running.pid(), Signal::TERM);
        assert_eq!(running.finish().signal(), Some(15));
    }
}

#[test]
fn a_leader_may_handle_term() {
    for testbed in testbeds() {
        let script = "trap 'echo handled; exit 3' TERM; touch ready; while :; do sleep 0.05; done";
        let running = testbed.begin(testbed.job("/bin/sh", &["-c", script]));
        until(|| testbed.tree().join("ready").exists());
        signal(running.pid(), Signal::TERM);
        let ran = running.finish();
        assert_eq!(
            (ran.code(), ran.output().contains("handled")),
            (Some(3), true),
            "{ran:?}"
        );
    }
}

#[test]
fn killing_the_init_ends_everything() {
    for testbed in testbeds() {
        let mark = mark(&testbed);
        let script = format!("setsid {mark} & touch ready; {mark}");
        let running = testbed.begin(testbed.job("/bin/sh", &["-c", &script]));
        until(|| {
            testbed.tree().join("ready").exists() && marked(&mark.replace(' ', "\0")).len() == 2
        });
        signal(running.pid(), Signal::KILL);
        let ran = running.finish();
        assert_eq!(
            ran.last["ended"],
            json!({ "code": null, "signal": 9, "child": true })
        );
        until(|| marked(&mark.replace(' ', "\0")).is_empty());
    }
}

#[test]
fn killing_the_shim_kills_everything_inside() {
    for mut testbed in testbeds() {
        testbed.policy.foreground = false;
        let mark = mark(&testbed);
        let script = format!("setsid {mark} & touch ready; {mark}");
        let mut running = testbed.begin(testbed.job("/bin/sh", &["-c", &script]));
        until(|| marked(&mark.replace(' ', "\0")).len() == 2);
        let init = running.pid();
        running.child.kill().unwrap();
        running.child.wait().unwrap();
        until(|| marked(&mark.replace(' ', "\0")).is_empty());
        until(|| {
            let status = fs::read_to_string(format!("/proc/{init}/stat")).unwrap_or_default();
            test_kill_process(Pid::from_raw(init).unwrap()).is_err() || status.contains(") Z")
        });
    }
}

#[test]
fn leftovers_of_the_foreground_die_with_the_leader() {
    for testbed in testbeds() {
        let mark = mark(&testbed);
        let script = format!(
            "setsid {mark} >/dev/null 2>&1 & (trap '' TERM; {mark}) >/dev/null 2>&1 & exit 4"
        );
        let ran = testbed.shell(&script);
        assert_eq!(ran.code(), Some(4));
        until(|| marked(&mark.replace(' ', "\0")).is_empty());
    }
}

#[test]
fn the_background_goes_on_until_its_last_process() {
    for mut testbed in testbeds() {
        testbed.policy.foreground = false;
        let script = "(while ! test -e go; do sleep 0.02; done; echo last > last) & exit 5";
        let running = testbed.begin(testbed.job("/bin/sh", &["-c", script]));
        assert!(!testbed.tree().join("last").exists());
        fs::write(testbed.tree().join("go"), "").unwrap();
        let ran = running.finish();
        assert_eq!(ran.code(), Some(5));
        assert!(testbed.tree().join("last").exists());
    }
}

#[test]
fn a_missing_program_is_an_error_with_its_step() {
    for testbed in testbeds() {
        let ran = testbed.run(testbed.job("/missing/program", &[]));
        assert_eq!(
            error(&ran.first),
            ("Exec", Some(libc::ENOENT.into())),
            "{ran:?}"
        );
        assert_eq!(ran.first["error"]["path"], "/missing/program");
        assert_eq!(ran.first["children"], false);
        let ran = testbed.run(testbed.job("/etc/passwd", &[]));
        assert_eq!(error(&ran.first), ("Exec", Some(libc::EACCES.into())));
    }
}

#[test]
fn a_program_outside_of_the_view_is_missing() {
    for testbed in testbeds() {
        let ran = testbed.run(testbed.job(&testbed.path("other/file"), &[]));
        assert_eq!(
            error(&ran.first),
            ("Exec", Some(libc::ENOENT.into())),
            "{ran:?}"
        );
    }
}

#[test]
fn a_missing_working_directory_is_an_error_with_its_step() {
    for testbed in testbeds() {
        let mut job = testbed.job("/bin/true", &[]);
        job["cwd"] = json!(testbed.path("other"));
        let ran = testbed.run(job);
        assert_eq!(
            error(&ran.first),
            ("WorkingDir", Some(libc::ENOENT.into())),
            "{ran:?}"
        );
        assert_eq!(ran.first["children"], false);
    }
}

#[test]
fn the_callers_hooks_run_in_the_init_and_in_the_leader() {
    for testbed in testbeds() {
        let joined = testbed.path("other/joined");
        let mut job = testbed.job("/bin/sh", &["-c", "ulimit -n"]);
        job["open_files"] = json!(77);
        job["joins"] = json!(joined);
        let ran = testbed.run(job);
        assert_eq!(ran.succeeds().output(), "77\n");
        assert_eq!(fs::read_to_string(joined).unwrap(), "joined");
    }
}

#[test]
fn the_environment_is_what_the_caller_gives() {
    for mut testbed in testbeds() {
        testbed.env.insert("MINE".into(), "1".into());
        let ran = testbed.run(testbed.job("/usr/bin/env", &[]));
        let mut names: Vec<&str> = ran
            .output()
            .lines()
            .filter_map(|line| line.split('=').next())
            .collect();
        names.retain(|name| *name != "TAR_OPTIONS");
        assert_eq!(names, ["HOME", "MINE", "PATH"]);
    }
}

#[test]
fn the_user_is_the_same_inside() {
    for testbed in testbeds() {
        let user = testbed
            .user
            .unwrap_or_else(|| rustix::process::geteuid().as_raw());
        assert_eq!(
            testbed.shell("id -u").succeeds().output(),
            format!("{user}\n")
        );
        testbed.shell("echo x > mine").succeeds();
        let owner = std::os::unix::fs::MetadataExt::uid(
            &fs::metadata(testbed.tree().join("mine")).unwrap(),
        );
        assert_eq!(owner, user);
    }
}

#[test]
fn a_hundred_in_a_row_leave_nothing_behind() {
    if !can("namespaces") {
        return;
    }
    let testbed = Testbed::in_tmp(None);
    let mounts = || {
        fs::read_to_string("/proc/self/mountinfo")
            .unwrap()
            .lines()
            .count()
    };
    let before = mounts();
    for _ in 0..100 {
        testbed.run(testbed.job("/bin/true", &[])).succeeds();
    }
    assert_eq!(mounts(), before);
}
