//! A purge asks the program of an ACP agent to delete its session, and says what is left.

use crate::acp_fixture::{children, scripted, session_file};
use crate::command_agents::reset;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Archive, LeftSession, Purge, Purged};
use agentd_core::spec::{AgentSpec, Sandbox};
use serde_json::Value;
use std::fs;

/// The scripted agent, which deletes sessions as `delete` says.
fn spec(daemon: &TestDaemon, delete: &str) -> AgentSpec {
    let mut spec = scripted(daemon, "true");
    spec.env.insert("ACP_DELETE".to_owned(), delete.to_owned());
    spec.sandbox = Some(Sandbox::FullAccess);
    spec
}

/// The sessions that the program was asked to delete.
fn asked_to_delete(daemon: &TestDaemon) -> Vec<String> {
    let text = fs::read_to_string(daemon.work().join("deleted")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// An agent whose first conversation was reset and is purged. Returns the program's id of its session, too.
fn purged(daemon: &TestDaemon, spec: AgentSpec) -> (String, Purged) {
    daemon.create_with("coder", spec);
    daemon.completed("coder", "hello");
    let file = session_file(daemon, "coder");
    let kept: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let session = kept["session"].as_str().unwrap().to_owned();
    let first = daemon.show("coder").conversation.unwrap().id;
    reset(daemon, None);
    assert_eq!(asked_to_delete(daemon), [""; 0], "a reset deletes nothing");
    let mut purge = Purge {
        conversation: Some(first),
        dry_run: true,
    };
    daemon
        .block(daemon.client().purge("coder", &purge))
        .unwrap();
    assert_eq!(asked_to_delete(daemon), [""; 0], "it was a dry run");
    purge.dry_run = false;
    let purged = daemon.block(daemon.client().purge("coder", &purge));
    let purged = purged.unwrap();
    assert_eq!(purged.conversations, [first]);
    assert!(!file.exists());
    until("no process of the program", || {
        children(daemon).is_empty().then_some(())
    });
    (session, purged)
}

#[test]
fn a_purge_asks_the_program_to_delete_its_session_and_a_reset_does_not() {
    let daemon = TestDaemon::new();
    let (session, purged) = purged(&daemon, spec(&daemon, "yes"));
    assert_eq!(asked_to_delete(&daemon), [session.as_str()]);
    assert_eq!(purged.deleted.len(), 1, "{purged:#?}");
    let deleted = &purged.deleted[0];
    assert_eq!(deleted.conversation, purged.conversations[0]);
    assert_eq!((&*deleted.program, &deleted.session), ("bash", &session));
    assert!(purged.left.is_empty(), "{purged:#?}");
    // The agent's next conversation has a session of its own.
    daemon.completed("coder", "hello");
    assert_eq!(asked_to_delete(&daemon), [session]);
    daemon.verify();
}

/// The program cannot load sessions, so that each of its processes begins a new one.
#[test]
fn a_purge_asks_the_program_to_delete_earlier_sessions_of_the_conversation_too() {
    let daemon = TestDaemon::new();
    let mut spec = spec(&daemon, "yes");
    spec.env.insert("ACP_LOAD".to_owned(), "false".to_owned());
    daemon.create_with("coder", spec);
    daemon.completed("coder", "hello");
    let known = || {
        let kept = fs::read(session_file(&daemon, "coder")).unwrap();
        let kept: Value = serde_json::from_slice(&kept).unwrap();
        kept["session"].as_str().unwrap().to_owned()
    };
    let first = known();
    daemon.kill_runtime("coder");
    daemon.completed("coder", "hello again");
    let second = known();
    assert_ne!(first, second);
    let conversation = daemon.show("coder").conversation.unwrap().id;
    reset(&daemon, None);
    let purge = Purge {
        conversation: Some(conversation),
        dry_run: false,
    };
    let purged = daemon
        .block(daemon.client().purge("coder", &purge))
        .unwrap();
    assert_eq!(asked_to_delete(&daemon), [first, second]);
    assert_eq!(purged.deleted.len(), 2, "{purged:#?}");
    daemon.verify();
}

#[track_caller]
fn only_left(purged: Purged, session: &str) -> LeftSession {
    assert!(purged.deleted.is_empty(), "{purged:#?}");
    assert_eq!(purged.left.len(), 1, "{purged:#?}");
    let left = purged.left.into_iter().next().unwrap();
    assert_eq!(left.session, session);
    assert_eq!(left.places, ["~"]);
    left
}

#[test]
fn a_session_that_the_program_fails_to_delete_is_left_and_the_purge_is_done() {
    for (delete, said) in [("broken", "no such session"), ("dies", "cannot delete")] {
        let daemon = TestDaemon::new();
        let (session, purged) = purged(&daemon, spec(&daemon, delete));
        assert_eq!(asked_to_delete(&daemon), [session.as_str()]);
        let why = only_left(purged, &session).why.unwrap();
        assert!(why.contains(said), "{delete}: {why}");
        daemon.verify();
    }
}

#[test]
fn a_program_that_does_not_offer_to_delete_is_not_asked() {
    let daemon = TestDaemon::new();
    let (session, purged) = purged(&daemon, spec(&daemon, ""));
    assert_eq!(only_left(purged, &session).why, None);
    assert_eq!(asked_to_delete(&daemon), [""; 0]);
    daemon.verify();
}

/// The program runs in the agent's sandbox, with the home that it had for the conversation.
#[test]
fn a_session_is_deleted_in_the_sandbox_of_its_conversation() {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return;
    }
    let daemon = TestDaemon::new();
    let spec = AgentSpec {
        sandbox: Some(Sandbox::WorkspaceWrite),
        ..spec(&daemon, "home")
    };
    let (session, purged) = purged(&daemon, spec);
    assert_eq!(asked_to_delete(&daemon), [session.as_str()]);
    assert_eq!(purged.deleted.len(), 1, "{purged:#?}");
    assert_eq!(purged.deleted[0].session, session);
    daemon.verify();
}

/// Its program is a stranger's.
#[test]
fn a_purge_of_a_held_agent_starts_nothing() {
    let (daemon, home) = (TestDaemon::new(), TestDaemon::new());
    home.create_with("evil", spec(&daemon, "yes"));
    let file = daemon.root().join("evil.zst");
    let file = file.to_str().unwrap();
    assert!(home.cli(&["export", "evil", file]).status.success());
    assert!(daemon.cli(&["import", file]).status.success());
    assert!(daemon.show("evil").held);
    let session = session_file(&daemon, "evil");
    fs::create_dir_all(session.parent().unwrap()).unwrap();
    fs::write(session, r#"{"session":"s-1","prompted":true}"#).unwrap();
    let archive = Archive::default();
    daemon
        .block(daemon.client().archive("evil", &archive))
        .unwrap();
    let all = Purge::default();
    let purged = daemon.block(daemon.client().purge("evil", &all)).unwrap();
    assert!(only_left(purged, "s-1").why.is_some());
    assert_eq!(asked_to_delete(&daemon), [""; 0]);
}
