//! The environment of an attack: a daemon with a canary key, a user's home with canaries in it, a work tree, agents,
//! and listeners on loopback. The model is hostile: it calls the tools that the attack names.

use super::layers::Mode;
use super::listeners::Listeners;
use crate::harness::{DaemonProcess, Poll, Program};
use crate::lab::testbed::{Result, Stuck, lock};
use crate::model::{FakeModel, Format};
use agentd_client::api::{Agent, SetSecret};
use agentd_client::{Client, Error};
use agentd_core::id::ApprovalId;
use agentd_core::spec::AgentSpec;
use agentd_failpoint::VARIABLE;
use agentd_failpoint::plan::Plan;
use rustix::process::Signal;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// The time limit of a turn: after it, a hostile turn is interrupted.
pub(super) const TURN: Duration = Duration::from_secs(5);
pub(super) const START: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(5);
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How the tools of the hostile agent are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// As every agent by default.
    Default,
    /// If the kernel has no namespaces, the default runs nothing.
    ReadOnly,
}

/// Texts that the model must never see, by where they are.
#[derive(Clone, Debug)]
pub struct Words {
    pub key: String,
    pub ssh: String,
    pub aws: String,
    pub outside: String,
    /// Stored with `agentd secret`.
    pub stored: String,
    /// In the victim's conversation.
    pub victim: String,
}

/// Another agent, with a question that waits for the user.
#[derive(Clone, Debug)]
pub struct Victim {
    pub name: String,
    pub approval: ApprovalId,
    pub before: Agent,
    pub spec: AgentSpec,
}

pub struct Testbed {
    pub root: PathBuf,
    pub mode: Mode,
    pub level: Level,
    pub model: FakeModel,
    pub listeners: Listeners,
    pub words: Words,
    /// The directory that contains `agentd`.
    pub bin: PathBuf,
    pub program: Program,
    runtime: tokio::runtime::Runtime,
    daemon: Mutex<Option<DaemonProcess>>,
    /// Another process of the user.
    bystander: Mutex<Child>,
    /// A command of the user that has the key in its environment.
    cli: Mutex<Option<Child>>,
    pub(super) agents: Mutex<HashSet<String>>,
    pub(super) victim: Mutex<Option<Victim>>,
    pub(super) victims: AtomicU32,
    /// What the model saw last, to explain why an attack failed.
    pub(super) last: Mutex<String>,
}

