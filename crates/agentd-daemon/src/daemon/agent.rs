//! What the daemon has in memory about one agent in use: its folded state, its process, and the clients that watch it.

use agentd_client::api::{Delta, Env};
use agentd_core::event::{Event, PlanSet};
use agentd_core::id::{AgentId, Incarnation, Seq};
use agentd_core::link::{self, Down};
use agentd_core::mcp::CallProgress;
use agentd_core::state::AgentState;
use agentd_core::supervise::{self, AfterExit, Exit, Situation, Starts};
use agentd_core::window::Window;
use agentd_process::Identity;
use agentd_store::Loaded;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, broadcast, mpsc, oneshot, watch};
use tokio::task::AbortHandle;

/// How many items are buffered for a slow reader. If it falls further behind, it misses the oldest ones; it still gets
/// the whole message when the reply ends, and the result of a call.
const LIVE: usize = 64;
/// Characters of the last answer that are shown.
const SUMMARY: usize = 200;

pub struct Agent {
    pub id: AgentId,
    /// The lock of the agent. It is held from reading the state until the append, so that no other append comes
    /// between.
    pub(super) inner: Mutex<Inner>,
    /// One purge at a time: the other lock is not held while a purge asks the agent's program to delete its sessions, and the
    /// files that the program uses for that must not be deleted meanwhile.
    pub purging: Mutex<()>,
    /// A counter that wakes the tasks that wait for a change of the agent.
    changes: watch::Sender<u64>,
    /// What is shown to the clients that watch, besides events.
    live: broadcast::Sender<Live>,
}

/// Something that the clients that watch are shown before an event says it.
#[derive(Clone, Debug)]
pub enum Live {
    /// A piece of a streaming reply. It is on disk.
    Delta(Delta),
    /// How far a call is. It is not kept.
    Progress(CallProgress),
}

pub struct Inner {
    /// The fold of the journal. Changed only by events that are committed, or by a reload.
    pub state: AgentState,
    /// The daemon's side of the link: which incarnation may write.
    pub link: link::Daemon,
    /// The connection to the runtime, if it is connected.
    pub down: Option<Connection>,
    /// The agent's process, also while it is being started.
    pub process: Option<Process>,
    pub starts: Starts,
    /// The variables for the next process.
    pub env: Arc<Env>,
    /// Keys that the runtime read from a file or a command. The runtime reports them, so that they are redacted.
    pub keys: Vec<String>,
    /// The variables that the newest process has. If they differ from `env`, the process is replaced.
    pub given: Option<Arc<Env>>,
    /// The same for the MCP servers that clients lend.
    pub given_lent: Option<String>,
    /// The digest of the secret that the newest process was given, if this daemon started it.
    pub proof: Option<String>,
    /// The newest append by a runtime: its incarnation and its number.
    pub appended: (Incarnation, u64),
    /// What the agent has said last, with the journal's head at that time. A cache: reading it needs the window.
    pub words: Option<(Seq, LastWords)>,
    /// A task is carrying out the reset. Set by the supervisor, cleared by the task.
    pub resetting: bool,
    /// A task is making an automatic reset. Set by the supervisor, cleared by the task.
    pub resetting_automatically: bool,
    /// A task is completing a restore of files. Set by the supervisor, cleared by the task.
    pub restoring: bool,
    /// A task is reporting the agent's end to its parent. Set by the supervisor, cleared by the task.
    pub reporting: bool,
    /// What a finished one-shot agent does not need was removed, or is being removed. Cleared when a process is started.
    pub tidied: bool,
    /// A verb wants a process even if the state does not need one. Cleared when a process is started, by a stop, by the
    /// idle timer, and for a held agent.
    pub wanted: bool,
    /// SessionStart hooks that are running, or that a restart is about to invoke. No process is started before they
    /// have ended.
    pub awaiting_hooks: u32,
    /// SessionStart hooks were invoked for the first conversation, or there were none.
    pub is_opened: bool,
    /// Committed events that the supervisor has yet to invoke hooks for.
    pub noticed: Vec<Event>,
    /// The timer that ends the process of an idle agent.
    pub idle_timer: Option<AbortHandle>,
    /// The state may differ from the journal: the next lock reloads it.
    pub(super) stale: bool,
}

/// The process that runs an agent.
#[derive(Debug)]
pub struct Process {
    /// None while it is being started.
    pub identity: Option<Identity>,
    /// When this daemon started it; none if an earlier daemon did.
    pub started: Option<Instant>,
    /// An earlier daemon started it.
    pub is_adopted: bool,
    /// It was told to end.
    pub is_stopping: bool,
    /// It runs another build of the program than this daemon starts. Set when it is greeted: it says its build.
    pub is_outdated: bool,
}

impl Process {
    /// A process that is about to be started.
    pub const fn starting() -> Self {
        Self {
            identity: None,
            started: None,
            is_adopted: false,
            is_stopping: false,
            is_outdated: false,
        }
    }

