//! The agent's tools, and the rules that decide which calls may run.
//!
//! - [`Toolbox`]: the tools of one agent, as the driver calls them.
//! - `tool`: the trait of a tool. Each tool has a file with its name.
//! - `context`: what all tools share.
//! - `file_work`: what the file tools do with files, in a process of its own: [`file_server`].
//! - [`client_files`]: the files of the program of an outer agent, in its own process.
//!
//! Text that a tool returns or stores is redacted with agentd's own [`Secrets`] and capped at the output limit.
//! Only `agentd-process` starts processes.

mod agent;
mod apply_patch;
mod arguments;
mod blocking;
mod chosen;
pub mod client_files;
mod contents;
mod context;
mod denied;
mod edit_file;
mod ended_tasks;
mod error;
mod escalate;
mod failure;
mod fetch_url;
mod file_history;
mod file_process;
pub mod file_server;
mod file_work;
mod grant;
mod hash;
mod ignored;
mod kept;
mod known_content;
mod lines;
mod list_files;
mod mcp;
mod named_files;
mod opened;
mod output;
mod paths;
mod read_file;
mod recall;
mod replace;
mod replaced;
mod reset_conversation;
mod restores;
mod scan;
mod scans;
mod search_files;
mod shell;
mod spans;
mod task_output;
mod task_stop;
mod tasks;
mod tool;
mod traits;
mod update_plan;
mod walk;
mod write_file;

#[cfg(test)]
mod tests;

pub use agent::Kinds;
pub use agentd_core::secrets::{MARK, Secrets};
pub use error::Error;
pub use grant::{Service, Services};
pub use traits::Traits;

use crate::driver::{ToolNews, Tools};
use crate::instructions::InstructionFiles;
use crate::link::Asking;
use crate::mcp::Servers;
use agentd_core::catalog::ToolForms;
use agentd_core::event::{Body, Scan, TaskExit};
use agentd_core::id::{BootId, ConversationId, TaskId, TurnId};
use agentd_core::mcp::{PREFIX, Seen, Server as McpServer};
use agentd_core::message::{Block, CallOutcome, ToolCall};
use agentd_core::recover::CallFact;
use agentd_core::spec::{ApprovalMode, Rule};
use agentd_core::state::{AgentState, ScanSince, StartedCall};
use agentd_core::system_prompt::{Present, ToldFiles};
use agentd_core::turn::{Consent, Finished, Prepared};
use agentd_core::window::{SeenFiles, Window};
use agentd_failpoint as failpoint;
use agentd_process::task::{Confined, Limits, ShimProgram};
use async_trait::async_trait;
use blocking::Cancelled;
use chosen::{all, check, is_wanted, names};
use context::ToolContext;
use failure::{Failure, said};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tool::{AnyTool, Tool as _, Work};

/// How long a request waits for the instruction files, which may be on a file system that does not answer.
const READING: Duration = Duration::from_secs(2);

/// The tools of one agent, and what they work with.
#[derive(Clone, Debug)]
pub struct ToolboxOptions {
    /// Where the agent works; an absolute path.
    pub cwd: PathBuf,
    /// For tasks (`tasks/<id>/`) and long outputs (`outputs/<call>.txt`); created with mode 0700.
    pub state: PathBuf,
    /// The whole environment of the tools' processes.
    pub env: BTreeMap<String, String>,
    /// What tools may see, write and reach; `None` means no sandbox: they may do what their user may do.
    pub confined: Option<Confined>,
    pub rules: Vec<Rule>,
    /// When the user is asked about a call that no rule matches.
    pub approval: ApprovalMode,
    /// What one call may see, write and reach that the user approved when calls did not say yet what they need.
    pub escalated: Option<Confined>,
    /// The user's services, for calls that the user approves to use one.
    pub services: Services,
    /// The names of the tools; `None` means all except `fetch_url`, and `agent` only if there are kinds of
    /// subagents. See `chosen` for the tools that change files.
    pub tools: Option<Vec<String>>,
    /// The forms of tools that the model was trained on.
    pub forms: ToolForms,
    /// Whether the agent may have `reset_conversation`. The daemon carries out the reset; without a daemon there is
    /// no such tool.
    pub may_reset: bool,
    /// How much of one output the model sees, in bytes.
    pub output_bytes: usize,
    /// How much output of one command is kept on disk, in bytes.
    pub kept_bytes: u64,
    /// How much output of all commands and calls together is kept on disk, in bytes.
    pub kept_quota: u64,
    /// How much of what files were before calls changed them is kept in the journal, in bytes; 0 keeps nothing.
    pub file_history_bytes: u64,
    /// How many background tasks may run at the same time.
    pub max_tasks: usize,
    /// The limits that the operating system enforces on each command.
    pub task_limits: Limits,
    pub secrets: Secrets,
    pub shim: ShimProgram,
    /// The lab's directory, if this process runs in the lab. The shims of its tasks then do so too.
    pub lab: Option<PathBuf>,
    /// The boot of the machine in which this process runs.
    pub boot: BootId,
    /// The kinds of subagents that it may start; `None` if it may not start any.
    pub subagents: Option<Kinds>,
    /// The connection to the daemon, if there is one.
    pub asking: Option<Asking>,
    /// The instruction files; none if the agent is to have none.
    pub instructions: Option<Arc<InstructionFiles>>,
    /// The MCP servers whose tools the agent has, besides its own.
    pub mcp: Vec<McpServer>,
}

