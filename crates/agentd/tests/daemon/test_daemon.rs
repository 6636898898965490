//! A state directory with a daemon in it, a working directory, and a fake model.

use agentd_client::api::{Agent, Answer, Create, EventQuery, Send, Sent, Status};
use agentd_client::{Client, Error};
use agentd_core::event::{Body, Event, Kind};
use agentd_core::id::PromptId;
use agentd_core::spec::AgentSpec;
use agentd_failpoint::plan::{Plan, Role, Rule};
use agentd_failpoint::{self as failpoint, Passed};
use agentd_process::Identity;
use agentd_testkit::harness::{DaemonProcess, Poll, Program, TestDir};
use agentd_testkit::model::{FakeModel, Format, Recorded, Scenario};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A time limit for tests that would otherwise hang, far longer than any step takes.
const DEADLINE: Duration = Duration::from_secs(60);
pub const POLL: Poll = Poll::new(Duration::from_millis(5), DEADLINE);
pub const AGENTD: &str = env!("CARGO_BIN_EXE_agentd");
pub const KEY: &str = "sk-of-this-test";
const HOLD: &str = "hold";
/// The back end of supervision for every daemon of the tests. `cargo xtask systemd` sets it.
const SUPERVISOR: &str = "AGENTD_TEST_SUPERVISOR";
/// The variables by which a daemon finds the user's service manager.
const SERVICE_MANAGER: [&str; 2] = ["DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"];

/// Waits until the closure returns a value.
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    POLL.until(what, look).unwrap()
}

/// Copies the program. By another process: a process that a parallel test starts meanwhile would inherit the open
/// file, and a program that is open for writing cannot be run.
pub fn copy_program(to: &Path) {
    let copied = Command::new("cp").arg(AGENTD).arg(to).status().unwrap();
    assert!(copied.success());
}

/// The program. Its daemons use the back end of supervision that [`SUPERVISOR`] names.
fn supervised_program(dir: &TestDir) -> Program {
    let program = dir.program(AGENTD);
    let Ok(supervisor) = std::env::var(SUPERVISOR) else {
        return program;
    };
    fs::create_dir_all(dir.home()).unwrap();
    let settings = format!("[daemon]\nsupervisor = \"{supervisor}\"\n");
    fs::write(dir.home().join("config.toml"), settings).unwrap();
    let found = SERVICE_MANAGER.map(|name| (name, std::env::var_os(name)));
    let found = found
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    program.envs(found)
}

pub struct TestDaemon {
    dir: TestDir,
    /// Changed by [`Self::replace_program`].
    program: Mutex<Program>,
    pub model: FakeModel,
    runtime: tokio::runtime::Runtime,
    daemon: Mutex<Option<DaemonProcess>>,
    /// Variables that only the daemon has.
    env: Mutex<BTreeMap<String, String>>,
    /// Variables that callers have in addition, or instead.
    caller: Mutex<BTreeMap<String, String>>,
    args: Mutex<Vec<String>>,
    /// Signals that the daemon ignores.
    ignored: Mutex<Option<String>>,
}

impl TestDaemon {
    /// With a daemon in it.
    pub fn new() -> Self {
        let daemon = Self::empty();
        daemon.start_daemon();
        daemon
    }

    pub fn empty() -> Self {
        // This process is a child subreaper: it adopts orphans, so the test sees which processes were left behind.
        agentd_process::adopt_orphans().unwrap();
        let dir = TestDir::temporary().unwrap();
        let options = agentd_testkit::model::Options {
            scenario: Scenario::default(),
            ..Default::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        Self {
            program: Mutex::new(supervised_program(&dir)),
            dir,
            model: FakeModel::start_with(options).unwrap(),
            runtime,
            daemon: Mutex::default(),
            env: Mutex::default(),
            caller: Mutex::default(),
            args: Mutex::default(),
            ignored: Mutex::default(),
        }
    }

    pub fn root(&self) -> PathBuf {
        self.dir.root().to_owned()
    }

    pub fn home(&self) -> PathBuf {
        self.dir.home()
    }

    pub fn work(&self) -> PathBuf {
        self.dir.work()
    }

    pub fn program(&self) -> Program {
        self.program.lock().unwrap().clone()
    }

    pub fn client(&self) -> Client {
        self.program().client()
    }

    pub fn block<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub fn spawn<T: std::marker::Send + 'static>(
        &self,
        future: impl Future<Output = T> + std::marker::Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.runtime.spawn(future)
    }

