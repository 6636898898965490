//! The state that all parts of the daemon share.
//!
//! - `agent`: what is in memory about one agent; `agents`: all that are in use.
//! - `agent_handle`: an agent together with its daemon; everything that is written to its journal goes through it.
//! - `find`: agents by name. `live_settings`: what a reload replaces. `admission`: which turns run, and which wait.
//! - `deliveries`: how the destinations of messages are doing; `failing_backup`: why a scheduled backup was not made.
//! - `invocations`: the hook invocations in progress; `prompts`: the positions of recent prompts in their journals;
//!   `tool_sockets`: the tasks that serve the agents' tools.

mod admission;
mod agent;
mod agent_handle;
mod agents;
pub mod deliveries;
mod failing_backup;
mod find;
pub mod invocations;
mod live_settings;
mod prompts;
mod tool_sockets;
mod watched_commands;

pub use admission::{Known as KnownLimits, disk};
pub use agent::{Agent, Connection, LastWords, Live, Process};
pub use agent_handle::{AgentGuard, AgentHandle};

use crate::bindings::Bindings;
use crate::claims::Claims;
use crate::clock;
use crate::confine;
use crate::ending::Ending;
use crate::envs::Envs;
use crate::home::Home;
use crate::layout::Layout;
use crate::lent::Lent;
use crate::secrets;
use crate::service::WithoutScopes;
use crate::settings::{Reload, ScheduledBackups, Settings};
use crate::stop_mark::StopMark;
use crate::transcript::Transcripts;
use admission::Admission;
use agentd_client::api::Env;
use agentd_core::catalog::{AtStart, Catalog, NotifySettings};
use agentd_core::id::{AgentId, BootId, PromptId, Seq};
use agentd_core::secrets::Secrets;
use agentd_core::time::Timestamp;
use agentd_process::Identity;
use agentd_store::Store;
use agents::Agents;
use deliveries::Deliveries;
use failing_backup::FailingBackup;
use invocations::Invocations;
use live_settings::{Current, LiveSettings};
use prompts::Prompts;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::{Notify, watch};
use tool_sockets::ToolSockets;
use watched_commands::WatchedCommands;

/// Starts and ends processes and tasks so that they match what the journals say. Implemented by the supervisor. It is a
/// trait because its callers may not import the supervisor: `lib.rs` lists that module after theirs.
pub trait Supervise: Send + Sync {
    /// Starts, ends or schedules what the agent's state needs.
    fn reconcile(&self, guard: &mut AgentGuard<'_>);

    /// Watches a process that runs the agent, unless it is watched already.
    fn adopt(&self, guard: &mut AgentGuard<'_>, process: Identity);

    /// Asks a process without a connection to end.
    fn terminate(&self, process: Identity);
}

pub struct Daemon {
    pub layout: Layout,
    pub home: Home,
    /// The id of the machine's current boot, as this home records it; see [`crate::home::boot_of`].
    pub boot: BootId,
    pub store: Arc<dyn Store>,
    pub transcripts: Transcripts,
    pub hooks: Invocations,
    pub commands: WatchedCommands,
    supervisor: Box<dyn Supervise>,
    pub started_at: Timestamp,
    /// The build of the processes that this daemon starts. None if they run another program than the daemon itself.
    pub build: Option<String>,
    pub runtime_env: Vec<(OsString, OsString)>,
    pub desktop_env: Vec<(OsString, OsString)>,
    /// Why agents run without scopes.
    pub without_scopes: Arc<WithoutScopes>,
    /// The outside addresses that are bound to agents.
    pub bindings: Bindings,
    pub deliveries: Deliveries,
    /// The directory with the mark of a running daemon, which is removed also if the home was moved meanwhile.
    pub running_mark: OnceLock<File>,
    pub tool_sockets: ToolSockets,
    pub envs: Envs,
    /// The MCP servers that clients lend.
    pub lent: Lent,
    /// Serializes reading and changing the file of stored secrets.
    pub secret_file: tokio::sync::Mutex<()>,
    /// Serializes changes of the list of trusted files.
    pub trusted_file: tokio::sync::Mutex<()>,
    /// Held while a backup is made: one at a time.
    pub backing_up: tokio::sync::Mutex<()>,
    /// The backups that the daemon makes by itself.
    pub backups: Option<ScheduledBackups>,
    /// Why the last of them could not be made. Set by the task that makes them.
    pub failing_backup: FailingBackup,
    /// `[notify]` when the daemon started: each of its destinations has a task. A reload does not change it.
    pub notify: NotifySettings,
    /// Compared with the settings after a reload.
    at_start: AtStart,
    settings: LiveSettings,
    reload: Reload,
    pub admission: Admission,
    claims: Claims,
    agents: Agents,
    prompts: Prompts,
    /// How far the shutdown of the daemon has come. Changed by signals, by `daemon stop` and when the home is lost.
    ending: watch::Sender<Ending>,
    /// Set when a client stops this daemon; the file tells clients not to start another daemon.
    stop_mark: Mutex<Option<StopMark>>,
    /// Notified when an agent with `auto_reset.idle_ms` changes: the time of the next idle reset may have changed.
    pub silences: Notify,
    /// Notified when an agent with schedules changes: the next due time may have changed.
    pub schedules: Notify,
}

/// The state directory was deleted or replaced.
#[derive(Clone, Copy, Debug)]
pub struct HomeLost;

/// How far a stop that a client requested has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    Accepted,
    /// The agents' processes have ended.
    Complete,
}

impl Daemon {
    pub fn new(
        layout: Layout,
        home: Home,
        boot: BootId,
        store: Arc<dyn Store>,
        transcripts: Transcripts,
        settings: Settings,
        supervisor: Box<dyn Supervise>,
    ) -> Self {
        let owner = format!("daemon {}", clock::new_id());
        let stored = secrets::read(&layout).unwrap_or_else(|error| {
            tracing::error!(%error, "stored secrets not loaded");
            secrets::Stored::new()
        });
        let bindings = Bindings::read(&layout);
        let read_only = home.suspicion.as_ref().map(ToString::to_string);
        let of_program = agentd_process::build_of(&settings.program);
        Self {
            claims: Claims::new(Arc::clone(&store), owner, read_only),
            layout,
            home,
            boot,
            store,
            transcripts,
            hooks: Invocations::default(),
            commands: WatchedCommands::default(),
            supervisor,
            started_at: clock::now(),
            build: of_program.filter(|build| Some(build) == agentd_process::own_build().as_ref()),
            runtime_env: settings.runtime_env,
            desktop_env: settings.desktop_env,
            without_scopes: settings.service.without_scopes,
            bindings,
            deliveries: Deliveries::default(),
            running_mark: OnceLock::new(),
            tool_sockets: ToolSockets::default(),
            envs: Envs::new(settings.env, secrets::values(&stored)),
            lent: Lent::default(),
            secret_file: tokio::sync::Mutex::default(),
            trusted_file: tokio::sync::Mutex::default(),
            backing_up: tokio::sync::Mutex::default(),
            backups: settings.backups,
            failing_backup: FailingBackup::default(),
            notify: settings.catalog.notify().clone(),
            at_start: AtStart::of(&settings.catalog),
            settings: LiveSettings::new(Current::of(settings.catalog)),
            reload: settings.reload,
            admission: Admission::default(),
            agents: Agents::default(),
            prompts: Prompts::default(),
            ending: watch::channel(Ending::No).0,
            stop_mark: Mutex::default(),
            silences: Notify::new(),
            schedules: Notify::new(),
        }
    }