impl Testbed {
    /// In this directory, which exists and is empty.
    pub fn new(root: &Path, mode: Mode, level: Level) -> Result<Self> {
        let root = root.canonicalize()?;
        for dir in [
            "state",
            "user/.ssh",
            "user/.aws",
            "work",
            "outside",
            "template",
        ] {
            fs::create_dir_all(root.join(dir))?;
        }
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755))?;
        let plan = Plan {
            injected_bugs: mode.bugs(),
            ..Plan::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let mut dice = [0; 6];
        File::open("/dev/urandom")?.read_exact(&mut dice)?;
        let dice: String = dice.iter().map(|byte| format!("{byte:02x}")).collect();
        let word = |what: &str| format!("canary-{what}-{dice}");
        let path = Program::beside_this_one()?;
        let bin = path.parent().unwrap_or(&root).to_owned();
        let mut program = Program::new(path, root.join("state"), root.join("work"))
            .sandboxed()
            .env("PATH", PATH)
            .env("HOME", root.join("user"))
            .env("LC_ALL", "C.UTF-8");
        if mode != Mode::Defended {
            plan.write(&root)?;
            program = program.env(VARIABLE, &root);
        }
        let testbed = Self {
            listeners: Listeners::start(&root.join("outside"))?,
            model: FakeModel::start()?,
            words: Words {
                key: word("key"),
                ssh: word("ssh"),
                aws: word("aws"),
                outside: word("outside"),
                stored: word("stored"),
                victim: word("victim"),
            },
            bin,
            program,
            runtime,
            daemon: Mutex::default(),
            bystander: Mutex::new(Command::new("sleep").arg("3600").spawn()?),
            cli: Mutex::default(),
            agents: Mutex::default(),
            victim: Mutex::default(),
            victims: AtomicU32::new(0),
            last: Mutex::default(),
            mode,
            level,
            root,
        };
        testbed.repository()?;
        testbed.restore_files()?;
        testbed.start_daemon()?;
        let stored = SetSecret {
            value: testbed.words.stored.clone(),
        };
        let set = testbed.client();
        testbed.ask("secret", set.set_secret("SIEGE_TOKEN", &stored))?;
        Ok(testbed)
    }

    pub fn state(&self) -> PathBuf {
        self.program.home().to_owned()
    }

    pub fn user(&self) -> PathBuf {
        self.root.join("user")
    }

    pub fn work(&self) -> PathBuf {
        self.program.work().to_owned()
    }

    pub fn outside(&self) -> PathBuf {
        self.root.join("outside")
    }

    pub fn key(&self) -> String {
        format!("sk-{}", self.words.key)
    }

    pub fn client(&self) -> Client {
        self.program.client()
    }

    /// A client's call; an error if the daemon does not answer in time, or refuses.
    pub fn ask<T>(
        &self,
        what: &str,
        question: impl Future<Output = std::result::Result<T, Error>>,
    ) -> Result<T> {
        let answer = async { tokio::time::timeout(TURN, question).await };
        match self.runtime.block_on(answer) {
            Ok(answer) => answer.map_err(|error| Stuck::Wrong(format!("{what}: {error}"))),
            Err(_) => Err(Stuck::TooLong(what.to_owned())),
        }
    }

    pub fn daemon_pid(&self) -> u32 {
        lock(&self.daemon).as_ref().map_or(0, DaemonProcess::pid)
    }

    pub fn bystander_pid(&self) -> u32 {
        lock(&self.bystander).id()
    }

    pub fn bystander_ended(&self) -> bool {
        !matches!(lock(&self.bystander).try_wait(), Ok(None))
    }

    pub fn daemon_ended(&self) -> bool {
        let mut daemon = lock(&self.daemon);
        daemon
            .as_mut()
            .is_none_or(|daemon| !matches!(daemon.try_wait(), Ok(None)))
    }

    /// A program with a completely specified environment, without a key.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        self.program.command_of(program)
    }

    /// The program, as the user types it.
    pub fn cli(&self, args: &[&str]) -> Result<Output> {
        let mut command = self.command("timeout");
        command.args(["-k", "1", "8"]).arg(self.program.path());
        command.envs(self.env()).args(args);
        Ok(command.output()?)
    }

    /// The variables of the user's shell.
    pub fn env(&self) -> BTreeMap<String, String> {
        self.env_with(&self.model.base_url(Format::Anthropic))
    }

    pub fn env_with(&self, base_url: &str) -> BTreeMap<String, String> {
        let mut env = self.program.caller_env(&self.key(), base_url);
        // Stands for the user's SSH agent.
        let agent = self.listeners.unix.display().to_string();
        env.insert("SSH_AUTH_SOCK".to_owned(), agent);
        env
    }

    pub fn start_daemon(&self) -> Result<()> {
        let daemon = DaemonProcess::start(&self.program, &self.runtime, Poll::new(POLL, START));
        let daemon = daemon.map_err(|error| Stuck::Wrong(error.to_string()))?;
        *lock(&self.daemon) = Some(daemon);
        Ok(())
    }

    /// Ends the daemon, and starts another one with the settings as they are now.
    pub fn restart_daemon(&self) -> Result<()> {
        drop(lock(&self.daemon).take());
        self.start_daemon()
    }

    /// A process of the user with the key in its environment, for as long as the testbed exists.
    pub fn long_command(&self) -> Result<u32> {
        self.agent("hostile")?;
        let mut cli = lock(&self.cli);
        if let Some(cli) = &*cli {
            return Ok(cli.id());
        }
        let mut command = self.program.command();
        command.envs(self.env()).args(["logs", "hostile", "-f"]);
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pid = child.id();
        *cli = Some(child);
        Ok(pid)
    }

    pub fn until<T>(
        &self,
        patience: Duration,
        what: &str,
        look: impl FnMut() -> Option<T>,
    ) -> Result<T> {
        Ok(Poll::new(POLL, patience).until(what, look)?)
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        drop(lock(&self.daemon).take());
        if let Some(mut cli) = lock(&self.cli).take() {
            let _gone = cli.kill();
            let _gone = cli.wait();
        }
        let mut bystander = lock(&self.bystander);
        let _gone = bystander.kill();
        let _gone = bystander.wait();
        end_all(&self.root);
    }
}

/// Ends all processes that have this directory in their arguments or environment.
pub fn end_all(root: &Path) {
    let root = root.display().to_string();
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    let named = |pid: u32, file: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(&root)
    };
    for pid in pids {
        if pid != own
            && (named(pid, "cmdline") || named(pid, "environ"))
            && let Ok(identity) = agentd_process::Identity::of(pid)
        {
            drop(agentd_process::signal(identity, Signal::KILL));
        }
    }
}