    /// For the daemons that are started from now on.
    pub fn daemon_args(&self, args: &[&str]) {
        let args = args.iter().map(|&arg| arg.to_owned());
        *self.args.lock().unwrap() = args.collect();
    }

    pub fn daemon_env(&self, name: &str, value: &str) {
        let mut env = self.env.lock().unwrap();
        env.insert(name.to_owned(), value.to_owned());
    }

    /// The first runtime that reaches this failpoint is held there.
    pub fn hold_runtime(&self, point: &str) {
        self.hold(Role::Runtime, point);
    }

    /// The same for any kind of process.
    pub fn hold(&self, role: Role, point: &str) {
        self.follow(Rule::hold(HOLD, role, point));
    }

    /// The daemons that are started from now on, and their processes, follow this rule.
    pub fn follow(&self, rule: Rule) {
        self.follow_plan(&Plan {
            rules: vec![rule],
            ..Plan::default()
        });
    }

    fn follow_plan(&self, plan: &Plan) {
        plan.write(self.dir.root()).unwrap();
        let lab = self.dir.root().display().to_string();
        self.daemon_env(failpoint::VARIABLE, &lab);
    }

    /// The daemons that are started from now on have this injected bug.
    pub fn mistake(&self, name: &str) {
        self.follow_plan(&Plan {
            injected_bugs: vec![name.to_owned()],
            ..Plan::default()
        });
    }

    /// The clock of the daemons that are started from now on is that of the machine, and so many milliseconds. It can be
    /// set again while a daemon runs.
    pub fn set_clock(&self, off_ms: i64) {
        let root = self.dir.root();
        if !self.env.lock().unwrap().contains_key(failpoint::VARIABLE) {
            Plan::default().write(root).unwrap();
            self.daemon_env(failpoint::VARIABLE, &root.display().to_string());
        }
        fs::write(root.join(failpoint::CLOCK_FILE), off_ms.to_string()).unwrap();
    }

    pub fn until_held(&self) {
        until("the point", || {
            Passed::of_rule(self.dir.root(), HOLD).unwrap()
        });
    }

    /// The daemon is started from a shell that has them.
    pub fn daemon_has_keys(&self) {
        for (name, value) in self.caller() {
            self.daemon_env(&name, &value);
        }
    }

    pub fn daemon_ignores(&self, signal: &str) {
        *self.ignored.lock().unwrap() = Some(signal.to_owned());
    }

    /// The next daemon is of another build: another file, at least.
    pub fn replace_program(&self) {
        let other = self.root().join("agentd-of-another-build");
        copy_program(&other);
        let program = self.program().with_path(other);
        *self.program.lock().unwrap() = program;
    }

    /// Starts a daemon of another file and replaces that file, as an upgrade does while the daemon runs.
    pub fn run_replaced_program(&self) {
        self.replace_program();
        self.start_daemon();
        let path = self.program().path().to_owned();
        fs::remove_file(&path).unwrap();
        copy_program(&path);
    }

    /// The program, with a completely specified environment.
    pub fn command(&self) -> Command {
        let program = self.program();
        let Some(signal) = &*self.ignored.lock().unwrap() else {
            return program.command();
        };
        let mut shell = program.command_of("sh");
        let script = format!("trap '' {signal}; exec \"$0\" \"$@\"");
        shell.arg("-c").arg(script).arg(program.path());
        shell
    }

    /// Runs the program to its end, as a user who has a key.
    pub fn cli(&self, args: &[&str]) -> Output {
        self.cli_at(&self.home(), args)
    }

    /// The same in another home.
    pub fn cli_at(&self, home: &Path, args: &[&str]) -> Output {
        let mut command = self.command();
        command.env("AGENTD_HOME", home).envs(self.caller());
        command.args(args).output().unwrap()
    }