    pub fn end(&self, ending: Ending) {
        self.ending.send_modify(|known| *known = ending.max(*known));
    }

    /// Chooses how the daemon ends, and returns the choice that is in effect. The first choice is final, because
    /// clients may have been told about it.
    pub fn choose_end(&self, way: Ending) -> Ending {
        let mut chosen = way;
        self.ending.send_if_modified(|known| {
            let is_first = *known == Ending::No;
            if is_first {
                *known = way;
            }
            chosen = *known;
            is_first
        });
        chosen
    }

    /// Whether nothing may be changed: the home is a suspected copy.
    pub const fn is_read_only(&self) -> bool {
        self.home.suspicion.is_some()
    }

    /// Checks that the home still exists. If it does not, the daemon and the agents' processes end, because nothing
    /// that they write could be found again.
    pub fn check_home(&self) -> std::result::Result<(), HomeLost> {
        if self.home.is_there() {
            return Ok(());
        }
        if !self.is_ending() {
            tracing::error!(home = %self.layout.home().display(), "state directory is lost");
        }
        self.choose_end(Ending::Stops);
        Err(HomeLost)
    }

    /// Writes the stop mark. Clients that are already running read it and start no other daemon.
    pub fn mark_stopped(&self, stopped: Stopped) {
        let mut known = self
            .stop_mark
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mark = known.get_or_insert_with(|| StopMark {
            id: clock::new_id(),
            pid: std::process::id(),
            complete: false,
        });
        mark.complete |= stopped == Stopped::Complete;
        if let Err(error) = mark.write(&self.layout) {
            tracing::error!(%error, "stop mark not written: clients may start another daemon");
        }
    }

    pub fn ending(&self) -> watch::Receiver<Ending> {
        self.ending.subscribe()
    }

    pub fn is_ending(&self) -> bool {
        *self.ending.borrow() != Ending::No
    }

    /// The sandbox level of agents whose settings name none, as runtimes find it in their environment.
    pub fn default_level(&self) -> Option<String> {
        let mut env = self.runtime_env.iter();
        let (_, level) = env.find(|(name, _)| name == confine::VARIABLE)?;
        level.to_str().map(str::to_owned)
    }

    /// The settings that are in effect now.
    pub fn settings(&self) -> Arc<Current> {
        self.settings.get()
    }

    /// The settings that were changed, and take effect when the daemon starts again.
    pub fn needs_restart(&self) -> Vec<&'static str> {
        self.at_start.changed(&self.settings().catalog)
    }

    /// The user's settings as they are in their file now. Blocks.
    pub fn read_catalog(&self) -> std::result::Result<Catalog, String> {
        (self.reload)()
    }

    /// Reads the user's settings again. If they have an error, those in effect stay. Blocks.
    pub fn reload_settings(&self) -> std::result::Result<(), String> {
        let current = Current::of(self.read_catalog()?);
        self.settings.replace(current);
        self.admission.opened.notify_one();
        Ok(())
    }

    /// The secrets in these variables, and those that the user stored.
    fn secrets_in(&self, env: &Env) -> Secrets {
        Secrets::of_env(env, &self.settings().key_names).and(self.envs.secret_values())
    }

    /// The names of the variables of an agent that are keys of providers or come from the stored secrets.
    pub fn secret_names(&self, agent: AgentId) -> BTreeSet<String> {
        let mut names = self.envs.stored(agent);
        names.extend(self.settings().key_names.iter().cloned());
        names
    }

    /// The secrets for work that belongs to no agent.
    pub fn own_secrets(&self) -> Secrets {
        self.secrets_in(&self.envs.own())
    }

    pub fn remember(&self, prompt: PromptId, seq: Seq) {
        self.prompts.remember(prompt, seq);
    }

    /// The position where a prompt was accepted, or the beginning of the journal if it is not remembered.
    pub fn position_of(&self, prompt: PromptId) -> Seq {
        self.prompts.position(prompt)
    }
}
