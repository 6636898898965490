//! The instruction files of the user and the project in the system prompt.

use crate::test_daemon::TestDaemon;
use agentd_client::api::{Compact, Fork, Reset};
use agentd_core::event::{Direction, Kind};
use agentd_core::spec::Sandbox;
use std::fs;

fn system(daemon: &TestDaemon) -> String {
    let request = daemon.requests().last().unwrap().body.clone();
    request["system"][0]["text"].as_str().unwrap().to_owned()
}

fn repository(daemon: &TestDaemon, text: &str) {
    fs::create_dir_all(daemon.work().join(".git")).unwrap();
    fs::write(daemon.work().join(".git/HEAD"), "ref: refs/heads/topic\n").unwrap();
    fs::write(daemon.work().join("AGENTS.md"), text).unwrap();
}

fn asked(daemon: &TestDaemon, name: &str) -> String {
    daemon.completed(name, "do: say ready");
    system(daemon)
}

/// Other agents read the file again at each start, and the provider's cache of the whole conversation is lost.
#[test]
fn a_conversation_keeps_the_instructions_with_which_it_began() {
    let daemon = TestDaemon::new();
    repository(&daemon, "The word is xyzzy.");
    daemon.create("coder");
    let first = asked(&daemon, "coder");
    assert!(first.contains("AGENTS.md\n\nThe word is xyzzy."), "{first}");
    assert!(first.contains("on branch topic"), "{first}");
    assert!(first.contains(&format!("working directory: {}", daemon.work().display())));
    // The file and the branch change, the process is replaced, the daemon is killed: the request begins as before.
    repository(&daemon, "The word is plugh.");
    fs::write(daemon.work().join(".git/HEAD"), "ref: refs/heads/other\n").unwrap();
    daemon
        .block(daemon.client().restart("coder", &Default::default()))
        .unwrap();
    assert_eq!(asked(&daemon, "coder"), first);
    daemon.kill_daemon();
    daemon.start_daemon();
    assert_eq!(asked(&daemon, "coder"), first);
    assert_eq!(daemon.count("coder", Kind::Context), 1);
    // A new conversation reads them again; undo leads back to the old ones.
    daemon
        .block(daemon.client().reset("coder", &Reset::default()))
        .unwrap();
    let second = asked(&daemon, "coder");
    assert!(
        second.contains("plugh") && !second.contains("xyzzy"),
        "{second}"
    );
    assert!(second.contains("on branch other"), "{second}");
    let undo = Reset {
        step: Some(Direction::Undo),
        ..Reset::default()
    };
    daemon.block(daemon.client().reset("coder", &undo)).unwrap();
    assert_eq!(asked(&daemon, "coder"), first);
    // So does a fork, which shares the beginning of its origin.
    let fork = Fork {
        name: Some("twin".to_owned()),
        ..Fork::default()
    };
    daemon.block(daemon.client().fork("coder", &fork)).unwrap();
    assert_eq!(asked(&daemon, "twin"), first);
    daemon.verify();
}

#[test]
fn the_user_s_file_applies_everywhere_and_an_agent_can_do_without() {
    let daemon = TestDaemon::new();
    repository(&daemon, "Of the project.");
    fs::write(daemon.home().join("AGENTS.md"), "Of the user.").unwrap();
    daemon.create("coder");
    let both = asked(&daemon, "coder");
    let (user, project) = (both.find("Of the user."), both.find("Of the project."));
    assert!(user.is_some() && user < project, "{both}");
    let mut spec = daemon.spec();
    spec.instructions = false;
    spec.system = "You are brief.".to_owned();
    daemon.create_with("bare", spec);
    let bare = asked(&daemon, "bare");
    assert!(bare.starts_with("You are brief.\n\n# Tools\n\n"), "{bare}");
    assert!(
        bare.contains("# Environment") && !bare.contains("Of the "),
        "{bare}"
    );
    daemon.verify();
}

fn messages(daemon: &TestDaemon) -> String {
    let request = daemon.requests().last().unwrap().body.clone();
    request["messages"].to_string()
}

/// A change is told once, at a boundary, and again only when a summary has replaced the notice.
#[test]
fn a_changed_file_is_told_once_and_again_after_a_compaction() {
    let daemon = TestDaemon::new();
    repository(&daemon, "The word is xyzzy.");
    daemon.create("coder");
    let first = asked(&daemon, "coder");
    repository(&daemon, "The word is plugh.");
    assert_eq!(asked(&daemon, "coder"), first);
    let told = messages(&daemon);
    assert!(
        told.contains("have changed. They are now:") && told.contains("plugh"),
        "{told}"
    );
    daemon.kill_daemon();
    daemon.start_daemon();
    daemon
        .block(daemon.client().restart("coder", &Default::default()))
        .unwrap();
    asked(&daemon, "coder");
    assert_eq!(messages(&daemon).matches("plugh").count(), 1);
    assert_eq!(daemon.count("coder", Kind::InstructionsChanged), 1);
    daemon
        .block(daemon.client().compact("coder", &Compact::default()))
        .unwrap();
    assert_eq!(asked(&daemon, "coder"), first);
    assert_eq!(messages(&daemon).matches("plugh").count(), 1);
    assert_eq!(daemon.count("coder", Kind::InstructionsChanged), 2);
    fs::remove_file(daemon.work().join("AGENTS.md")).unwrap();
    asked(&daemon, "coder");
    assert!(messages(&daemon).contains("AGENTS.md no longer apply."));
    // A new conversation has nothing to take back.
    daemon
        .block(daemon.client().reset("coder", &Reset::default()))
        .unwrap();
    assert!(!asked(&daemon, "coder").contains("xyzzy"));
    assert!(!messages(&daemon).contains("no longer apply"));
    daemon.verify();
}