/// The tools of one agent, under its rules.
pub struct Toolbox {
    context: Arc<ToolContext>,
    /// In a fixed order: the list is part of every request.
    tools: Vec<Box<dyn AnyTool>>,
    kinds: Option<Kinds>,
    instructions: Option<Arc<InstructionFiles>>,
    servers: Servers,
}

impl Toolbox {
    pub fn new(options: ToolboxOptions) -> Result<Self, Error> {
        for path in [&options.cwd, &options.state] {
            if !path.is_absolute() {
                return Err(Error::BadDirectory { path: path.clone() });
            }
        }
        let kinds = options.subagents.clone();
        let instructions = options.instructions.clone();
        let servers = Servers::new(options.mcp.clone(), mcp::options(&options));
        let mut tools = all(kinds.as_ref(), options.forms);
        let reset = reset_conversation::ResetConversation::NAME;
        tools.retain(|tool| tool.name() != reset || options.may_reset);
        if let Some(names) = &options.tools {
            check(names, &tools)?;
        }
        tools.retain(|tool| is_wanted(tool.name(), &options));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&options.state)
            .map_err(|source| Error::CannotMake {
                path: options.state.clone(),
                source,
            })?;
        Ok(Self {
            context: Arc::new(ToolContext::new(options)),
            tools,
            kinds,
            instructions,
            servers,
        })
    }

    /// The tools as they are declared to the model.
    pub fn declarations(&self) -> Vec<agentd_core::event::Tool> {
        self.tools.iter().map(|tool| tool.declaration()).collect()
    }

    /// The MCP servers, as the turn machine knows them.
    pub fn mcp(&self) -> Vec<agentd_core::mcp::Known> {
        self.servers.known()
    }

    /// The names of the tools whose calls may run in parallel.
    pub fn parallel(&self) -> BTreeSet<String> {
        let parallel = self.tools.iter().filter(|tool| tool.traits().parallel);
        parallel.map(|tool| tool.name().to_owned()).collect()
    }

    /// The traits of a tool; `None` if there is no such tool.
    pub fn traits(&self, name: &str) -> Option<Traits> {
        Some(self.tool(name)?.traits())
    }

    fn tool(&self, name: &str) -> Option<&dyn AnyTool> {
        let found = self.tools.iter().find(|tool| tool.name() == name);
        found.map(AsRef::as_ref)
    }

    fn no_such_tool(&self, name: &str) -> Failure {
        Failure::new(format!(
            "Unknown tool `{name}`. Available tools: {}.",
            names(&self.tools)
        ))
    }

    fn work(&self, call: ToolCall, started: StartedCall) -> Work {
        Work {
            context: Arc::clone(&self.context),
            call,
            started,
        }
    }

    /// Redacts secrets in a tool's result.
    fn clean(&self, mut finished: Finished) -> Finished {
        self.context.redact(&mut finished.blocks);
        finished
    }
}

#[async_trait]
impl Tools for Toolbox {
    fn is_confined(&self) -> bool {
        self.context.is_confined()
    }

    fn never_asks(&self) -> bool {
        self.context.never_asks()
    }

    fn in_turn(&self, conversation: Option<ConversationId>, turn: TurnId) {
        self.context.enter_turn(conversation, turn);
    }

