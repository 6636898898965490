//! Which processes may enter the lab, and what a plan does.

use super::plan::{Action, Plan, Role, Rule};
use super::{Fired, Passed, door, record};
use std::fs;

fn passed(failpoint: &str, nth: u32) -> Passed {
    Passed {
        at: 1,
        role: Role::Runtime,
        process: 2,
        pid: 3,
        failpoint: failpoint.to_owned(),
        nth,
    }
}

#[test]
fn only_what_is_inside_a_marked_directory_is_let_in() {
    let temp = tempfile::tempdir().unwrap();
    let lab = temp.path().join("lab");
    fs::create_dir(&lab).unwrap();
    let home = lab.join("home");
    let text = |refused: Result<_, super::Refused>| refused.unwrap_err().to_string();
    assert!(text(door::open(&lab, &home)).contains("no token"));
    fs::write(lab.join(super::TOKEN_FILE), "something").unwrap();
    assert!(text(door::open(&lab, &home)).contains("token is wrong"));
    Plan::default().write(&lab).unwrap();
    assert!(door::open(&lab, &home).is_ok(), "it need not be there yet");
    assert!(text(door::open(&lab, temp.path())).contains("not inside"));
    assert!(text(door::open(&lab, &lab.join("../other"))).contains("`..`"));
    // A link that leads out of it.
    std::os::unix::fs::symlink(temp.path(), lab.join("out")).unwrap();
    assert!(text(door::open(&lab, &lab.join("out/home"))).contains("not inside"));
    let gone = temp.path().join("gone");
    assert!(door::open(&gone, &gone.join("home")).is_err());
}

#[test]
fn a_rule_is_for_its_role_its_point_and_its_time() {
    let rule = Rule {
        process: Some(2),
        nth: Some(4),
        ..Rule::hold("a", Role::Runtime, "after-message")
    };
    assert!(passed("after-message", 4).matches(&rule));
    assert!(!passed("after-message", 3).matches(&rule));
    assert!(!passed("before-message", 4).matches(&rule));
    let other = |role, process| Rule {
        role,
        process,
        ..rule.clone()
    };
    assert!(!passed("after-message", 4).matches(&other(Role::Daemon, Some(2))));
    assert!(!passed("after-message", 4).matches(&other(Role::Runtime, Some(1))));
    assert!(passed("after-message", 4).matches(&other(Role::Runtime, None)));
}

#[test]
fn a_rule_is_carried_out_once_whoever_comes() {
    let lab = tempfile::tempdir().unwrap();
    record::Record::open(lab.path(), false).unwrap();
    let rule = Rule::hold("a", Role::Runtime, "x-y");
    let fire = |rule, nth| record::fire(lab.path(), lab.path(), rule, &passed("x-y", nth)).unwrap();
    assert_eq!(fire(&rule, 1), Fired::Now);
    assert_eq!(fire(&rule, 2), Fired::Before);
    let each = Rule {
        each: true,
        ..rule.clone()
    };
    assert_eq!(fire(&each, 3), Fired::Now);
    let first = Passed::of_rule(lab.path(), "a").unwrap().unwrap();
    assert_eq!(first.nth, 1);
    assert!(Passed::of_rule(lab.path(), "b").unwrap().is_none());
}

#[test]
fn processes_are_counted_by_their_role() {
    let lab = tempfile::tempdir().unwrap();
    let number = |role| record::number(lab.path(), role).unwrap();
    assert_eq!((number(Role::Shim), number(Role::Shim)), (1, 2));
    assert_eq!(number(Role::Daemon), 1);
}

#[test]
fn a_plan_is_read_as_it_was_written_and_a_strange_one_is_refused() {
    let lab = tempfile::tempdir().unwrap();
    assert_eq!(Plan::read(lab.path()).unwrap(), Plan::default());
    let plan = Plan {
        trace: true,
        injected_bugs: vec!["m".to_owned()],
        rules: vec![Rule {
            action: Action::Kill,
            ..Rule::hold("a", Role::Tool, "x-y")
        }],
    };
    plan.write(lab.path()).unwrap();
    assert_eq!(Plan::read(lab.path()).unwrap(), plan);
    fs::write(lab.path().join(super::plan::FILE), r#"{"tracing": 1}"#).unwrap();
    assert!(Plan::read(lab.path()).is_err());
}

#[test]
fn outside_the_lab_nothing_is_switched_on() {
    super::hit("before", "anything");
    assert!(!super::injected_bug("anything"));
    assert_eq!(super::dir(), None);
}
