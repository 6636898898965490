//! The daemon's sockets are files and can be deleted. Regression: a daemon without its socket could not be reached, and
//! prevented another daemon from starting.

use crate::test_daemon::{AGENTD, TestDaemon, until};
use agentd_core::spec::Sandbox;
use agentd_testkit::harness::Program;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Another user.
const STRANGER: u32 = 54_322;

#[test]
fn a_deleted_socket_is_made_anew() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say before");
    let pid = daemon.daemon_pid();
    for name in ["api.sock", "link.sock"] {
        std::fs::remove_file(daemon.home().join("run").join(name)).unwrap();
    }
    until("the sockets", || {
        let is_there = |name: &str| daemon.home().join("run").join(name).exists();
        (is_there("api.sock") && is_there("link.sock")).then_some(())
    });
    assert_eq!(daemon.completed("coder", "do: say after").text, "after");
    // By the way of the other one, too.
    daemon.kill_runtime("coder");
    assert_eq!(daemon.completed("coder", "do: say again").text, "again");
    assert_eq!(daemon.daemon_pid(), pid, "it is the same daemon");
}

/// In a sandbox a tool sees one socket, on which it counts as a tool of its agent, whatever process connects.
#[test]
fn a_tool_in_a_sandbox_has_a_socket_of_its_own() {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return;
    }
    let daemon = TestDaemon::new();
    daemon.create("other");
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    let program = Path::new(AGENTD);
    let dir = program.parent().unwrap().display().to_string();
    spec.readable = vec![dir];
    daemon.create_with("coder", spec);
    let script = format!(
        "for verb in 'show coder' 'show other' list 'stop other' 'send other hello' 'create mine --provider demo' \
         'daemon stop'; do {AGENTD} $verb >> said 2>&1; echo $? >> codes; done; ls {}/run >> said",
        daemon.home().display()
    );
    fs::write(daemon.work().join("ask.sh"), script).unwrap();
    let call = serde_json::json!({ "command": "sh ask.sh" });
    let codes = || {
        let file = daemon.work().join("codes");
        let _none_before = fs::remove_file(&file);
        daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
        let codes = fs::read_to_string(&file).unwrap_or_default();
        let said = fs::read_to_string(daemon.work().join("said")).unwrap_or_default();
        assert!(!said.contains("api.sock"), "{said}");
        (codes.lines().map(str::to_owned).collect::<Vec<_>>(), said)
    };
    let (first, said) = codes();
    assert_eq!(first, ["0", "3", "3", "3", "3", "3", "3"], "{said}");
    // The socket is there again with the next daemon, for the same directory.
    daemon.daemon_has_keys();
    daemon.kill_daemon();
    daemon.start_daemon();
    assert_eq!(codes().0, first);
}

#[test]
fn the_state_is_closed_to_other_users() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    daemon.kill_daemon();
    let open = |path: &Path| {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        (mode & 0o077 != 0).then(|| path.to_owned())
    };
    let files = fs::read_dir(daemon.home()).unwrap();
    let open_files: Vec<_> = files
        .filter_map(|entry| open(&entry.unwrap().path()))
        .collect();
    assert!(open_files.is_empty(), "{open_files:?}");
    // What an earlier version or a careless copy left open is closed.
    let journal = daemon.home().join("journal.db");
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(daemon.home(), fs::Permissions::from_mode(0o755)).unwrap();
    daemon.start_daemon();
    assert_eq!(open(&daemon.home()), None);
    assert_eq!(open(&journal), None);
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can make a directory that belongs to another user");
        return;
    }
    daemon.kill_daemon();
    std::os::unix::fs::chown(daemon.home(), Some(STRANGER), None).unwrap();
    let out = daemon.command().args(["daemon", "run"]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(4), "{said}");
    assert!(said.contains("belongs to another user"), "{said}");
}

/// The client sends no key and no prompt to a socket that another user created at that path.
#[test]
fn a_strangers_socket_is_sent_nothing() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can be another user as well");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let run = root.path().join("run");
    fs::create_dir(&run).unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o777)).unwrap();
    let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\ns.listen()\n\
                  print('up',flush=True)\nwhile True:\n c,_=s.accept()\n print(len(c.recv(9)),flush=True)";
    let spawned = Command::new("python3")
        .args(["-c", script, &run.join("api.sock").display().to_string()])
        .uid(STRANGER)
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut stranger) = spawned else {
        println!("skipped: there is no python3");
        return;
    };
    let mut lines = BufReader::new(stranger.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "up");
    let program = Program::new(AGENTD, root.path(), root.path());
    let mut send = program.env("ANTHROPIC_API_KEY", "sk-canary").command();
    let out = send.args(["send", "coder", "hello"]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(3), "{said}");
    assert!(said.contains("belongs to another user"), "{said}");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    let received: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(!received.is_empty());
    assert!(received.iter().all(|bytes| bytes == "0"), "{received:?}");
}