    pub fn start_daemon(&self) {
        self.start_daemon_by(self.daemon_command());
    }

    /// With its output and its log somewhere else.
    pub fn start_daemon_with(&self, stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) {
        let mut command = self.daemon_command();
        command.stdout(stdout).stderr(stderr);
        self.start_daemon_by(command);
    }

    fn daemon_command(&self) -> Command {
        let mut command = self.program().daemon_by(self.command()).unwrap();
        command
            .args(self.args.lock().unwrap().iter())
            .envs(self.env.lock().unwrap().iter());
        command
    }

    /// Starts a daemon by a command that the test has made.
    pub fn start_daemon_by(&self, command: Command) {
        let started = DaemonProcess::start_by(command, &self.program(), &self.runtime, POLL);
        let daemon = started.unwrap_or_else(|error| panic!("{error}"));
        *self.daemon.lock().unwrap() = Some(daemon);
    }

    pub fn daemon_pid(&self) -> Option<u32> {
        self.daemon.lock().unwrap().as_ref().map(DaemonProcess::pid)
    }

    /// Waits until the daemon has ended by itself; returns its exit code.
    pub fn until_daemon_ends(&self) -> Option<i32> {
        let mut daemon = self.take_daemon();
        until("the daemon's end", || daemon.try_wait().unwrap()).code()
    }

    pub fn signal_daemon(&self, signal: Signal) {
        let mut daemon = self.take_daemon();
        // It may have ended by itself.
        let _gone = daemon.signal(signal);
        daemon.wait().unwrap();
    }

    fn take_daemon(&self) -> DaemonProcess {
        let daemon = self.daemon.lock().unwrap().take();
        daemon.expect("there is a daemon")
    }

    pub fn kill_daemon(&self) {
        self.signal_daemon(Signal::KILL);
    }

    /// The variables of a caller's shell.
    pub fn caller(&self) -> BTreeMap<String, String> {
        let base_url = self.model.base_url(Format::Anthropic);
        let mut env = self.program().caller_env(KEY, &base_url);
        env.extend(self.caller.lock().unwrap().clone());
        env
    }

    /// Sets a variable of the callers from now on.
    pub fn caller_env(&self, name: &str, value: &str) {
        let mut caller = self.caller.lock().unwrap();
        caller.insert(name.to_owned(), value.to_owned());
    }

    pub fn spec(&self) -> AgentSpec {
        AgentSpec {
            provider: Some("anthropic".to_owned()),
            model: Some("some-model".to_owned()),
            cwd: Some(self.work().display().to_string()),
            system: "You are an agent.".to_owned(),
            ..AgentSpec::default()
        }
    }

    pub fn create(&self, name: &str) -> Agent {
        self.create_with(name, self.spec())
    }

    pub fn create_with(&self, name: &str, spec: AgentSpec) -> Agent {
        let create = self.create_request(name, spec);
        self.block(self.client().create(&create)).unwrap().agent
    }

    fn create_request(&self, name: &str, spec: AgentSpec) -> Create {
        Create {
            name: Some(name.to_owned()),
            spec,
            env: self.caller(),
            ..Create::default()
        }
    }

    /// Creates an agent, and kills the daemon when it is held at a failpoint. A held daemon answers nothing: the
    /// answer may have come before, or not at all.
    pub fn create_and_kill_when_held(&self, name: &str) {
        let (client, create) = (self.client(), self.create_request(name, self.spec()));
        let asked = self.spawn(async move { client.create(&create).await });
        self.until_held();
        self.kill_daemon();
        let _answered_or_not = self.block(asked).unwrap();
    }

    pub fn send(&self, name: &str, text: &str) -> Sent {
        let send = Send {
            text: text.to_owned(),
            env: self.caller(),
            ..Send::default()
        };
        self.block(self.client().send(name, &send)).unwrap()
    }

