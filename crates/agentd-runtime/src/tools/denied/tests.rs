//! Which hint is added to which output. No sandbox is needed: a policy is data.

use super::*;
use std::fs;
use tempfile::TempDir;

/// A user's home with a work tree in it, and the policy of an agent that works there.
struct Agent {
    _dir: TempDir,
    home: PathBuf,
    tree: PathBuf,
    confined: Confined,
}

fn agent() -> Agent {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    let (home, tree) = (root.join("user"), root.join("user/src/tree"));
    for name in ["user/.ssh", "user/src/tree/.git", "own", "tmp"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::write(tree.join(".git/config"), "").unwrap();
    let policy = agentd_sandbox::Policy {
        writable: vec![tree.clone()],
        home: home.clone(),
        own_home: root.join("own"),
        tmp: root.join("tmp"),
        ..Default::default()
    };
    Agent {
        _dir: dir,
        home,
        tree,
        confined: Confined {
            hosts: Vec::new(),
            policy,
            is_read_only: false,
        },
    }
}

impl Agent {
    fn said(&self, actor: Actor, text: &str) -> Option<String> {
        let mut confined = self.confined.clone();
        if actor == Actor::FileTool {
            confined.policy.own_home = PathBuf::new();
        }
        note(&confined, &self.tree, actor, &Escalation::None, text)
    }
}

#[test]
fn what_was_denied_is_named_with_how_to_ask() {
    let agent = agent();
    let tree = agent.tree.display();
    assert_eq!(
        agent
            .said(
                Actor::Command,
                "bash: line 1: /usr/z: Read-only file system\nexit code 1"
            )
            .unwrap(),
        format!(
            "[sandbox] Denied: /usr/z (read-only). Commands can write only to {tree}, /tmp and a private home \
             directory. If the task needs more, call shell again with `escalate` (the reason) and `needs` [\"write:/usr/z\"], or tell the user \
             what it needs and why; the user can change the agent's settings: `writable` or `readable` for a \
             directory."
        )
    );
    let key = agent.home.join(".ssh/id");
    let key = key.display();
    for text in [
        format!("cat: {key}: No such file or directory"),
        format!("FileNotFoundError: [Errno 2] No such file or directory: '{key}'"),
        format!("Error: ENOENT: no such file or directory, open '{key}'"),
    ] {
        let said = agent.said(Actor::Command, &text).unwrap();
        assert!(
            said.contains(&format!("Denied: {key} (not visible).")),
            "{said}"
        );
    }
    for error in [
        "Permission denied (os error 13)",
        "No such file or directory (os error 2)",
    ] {
        let said = agent.said(Actor::FileTool, &format!("Cannot read {key}: {error}."));
        let said = said.unwrap();
        let expected =
            format!("{key} (not visible). File tools can write only to {tree} and /tmp.");
        assert!(said.contains(&expected), "{said}");
    }
}

/// The hint must not reveal whether a hidden file exists.
#[test]
fn the_same_is_said_of_what_exists_and_what_does_not() {
    let agent = agent();
    fs::write(agent.home.join("there"), "").unwrap();
    let said = |name: &str| {
        let path = agent.home.join(name);
        let text = format!("cat: {}: No such file or directory", path.display());
        agent
            .said(Actor::Command, &text)
            .unwrap()
            .replace(name, "X")
    };
    assert_eq!(said("there"), said("nowhere"));
    assert_eq!(said(".ssh"), said(".gnupg"));
}

#[test]
fn an_error_of_another_kind_is_left_alone() {
    let agent = agent();
    let inside = agent.tree.join("run.sh");
    for text in [
        "error[E0425]: cannot find value `x` in this scope".to_owned(),
        format!("bash: line 1: {}: Permission denied", inside.display()),
        "bash: line 1: ./run.sh: Permission denied".to_owned(),
        "cat: src/main.c: No such file or directory".to_owned(),
        "cat: /usr/lib/nothing: No such file or directory".to_owned(),
        "cat: /tmp/nothing: No such file or directory".to_owned(),
        "curl: (7) Failed to connect to 127.0.0.1 port 9: Connection refused".to_owned(),
        String::new(),
    ] {
        assert_eq!(agent.said(Actor::Command, &text), None, "{text}");
    }
    let text = "Cannot read nothing.rs: No such file or directory (os error 2).";
    assert_eq!(agent.said(Actor::FileTool, text), None);
}

#[test]
fn without_a_network_that_is_said() {
    let mut agent = agent();
    agent.confined.policy.network = Network::Off;
    for text in [
        "curl: (6) Could not resolve host: example.org",
        "curl: (7) Failed to connect to 127.0.0.1 port 9: Connection refused",
        "npm error code EAI_AGAIN",
        "ERROR: No matching distribution found for x",
        "OSError: [Errno 101] Network is unreachable",
    ] {
        let said = agent.said(Actor::Command, text).unwrap();
        assert!(said.contains("Denied: the network (off)."), "{said}");
        assert!(said.contains(", and have no network access."), "{said}");
        assert!(said.ends_with("`network: on`."), "{said}");
    }
}

#[test]
fn a_system_call_and_a_socket_that_are_refused_are_told() {
    let agent = agent();
    let text = "strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted";
    let said = agent.said(Actor::Command, text).unwrap();
    assert!(said.contains("Denied: a system call ("), "{said}");
    assert!(said.contains("`sandbox: full-access`"), "{said}");
    let text = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?";
    let said = agent.said(Actor::Command, text).unwrap();
    assert!(
        said.contains("/var/run/docker.sock (not visible)"),
        "{said}"
    );
}

#[test]
fn git_and_a_read_only_agent_are_told_what_helps_them() {
    let mut agent = agent();
    let text = "error: could not write config file .git/config: Device or resource busy";
    let said = agent.said(Actor::Command, text).unwrap();
    assert!(said.contains(".git/config (read-only)"), "{said}");
    assert!(said.contains("Git's configuration and hooks"), "{said}");
    let policy = &mut agent.confined.policy;
    policy.readable = std::mem::take(&mut policy.writable);
    agent.confined.is_read_only = true;
    let text = "bash: line 1: new: Read-only file system";
    let said = agent.said(Actor::Command, text).unwrap();
    assert!(
        said.contains("Commands can write only to /tmp and"),
        "{said}"
    );
    assert!(said.contains("`sandbox: workspace-write`"), "{said}");
    let text = "Cannot write new: Permission denied (os error 13).";
    let said = agent.said(Actor::FileTool, text).unwrap();
    assert!(
        said.contains("File tools can write only to /tmp."),
        "{said}"
    );
    let said = agent.said(Actor::FileThread, text).unwrap();
    assert!(said.contains("File tools cannot write anywhere."), "{said}");
}

#[test]
fn paths_are_found_in_what_programs_write() {
    let cwd = Path::new("/w");
    for (line, expected) in [
        ("touch: cannot touch '/etc/x': Read-only", &["/etc/x"][..]),
        (
            "dial unix:///run/docker.sock: connect",
            &["/run/docker.sock"],
        ),
        ("GET http://host/path: refused", &[]),
        ("open ../a/b: permission denied.", &["/a/b"]),
        ("mv: cannot move a to b", &[]),
        ("/bin/bash: line 1: /usr/x: Read-only", &["/usr/x"]),
        ("/bin/bash: line 1: new: Read-only", &[]),
        ("write /dev/full: no space", &[]),
    ] {
        let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(named_in(cwd, line), expected, "{line}");
    }
}

#[test]
fn a_working_directory_that_contains_a_closed_one_is_explained() {
    let mut agent = agent();
    let closed = agent.tree.join(".local/state");
    fs::create_dir_all(&closed).unwrap();
    fs::create_dir_all(agent.tree.join("src")).unwrap();
    agent.confined.policy.closed = vec![closed.clone()];
    let tree = agent.tree.display().to_string();
    let why = format!(
        "{tree} contains {}, which is closed to tools.",
        closed.display()
    );
    for path in ["", "/new", "/.local", "/.local/new"] {
        let text = format!("{tree}{path}: Permission denied (os error 13)");
        let note = agent.said(Actor::FileThread, &text).unwrap();
        assert!(note.contains(&why), "{note}");
        assert_eq!(agent.said(Actor::FileTool, &text), None);
    }
    let text = format!("{tree}/src/new: Permission denied (os error 13)");
    assert_eq!(agent.said(Actor::FileThread, &text), None);
    let text = format!("{tree}/new: Permission denied");
    assert_eq!(agent.said(Actor::Command, &text), None);
}

#[test]
fn the_hint_names_what_would_be_needed() {
    let agent = agent();
    let config = agent.tree.join(".git/config");
    for (text, needed) in [
        (
            "touch: /etc/x: Read-only file system".to_owned(),
            "write:/etc/x",
        ),
        (
            format!(
                "error: could not write {}: Device or resource busy",
                config.display()
            ),
            "git-config",
        ),
        (
            "Cannot connect to the Docker daemon at unix:///run/docker.sock".to_owned(),
            "service:docker",
        ),
        (
            "git@example.com: Permission denied (publickey).".to_owned(),
            "service:ssh-agent",
        ),
        (
            "error: gpg failed to sign the data".to_owned(),
            "service:gpg-agent",
        ),
        (
            "strace: ptrace: Operation not permitted".to_owned(),
            "everything",
        ),
    ] {
        let said = agent.said(Actor::Command, &text).unwrap();
        assert!(said.contains(&format!("\"{needed}\"")), "{text}: {said}");
        assert!(said.contains("`escalate`"), "{said}");
    }
    let said = agent.said(Actor::Command, "gpg: signing failed: No agent running");
    assert!(said.unwrap().contains("`pass: [gpg-agent]`"));
}

#[test]
fn an_approved_call_is_told_what_its_approval_did_not_include() {
    let agent = agent();
    let needs = [agentd_core::needs::Need::Write(agent.home.join("dir"))];
    let escalation = Escalation::Needs(needs.into());
    let text = "touch: /etc/x: Read-only file system";
    let said = note(
        &agent.confined,
        &agent.tree,
        Actor::Command,
        &escalation,
        text,
    )
    .unwrap();
    assert!(
        said.contains("did not include write access to /etc/x"),
        "{said}"
    );
    assert!(said.contains("included only write:"), "{said}");
    assert!(!said.contains("again"), "{said}");
    let everything = Escalation::Needs([agentd_core::needs::Need::Everything].into());
    assert_eq!(
        note(
            &agent.confined,
            &agent.tree,
            Actor::Command,
            &everything,
            text
        ),
        None
    );
}