#[test]
fn a_directory_s_own_file_is_told_when_work_touches_it() {
    let daemon = TestDaemon::new();
    repository(&daemon, "Of the project.");
    let below = daemon.work().join("below");
    fs::create_dir(&below).unwrap();
    fs::write(below.join("AGENTS.md"), "Of the directory below.").unwrap();
    fs::write(below.join("file.txt"), "some text").unwrap();
    daemon.create("coder");
    let first = asked(&daemon, "coder");
    assert!(!first.contains("Of the directory below."));
    daemon.completed(
        "coder",
        "do: call read_file {\"file_path\": \"below/file.txt\"} ;; say done",
    );
    let told = messages(&daemon);
    assert_eq!(told.matches("Of the directory below.").count(), 1, "{told}");
    assert_eq!(asked(&daemon, "coder"), first);
    assert_eq!(daemon.count("coder", Kind::InstructionsChanged), 1);
    daemon.verify();
}

#[test]
fn a_skill_is_listed_and_its_file_can_be_read_in_the_sandbox() {
    let daemon = TestDaemon::new();
    let home = daemon.root().join("user");
    let skill = home.join(".claude/skills/release/SKILL.md");
    fs::create_dir_all(skill.parent().unwrap()).unwrap();
    fs::write(
        &skill,
        "---\ndescription: Makes a release.\n---\n\nSay the magic word.\n",
    )
    .unwrap();
    daemon.caller_env("HOME", home.to_str().unwrap());
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    daemon.create_with("coder", spec);
    let path = skill.canonicalize().unwrap().display().to_string();
    let listed = format!("- release: Makes a release. ({path})");
    assert!(asked(&daemon, "coder").contains(&listed));
    let read = serde_json::json!({"file_path": path});
    daemon.completed("coder", &format!("do: call read_file {read} ;; say done"));
    let result = messages(&daemon);
    assert!(result.contains("Say the magic word."), "{result}");
    let context = daemon.block(daemon.client().context("coder")).unwrap();
    assert_eq!(context.skills[0].name, "release");
    daemon.verify();
}

/// A project's skill is above the directory of an agent that works in a part of the project.
#[test]
fn a_trusted_skill_above_the_working_directory_can_be_read() {
    let daemon = TestDaemon::new();
    let skill = daemon.work().join(".agents/skills/release/SKILL.md");
    fs::create_dir_all(skill.parent().unwrap()).unwrap();
    fs::create_dir_all(daemon.work().join(".git")).unwrap();
    fs::write(
        &skill,
        "---\ndescription: Makes a release.\n---\n\nSay the magic word.\n",
    )
    .unwrap();
    let private = daemon.work().join("private");
    fs::write(&private, "not for this agent").unwrap();
    let part = daemon.work().join("part");
    fs::create_dir_all(&part).unwrap();
    let trusted = daemon.cli(&["trust", daemon.work().to_str().unwrap()]);
    assert!(trusted.status.success(), "{trusted:?}");
    let mut spec = daemon.spec();
    spec.cwd = Some(part.display().to_string());
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    daemon.create_with("coder", spec);
    let read = |path: &std::path::Path| {
        let read = serde_json::json!({"file_path": path.canonicalize().unwrap()});
        daemon.completed("coder", &format!("do: call read_file {read} ;; say done"));
        messages(&daemon)
    };
    let result = read(&skill);
    assert!(result.contains("Say the magic word."), "{result}");
    let result = read(&private);
    assert!(!result.contains("not for this agent"), "{result}");
    daemon.verify();
}

/// The system prompt of the conversation still names the skill.
#[test]
fn a_trusted_skill_that_changed_is_reported_to_the_model_once() {
    let daemon = TestDaemon::new();
    let skill = daemon.work().join(".agents/skills/release/SKILL.md");
    fs::create_dir_all(skill.parent().unwrap()).unwrap();
    let text = "---\ndescription: Makes a release.\n---\n\nSay the word.\n";
    fs::write(&skill, text).unwrap();
    let trusted = daemon.cli(&["trust", daemon.work().to_str().unwrap()]);
    assert!(trusted.status.success(), "{trusted:?}");
    daemon.create("coder");
    daemon.completed("coder", "do: say ready");
    let skills = || {
        let context = daemon.block(daemon.client().context("coder")).unwrap();
        context.skills.len()
    };
    assert_eq!(skills(), 1);
    fs::write(&skill, text.replace("Say", "Delete")).unwrap();
    for _ in 0..2 {
        daemon.completed("coder", "do: say ready");
        let told = messages(&daemon);
        assert_eq!(told.matches("can no longer be used").count(), 1, "{told}");
        assert_eq!(skills(), 0);
    }
    let trusted = daemon.cli(&["trust", daemon.work().to_str().unwrap()]);
    assert!(trusted.status.success(), "{trusted:?}");
    daemon.completed("coder", "do: say ready");
    let told = messages(&daemon);
    assert_eq!(told.matches("can be used again").count(), 1, "{told}");
    assert_eq!(skills(), 1);
    daemon.verify();
}