    /// Waits for the end of a prompt, even if the daemon is replaced meanwhile.
    pub fn answer(&self, name: &str, prompt: PromptId) -> Answer {
        let begin = Instant::now();
        loop {
            let wait = Duration::from_secs(5);
            match self.block(self.client().answer(name, prompt, wait)) {
                Ok(answer) if answer.status.is_over() => return answer,
                Ok(_) | Err(Error::NotRunning { .. } | Error::Broken(_)) => {}
                Err(error) => panic!("{error}"),
            }
            if begin.elapsed() > DEADLINE {
                let agent = self.block(self.client().agent(name));
                panic!("no answer: {agent:#?}\n{}", self.log());
            }
        }
    }

    /// Sends a prompt and waits for its answer.
    pub fn ask(&self, name: &str, text: &str) -> Answer {
        let sent = self.send(name, text);
        self.answer(name, sent.prompt)
    }

    pub fn completed(&self, name: &str, text: &str) -> Answer {
        let answer = self.ask(name, text);
        assert_eq!(
            answer.status,
            Status::Completed,
            "{answer:#?}\n{}",
            self.log()
        );
        answer
    }

    pub fn show(&self, name: &str) -> Agent {
        self.block(self.client().agent(name)).unwrap()
    }

    pub fn pid(&self, name: &str) -> Option<u32> {
        self.show(name).process.pid
    }

    pub fn events(&self, name: &str) -> Vec<Event> {
        let mut all = Vec::new();
        loop {
            let query = EventQuery {
                after: all.last().map_or(0, |event: &Event| event.seq.0),
                all: true,
                ..EventQuery::default()
            };
            let (events, next) = self.block(self.client().page(name, &query)).unwrap();
            all.extend(events);
            if next.is_none() {
                return all;
            }
        }
    }

    pub fn count(&self, name: &str, kind: Kind) -> usize {
        let events = self.events(name);
        events.iter().filter(|event| event.kind() == kind).count()
    }

    /// Waits for an event.
    pub fn until_event(&self, name: &str, is_it: impl Fn(&Body) -> bool) -> Event {
        until("an event", || {
            let mut events = self.events(name).into_iter();
            events.find(|event| is_it(&event.body))
        })
    }

    pub fn until_kind(&self, name: &str, kind: Kind) -> Event {
        self.until_event(name, |body| body.kind() == kind)
    }

    pub fn kill_runtime(&self, name: &str) {
        let pid = until("a process", || self.pid(name));
        kill(pid, Signal::KILL);
        until("its end", || (self.pid(name) != Some(pid)).then_some(()));
    }

    /// What tools wrote: one line each.
    pub fn effects(&self) -> Vec<String> {
        let text = fs::read_to_string(self.work().join("effects")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// All requests, of which none may have been refused.
    pub fn requests(&self) -> Vec<Recorded> {
        let refused = self.model.refused();
        assert!(refused.is_empty(), "{refused:#?}");
        self.model.requests()
    }

    pub fn log(&self) -> String {
        self.program().log()
    }

    /// Checks that the journal is intact, according to the program itself.
    pub fn verify(&self) {
        let output = self.command().args(["verify", "--json"]).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["clean"], true, "{report:#}");
    }

    /// The processes of this daemon: runtimes, shims, tools.
    pub fn processes(&self) -> Vec<(u32, String)> {
        let root = self.dir.root().display().to_string();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|it| it.parse().ok()) else {
                continue;
            };
            if pid == std::process::id() {
                continue;
            }
            let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace('\0', " ");
            let (arguments, environment) = (text(read("cmdline")), text(read("environ")));
            if arguments.contains(&root) || environment.contains(&root) {
                found.push((pid, arguments));
            }
        }
        found
    }
}

pub fn kill(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may have ended by itself.
    let _gone = kill_process(pid, signal);
}

/// Reaps an orphan that this process adopted. Not others: a parallel test may wait for its own.
pub fn reap(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let _alive_or_not_ours = waitpid(pid, WaitOptions::NOHANG);
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
        drop(self.daemon.lock().unwrap().take());
        for (pid, _) in self.processes() {
            if let Ok(identity) = Identity::of(pid) {
                drop(agentd_process::signal(identity, Signal::KILL));
            }
        }
    }
}