    fn recall(&self, window: &Window) {
        recall::recall(&self.context.contents, &self.context.scans, window);
        self.servers.recall(window.mcp_lists());
    }

    fn resumes_commands(&self) {
        self.context.scans.set_before(None);
    }

    fn recorded(&self, body: &Body) {
        self.context.recorded(body);
    }

    fn tidy(&self, agent: &AgentState) {
        self.context.ended_tasks.tidy(|| agent.open_tasks());
    }

    async fn prepare(&self, call: &ToolCall, consent: Consent, seen: &SeenFiles) -> Prepared {
        let prepared = match self.tool(&call.name) {
            Some(tool) => tool.prepare(&self.context, call, consent, seen).await,
            None if call.name.starts_with(PREFIX) => {
                mcp::prepare(&self.servers, &self.context, call, consent)
            }
            None => self.no_such_tool(&call.name).into(),
        };
        match prepared {
            Prepared::Refuse {
                outcome,
                mut blocks,
            } => {
                self.context.redact(&mut blocks);
                Prepared::Refuse { outcome, blocks }
            }
            other => other,
        }
    }

    async fn run(
        &self,
        call: ToolCall,
        started: StartedCall,
        cancelled: watch::Receiver<bool>,
    ) -> Finished {
        let cancelled = Cancelled::new(cancelled);
        if let Some(instructions) = &self.instructions {
            let named = paths::named_by(&self.context.cwd, &call);
            named.iter().for_each(|path| instructions.touch(path));
        }
        self.clean(match self.tool(&call.name) {
            Some(tool) => tool.run(self.work(call, started), cancelled).await,
            None if call.name.starts_with(PREFIX) => {
                mcp::run(&self.servers, &self.context, call, cancelled).await
            }
            None => self.no_such_tool(&call.name).into(),
        })
    }

    async fn find(&self, call: &ToolCall, started: &StartedCall) -> CallFact {
        // The agent may have had other tools when the call was started.
        let every = all(self.kinds.as_ref(), ToolForms::default());
        let tool = every.iter().find(|tool| tool.name() == call.name);
        let Some(tool) = tool else {
            return mcp::find(&self.servers, call);
        };
        if failpoint::injected_bug("tool_run_again") {
            let task = Some(TaskId::new(uuid::Uuid::now_v7()));
            let again = StartedCall {
                task,
                ..started.clone()
            };
            let (_never, cancelled) = watch::channel(false);
            return CallFact::Ended(self.run(call.clone(), again, cancelled).await);
        }
        match tool.find(self.work(call.clone(), started.clone())).await {
            CallFact::Ended(finished) => CallFact::Ended(self.clean(finished)),
            other => other,
        }
    }

    async fn resume(
        &self,
        call: ToolCall,
        started: StartedCall,
        cancelled: watch::Receiver<bool>,
    ) -> Finished {
        let every = all(self.kinds.as_ref(), ToolForms::default());
        let tool = every.iter().find(|tool| tool.name() == call.name);
        let Some(tool) = tool else {
            return said(CallOutcome::Unknown, self.no_such_tool(&call.name).text());
        };
        let cancelled = Cancelled::new(cancelled);
        self.clean(tool.resume(self.work(call, started), cancelled).await)
    }

    async fn instructions(&self, told: ToldFiles) -> Option<Present> {
        let Some(instructions) = self.instructions.clone() else {
            return Some(Present::default());
        };
        let read = tokio::task::spawn_blocking(move || instructions.present(&told));
        let read = tokio::time::timeout(READING, read).await;
        read.ok().and_then(Result::ok)
    }

    fn news(&self) -> Option<mpsc::UnboundedReceiver<ToolNews>> {
        self.servers.news()
    }

    async fn list_mcp(&self, unknown: Vec<String>) -> Vec<Seen> {
        self.servers.list(&unknown).await
    }

    async fn scan(&self, since: ScanSince) -> Scan {
        scan::scan(&self.context, since).await
    }

    async fn task_ended(&self, task: TaskId, boot: BootId) -> (TaskExit, String) {
        let (exit, text) = tasks::until_ended(&self.context, task, boot).await;
        let mut blocks = [Block::text(text)];
        self.context.redact(&mut blocks);
        let [block] = blocks;
        match block {
            Block::Text { text } => (exit, text),
            _ => (exit, String::new()),
        }
    }

    async fn close(&self) {
        self.servers.close().await;
        self.context.files.close().await;
    }
}
