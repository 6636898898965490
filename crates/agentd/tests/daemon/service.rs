//! The daemon as a service: its units, what it does with the socket and the notifications of a service manager, and the
//! commands that use one. `systemctl` is a script that writes down what it is asked to do.

use crate::golden;
use crate::test_daemon::{AGENTD, TestDaemon, until};
use agentd_client::api::Status;
use agentd_core::event::Kind;
use agentd_process::Identity;
use rustix::process::Signal;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

const UNITS: &str = ".config/systemd/user";

/// Programs that write their arguments to `asked`, before those of the search path.
struct Fakes {
    dir: PathBuf,
}

impl Fakes {
    fn new(daemon: &TestDaemon) -> Self {
        let dir = daemon.root().join("fakes");
        fs::create_dir(&dir).unwrap();
        Self { dir }
    }

    /// A service manager that does all that it is asked to do.
    fn with_systemd(daemon: &TestDaemon) -> Self {
        let fakes = Self::new(daemon);
        fakes.program("systemctl", "exit 0");
        fakes.program("loginctl", "exit 0");
        fakes
    }

    /// The same, with the daemon as its service.
    fn with_service(daemon: &TestDaemon) -> Self {
        let fakes = Self::with_systemd(daemon);
        text(&fakes.run(daemon, &["daemon", "install"]));
        fakes
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.dir.join(name);
        let asked = self.dir.join("asked");
        let text = format!(
            "#!/bin/sh\necho {name} \"$@\" >> '{}'\n{script}\n",
            asked.display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn asked(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.join("asked")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A run of the program that finds these programs first.
    fn run(&self, daemon: &TestDaemon, args: &[&str]) -> Output {
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", self.dir.display());
        let mut command = daemon.command();
        command.env("PATH", path).envs(
            daemon
                .caller()
                .into_iter()
                .filter(|(name, _)| name != "PATH"),
        );
        command.args(args).output().unwrap()
    }
}

/// A service manager that runs the daemon when this is done to its socket.
fn runs_daemon_on(verb: &str) -> String {
    let run = format!("'{AGENTD}' daemon run < /dev/null > /dev/null 2>&1 &");
    format!("case \"$*\" in '--user {verb} agentd.socket') {run} ;; esac")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What differs from machine to machine, as words.
fn general(text: &str, daemon: &TestDaemon) -> String {
    let program = fs::canonicalize(AGENTD).unwrap();
    let home = daemon.home();
    text.replace(program.to_str().unwrap(), "/usr/bin/agentd")
        .replace(home.to_str().unwrap(), "/home/ann/agentd")
}

fn dry_run(daemon: &TestDaemon, args: &[&str]) -> String {
    let mut command = daemon.command();
    command.env("PATH", "/usr/bin:/bin");
    command.args(["daemon", "install", "--dry-run"]).args(args);
    general(&text(&command.output().unwrap()), daemon)
}

#[test]
fn the_units_are_as_documented() {
    let daemon = TestDaemon::empty();
    golden::check("service/user.txt", &dry_run(&daemon, &[]));
    let system = ["--system", "--user", "root"];
    golden::check("service/system.txt", &dry_run(&daemon, &system));
    assert!(!daemon.home().join(UNITS).exists(), "a dry run wrote units");
}

#[test]
fn an_installation_replaces_the_daemon_and_interrupts_no_turn() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let words = "word ".repeat(40);
    let sent = daemon.send("coder", &format!("do: slowly 25 {words}"));
    daemon.until_kind("coder", Kind::RequestSent);
    let runtime = until("a process", || daemon.pid("coder"));
    let fakes = Fakes::with_systemd(&daemon);
    let said = text(&fakes.run(&daemon, &["daemon", "install"]));
    assert!(said.contains("agents kept running"), "{said}");
    assert_eq!(
        fakes.asked(),
        [
            "systemctl --user show --property=Version",
            "systemctl --user daemon-reload",
            "systemctl --user enable agentd.socket agentd.service",
            "systemctl --user start agentd.socket agentd.service",
        ]
    );
    let service = daemon.home().join(UNITS).join("agentd.service");
    let written = fs::read_to_string(service).unwrap();
    let home = format!("Environment=\"AGENTD_HOME={}\"", daemon.home().display());
    assert!(written.lines().any(|line| line == home), "{written}");
    assert_eq!(daemon.until_daemon_ends(), Some(0));
    assert!(
        Identity::of(runtime).is_ok(),
        "the agent's process has ended"
    );
    // What systemd would have started.
    daemon.start_daemon();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Completed, "{answer:#?}");
    assert_eq!(daemon.count("coder", Kind::IncarnationBegan), 1);
}

#[test]
fn a_service_is_removed_with_its_files() {
    let daemon = TestDaemon::empty();
    let fakes = Fakes::with_systemd(&daemon);
    fakes.program("crontab", "echo 'no crontab for ann' >&2; exit 1");
    text(&fakes.run(&daemon, &["daemon", "install"]));
    let units = daemon.home().join(UNITS);
    assert_eq!(fs::read_dir(&units).unwrap().count(), 2);
    // Another home has its own daemon, and may not replace the service of this one.
    let other = daemon.root().join("other");
    let mut command = daemon.command();
    command.env("PATH", format!("{}:/usr/bin:/bin", fakes.dir.display()));
    command.env("AGENTD_HOME", &other);
    let refused = command.args(["daemon", "install"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let said = text(&fakes.run(&daemon, &["daemon", "uninstall"]));
    assert!(said.contains("removed"), "{said}");
    assert_eq!(fs::read_dir(&units).unwrap().count(), 0);
    let asked = fakes.asked();
    let position = |line: &str| asked.iter().position(|it| it == line);
    let (socket, service) = (
        position("systemctl --user stop agentd.socket"),
        position("systemctl --user stop agentd.service"),
    );
    assert!(socket.is_some() && socket < service, "{asked:?}");
    for args in [
        &["daemon", "uninstall"][..],
        &["daemon", "uninstall", "--dry-run"],
    ] {
        let said = text(&fakes.run(&daemon, args));
        assert!(said.contains("not installed"), "{said}");
    }
}

#[test]
fn without_systemd_a_line_in_the_crontab_starts_the_daemon() {
    let daemon = TestDaemon::empty();
    let fakes = Fakes::new(&daemon);
    let table = daemon.root().join("crontab");
    fs::write(&table, "0 3 * * * backup\n").unwrap();
    fakes.program("systemctl", "echo 'Failed to connect to bus' >&2; exit 1");
    let at = table.display();
    let script =
        format!("case \"$1\" in -l) cat '{at}';; -) cat > '{at}.new'; mv '{at}.new' '{at}';; esac");
    fakes.program("crontab", &script);
    let refused = fakes.run(&daemon, &["daemon", "install"]);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("Failed to connect to bus"), "{said}");
    assert!(said.contains("--yes"), "{said}");
    text(&fakes.run(&daemon, &["daemon", "install", "--yes"]));
    let home = daemon.home();
    let program = fs::canonicalize(AGENTD).unwrap();
    let line = format!(
        "@reboot AGENTD_HOME='{}' PATH='{}:{}' '{}' daemon start # agentd daemon install\n",
        home.display(),
        fakes.dir.display(),
        std::env::var("PATH").unwrap().replace('%', "\\%"),
        program.display()
    );
    let expected = format!("0 3 * * * backup\n{line}");
    assert_eq!(fs::read_to_string(&table).unwrap(), expected);
    text(&fakes.run(&daemon, &["daemon", "uninstall"]));
    assert_eq!(fs::read_to_string(&table).unwrap(), "0 3 * * * backup\n");
}

#[test]
fn commands_start_and_stop_the_daemon_through_systemd() {
    let daemon = TestDaemon::empty();
    let fakes = Fakes::with_service(&daemon);
    // From now on it starts the daemon as the socket would.
    fakes.program("systemctl", &runs_daemon_on("start"));
    let before = fakes.asked().len();
    // Neither of these starts it.
    let status = fakes.run(&daemon, &["daemon", "status"]);
    assert_eq!(status.status.code(), Some(4), "{status:?}");
    assert_eq!(fakes.asked().len(), before);
    let started = text(&fakes.run(&daemon, &["daemon", "start", "--json"]));
    let started: serde_json::Value = serde_json::from_str(&started).unwrap();
    assert_eq!(
        fakes.asked()[before..],
        ["systemctl --user start agentd.socket"]
    );
    let stopped = text(&fakes.run(&daemon, &["daemon", "stop", "--json"]));
    let stopped: serde_json::Value = serde_json::from_str(&stopped).unwrap();
    assert_eq!(stopped["pid"], started["pid"]);
    let asked = fakes.asked();
    let after = &asked[before + 1..];
    assert_eq!(after.last().unwrap(), "systemctl --user stop agentd.socket");
    assert!(
        !after.iter().any(|line| line.contains("start")),
        "{after:?}"
    );
    let status = fakes.run(&daemon, &["daemon", "status"]);
    assert_eq!(status.status.code(), Some(4), "{status:?}");
}

#[test]
fn the_log_of_a_service_is_looked_for_in_the_journal() {
    let daemon = TestDaemon::empty();
    let fakes = Fakes::with_systemd(&daemon);
    // A daemon that runs, and does not answer.
    let run = daemon.home().join("run");
    fs::create_dir_all(&run).unwrap();
    let lock = fs::File::create(run.join("daemon.lock")).unwrap();
    let fix = || {
        lock.lock().unwrap();
        let output = fakes.run(&daemon, &["doctor", "--json"]);
        lock.unlock().unwrap();
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = said["findings"].as_array().unwrap();
        let what = |it: &serde_json::Value| it["what"].as_str().unwrap().contains("not answer");
        let found = findings.iter().find(|it| what(it));
        found.unwrap()["fix"].as_str().unwrap().to_owned()
    };
    assert!(fix().contains("/daemon.log"), "{}", fix());
    text(&fakes.run(&daemon, &["daemon", "install"]));
    let installed = fix();
    assert!(
        installed.contains("journalctl --user -u agentd -n 20"),
        "{installed}"
    );
}

/// Regression: it used up the time in which the daemon that a command starts must answer.
#[test]
fn a_service_manager_that_does_not_answer_costs_only_a_delay() {
    let daemon = TestDaemon::empty();
    let fakes = Fakes::with_service(&daemon);
    fakes.program(
        "systemctl",
        "case \"$*\" in '--user start agentd.socket') exec sleep 60;; esac",
    );
    text(&fakes.run(&daemon, &["daemon", "start"]));
    text(&fakes.run(&daemon, &["daemon", "stop"]));
}

#[test]
fn a_socket_of_systemd_whose_file_is_gone_is_started_again() {
    let daemon = TestDaemon::empty();
    let fakes = Fakes::with_service(&daemon);
    // It is active: only a restart creates its file, and a connection starts the daemon.
    fakes.program("systemctl", &runs_daemon_on("restart"));
    let before = fakes.asked().len();
    text(&fakes.run(&daemon, &["daemon", "start"]));
    assert_eq!(
        fakes.asked()[before..],
        [
            "systemctl --user start agentd.socket",
            "systemctl --user restart agentd.socket"
        ]
    );
    text(&fakes.run(&daemon, &["daemon", "stop"]));
}

/// A command that runs the daemon as a service manager does: with the socket as the first descriptor.
fn activated(daemon: &TestDaemon, socket: &UnixListener) -> Command {
    let program = daemon.program();
    let mut shell = program.command_of("sh");
    let script = "export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" \"$@\" 3<&0 0</dev/null";
    shell.arg("-c").arg(script).arg(program.path());
    let mut command = program.daemon_by(shell).unwrap();
    command.stdin(OwnedFd::from(socket.try_clone().unwrap()));
    command
}

fn api_socket(daemon: &TestDaemon) -> (PathBuf, UnixListener) {
    let run = daemon.home().join("run");
    fs::create_dir_all(&run).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).unwrap();
    let path = run.join("api.sock");
    let socket = UnixListener::bind(&path).unwrap();
    (path, socket)
}

#[test]
fn a_daemon_serves_the_socket_that_it_was_given_and_leaves_it_there() {
    let daemon = TestDaemon::empty();
    let (path, socket) = api_socket(&daemon);
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    let before = inode(&path);
    // A client that comes first waits for its answer.
    let client = daemon.client();
    let early = daemon.spawn(async move { client.daemon().await });
    daemon.start_daemon_by(activated(&daemon, &socket));
    let pid = daemon.block(early).unwrap().unwrap().pid;
    assert_eq!(Some(pid), daemon.daemon_pid());
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    // A tool that had the socket could answer clients in the daemon's place.
    let own = Path::new("/proc/self/fd").join(std::os::fd::AsRawFd::as_raw_fd(&socket).to_string());
    let socket_link = fs::read_link(own).unwrap();
    let runtime = until("a process", || daemon.pid("coder"));
    for entry in fs::read_dir(format!("/proc/{runtime}/fd")).unwrap() {
        let link = fs::read_link(entry.unwrap().path()).unwrap_or_default();
        assert_ne!(link, socket_link, "the agent's process has the socket");
    }
    daemon.signal_daemon(Signal::TERM);
    assert_eq!(inode(&path), before);
    // The next connection waits in the same socket for the next daemon.
    daemon.start_daemon_by(activated(&daemon, &socket));
    assert_eq!(daemon.completed("coder", "do: say again").text, "again");
}

/// Regression: the next daemon served a socket whose file was gone, and no client found it.
#[test]
fn a_daemon_whose_socket_was_deleted_is_found_after_its_restart() {
    let daemon = TestDaemon::empty();
    let (path, socket) = api_socket(&daemon);
    daemon.start_daemon_by(activated(&daemon, &socket));
    daemon.create("coder");
    fs::remove_file(&path).unwrap();
    let answers = || daemon.block(daemon.client().daemon()).ok();
    until("another socket", answers);
    daemon.signal_daemon(Signal::TERM);
    assert!(!path.exists(), "the daemon's own socket is left");
    daemon.start_daemon_by(activated(&daemon, &socket));
    assert_eq!(daemon.completed("coder", "do: say hello").text, "hello");
    // A daemon that is killed leaves its socket.
    daemon.kill_daemon();
    assert!(path.exists());
    daemon.start_daemon_by(activated(&daemon, &socket));
    assert_eq!(daemon.completed("coder", "do: say again").text, "again");
}

#[test]
fn the_service_manager_is_told_that_the_daemon_is_ready_alive_and_stopping() {
    let daemon = TestDaemon::empty();
    let path = daemon.root().join("notify");
    let told = UnixDatagram::bind(&path).unwrap();
    told.set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    // Otherwise the daemon could ask the service manager of the developer for scopes.
    let native = "[daemon]\nsupervisor = \"native\"\n";
    fs::write(daemon.home().join("config.toml"), native).unwrap();
    daemon.daemon_env("NOTIFY_SOCKET", path.to_str().unwrap());
    daemon.daemon_env("WATCHDOG_USEC", "300000");
    daemon.start_daemon();
    let next = || {
        let mut buffer = [0; 256];
        let length = told.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let until_told = |what: &str| while !next().starts_with(what) {};
    until_told("READY=1");
    until_told("WATCHDOG=1");
    until_told("WATCHDOG=1");
    daemon.signal_daemon(Signal::TERM);
    until_told("STOPPING=1");
}