    /// The process of an earlier daemon.
    pub const fn adopted(identity: Identity) -> Self {
        Self {
            identity: Some(identity),
            is_adopted: true,
            ..Self::starting()
        }
    }
}

/// A connection to the runtime.
pub struct Connection {
    /// Distinguishes this connection from later ones of the same agent.
    pub number: u64,
    pub down: mpsc::UnboundedSender<Down>,
    /// Dropping it closes the connection. A runtime that still needs the daemon reconnects.
    pub _open: oneshot::Sender<()>,
    /// The runtime was told to begin no turn. Set when it is greeted, cleared by the supervisor.
    pub holds_turns: bool,
}

/// What the text of the current conversation says about the agent.
#[derive(Clone, Debug)]
pub struct LastWords {
    /// The beginning of the last answer.
    pub summary: String,
    pub plan: Option<PlanSet>,
}

impl LastWords {
    pub fn of(window: &Window) -> Self {
        Self {
            summary: window.last_text().chars().take(SUMMARY).collect(),
            plan: window.plan().cloned(),
        }
    }
}

impl Agent {
    /// An agent that is about to be created.
    pub fn new(id: AgentId, env: Arc<Env>) -> Self {
        Self {
            id,
            inner: Mutex::new(Inner {
                state: AgentState::new(id),
                link: link::Daemon::default(),
                down: None,
                process: None,
                starts: Starts::default(),
                env,
                keys: Vec::new(),
                given: None,
                given_lent: None,
                proof: None,
                appended: Default::default(),
                words: None,
                resetting: false,
                resetting_automatically: false,
                restoring: false,
                reporting: false,
                tidied: false,
                wanted: false,
                awaiting_hooks: 0,
                is_opened: false,
                noticed: Vec::new(),
                idle_timer: None,
                stale: false,
            }),
            purging: Mutex::default(),
            changes: watch::channel(0).0,
            live: broadcast::channel(LIVE).0,
        }
    }

    /// An agent from its journal.
    pub fn loaded(loaded: Loaded, env: Arc<Env>) -> Self {
        let mut agent = Self::new(loaded.state.id, env);
        let inner = agent.inner.get_mut();
        inner.words = Some((loaded.state.head, LastWords::of(&loaded.window)));
        inner.take_over(loaded);
        agent
    }

    /// Whether no process runs the agent and no task works on it: then the daemon may forget it.
    pub fn is_idle(&self) -> bool {
        let inner = self.inner.try_lock();
        inner.is_ok_and(|inner| {
            let is_idle = inner.process.is_none() && !inner.state.needs_process();
            let is_busy = inner.resetting || inner.reporting || inner.state.owes_report();
            let is_busy = is_busy || inner.restoring || inner.state.files.restoring.is_some();
            is_idle && !is_busy && inner.awaiting_hooks == 0
        })
    }

    pub fn live(&self) -> broadcast::Receiver<Live> {
        self.live.subscribe()
    }

    pub fn show(&self, live: Live) {
        // An error means that no client is watching.
        let _unwatched = self.live.send(live);
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Wakes the tasks that wait for a change of the agent.
    pub fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

impl Inner {
    /// Takes the state and the newest append from the journal.
    pub(super) fn take_over(&mut self, loaded: Loaded) {
        let source = loaded.source.map(|source| (source.incarnation, source.n));
        self.appended = source.unwrap_or_default();
        self.state = loaded.state;
    }

    /// The process has exited: counts that, and returns what follows.
    pub fn exited(&mut self, exit: Exit, lived: Option<Duration>) -> AfterExit {
        supervise::exited(&self.state, &mut self.starts, exit, lived)
    }

    /// What core needs for its decisions besides the folded state.
    pub fn situation(&self, is_ending: bool) -> Situation {
        Situation {
            process: match &self.process {
                None => supervise::Process::Absent,
                Some(process) if process.is_stopping => supervise::Process::Stopping,
                Some(process) if process.identity.is_none() => supervise::Process::Starting,
                Some(_) => supervise::Process::Running,
            },
            is_connected: self.down.is_some(),
            wanted: self.wanted,
            awaits_hooks: self.awaiting_hooks > 0,
            has_new_env: self.given.as_ref() != Some(&self.env),
            resetting: self.resetting,
            resetting_automatically: self.resetting_automatically,
            restoring: self.restoring,
            reporting: self.reporting,
            has_idle_timer: self.idle_timer.is_some(),
            is_ending,
            // The daemon adds it: the limits are those of the whole home.
            is_held_back: false,
            holds_turns: self.down.as_ref().is_some_and(|it| it.holds_turns),
            is_outdated: self.process.as_ref().is_some_and(|it| it.is_outdated),
            starts: self.starts,
        }
    }
}
