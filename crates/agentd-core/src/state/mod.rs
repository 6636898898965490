//! The first fold: everything about an agent except its text.
//!
//! It reads only structural events, one at a time, and never looks back. So it can be rebuilt from any snapshot and
//! the events after it, and a purge does not change it. It is total: an event that refers to something that does not
//! exist only increases [`AgentState::anomalies`].

mod auto_reset;
mod changes;
mod commands;
mod compactions;
mod files;
mod held;
mod hooks;
mod inbox;
mod near_limits;
mod ops;
mod phase;
mod process;
mod reset;
mod schedules;
mod spending;
mod subagents;
mod tasks;
mod tree;
mod turn;

pub use changes::Changes;
pub use commands::{Commands, RunningCommand};
pub use compactions::{CompactionOutcome, Compactions};
pub use files::{Background, Files, Restore, ScanSince, Unscanned};
pub use held::{Held, Hold};
pub use hooks::{Hooks, InvocationState, Run};
pub use inbox::{Inbox, Queued};
pub use near_limits::NearLimits;
pub use ops::{Made, Ops};
pub use phase::Phase;
pub use reset::{Outcome, Reset, Resets};
pub use schedules::{LastFiring, Schedule, ScheduleWaits, Schedules};
pub use spending::Spending;
pub use subagents::{Child, Children, EndedChild, ParentLink};
pub use tasks::{Approval, Approvals, EndedTask, Task, Tasks};
pub use tree::{Conversation, Lineage, Segment, Tree};
pub use turn::{EndedTurn, InFlight, StartedCall, Turn};

use crate::event::{Body, Event, FailCause, Kind, Mode, PausedBecause, SubagentOutcome};
use crate::id::{AgentId, Incarnation, Seq};
use crate::spec::AgentSpec;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Raised whenever the same events would fold to a different state. Older snapshots are then ignored.
pub const FOLD_VERSION: u32 = 18;

/// What the holder of a window must do after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Continue with the same window.
    Same,
    /// The pointer moved: load the window of the current conversation.
    PointerMoved,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    pub id: AgentId,
    /// The last event folded.
    pub head: Seq,
    pub name: String,
    pub aliases: Vec<String>,
    pub mode: Mode,
    pub spec: Box<AgentSpec>,
    pub created_at: Timestamp,
    /// The time of the newest event.
    pub updated_at: Timestamp,
    /// The time of the newest event that is about its work: a start or an end of its process is not.
    pub used_at: Timestamp,
    pub archived: bool,
    /// It should not run, even if there is work.
    pub stopped: bool,
    /// Why its process is not restarted until a user starts the agent.
    pub failed: Option<FailCause>,
    /// Whether the user must release it first.
    #[serde(default)]
    pub hold: Hold,
    pub incarnation: Incarnation,
    /// The newest incarnation has exited by itself.
    pub at_rest: bool,
    pub resets: Resets,
    pub hooks: Hooks,
    pub tree: Tree,
    pub inbox: Inbox,
    pub turn: Option<Turn>,
    pub last_turn: Option<EndedTurn>,
    pub tasks: Tasks,
    pub approvals: Approvals,
    #[serde(default)]
    pub commands: Commands,
    #[serde(default)]
    pub children: Children,
    /// Its task, if it is a subagent.
    #[serde(default)]
    pub parent_link: Option<ParentLink>,
    #[serde(default)]
    pub compactions: Compactions,
    #[serde(default)]
    pub files: Files,
    #[serde(default)]
    pub schedules: Schedules,
    #[serde(default)]
    pub ops: Ops,
    pub spending: Spending,
    /// The budgets of which most is used.
    pub near_limits: NearLimits,
    /// The last events that may end a binding.
    pub changes: Changes,
    /// The last event that holds it, or zero: the events before come from another installation.
    pub foreign_through: Seq,
    /// Events that referred to something that does not exist. Zero for every journal that agentd writes; `verify`
    /// reports it.
    pub anomalies: u64,
}

impl AgentState {
    /// An agent before its first event.
    pub fn new(id: AgentId) -> Self {
        Self {
            id,
            head: Seq::ZERO,
            name: String::new(),
            aliases: Vec::new(),
            mode: Mode::Persistent,
            spec: Box::default(),
            created_at: Timestamp::default(),
            updated_at: Timestamp::default(),
            used_at: Timestamp::default(),
            archived: false,
            stopped: false,
            failed: None,
            hold: Hold::No,
            incarnation: Incarnation::default(),
            at_rest: true,
            resets: Resets::default(),
            hooks: Hooks::default(),
            tree: Tree::default(),
            inbox: Inbox::default(),
            turn: None,
            last_turn: None,
            tasks: Tasks::default(),
            approvals: Approvals::default(),
            commands: Commands::default(),
            children: Children::default(),
            parent_link: None,
            compactions: Compactions::default(),
            files: Files::default(),
            schedules: Schedules::default(),
            ops: Ops::default(),
            spending: Spending::default(),
            near_limits: NearLimits::default(),
            changes: Changes::default(),
            foreign_through: Seq::ZERO,
            anomalies: 0,
        }
    }

    /// Folds one more event.
    pub fn apply(&mut self, event: &Event) -> Applied {
        self.head = event.seq;
        self.updated_at = event.at;
        if event.body.kind().is_use() {
            self.used_at = event.at;
        }
        self.tree.touch(event.conversation, event.seq);
        let current = self.tree.current();
        let known = self.fold(event);
        self.changes.note(event);
        self.keep_turn_clock(event.at);
        if !known {
            self.anomalies = self.anomalies.saturating_add(1);
        }
        if self.tree.current() == current {
            Applied::Same
        } else {
            Applied::PointerMoved
        }
    }

    /// How often the pointer has moved. Compare-and-swap uses it.
    pub fn generation(&self) -> u64 {
        self.tree.generation()
    }

    /// Returns false if the event refers to something that does not exist.
    fn fold(&mut self, event: &Event) -> bool {
        match &event.body {
            Body::AgentCreated(body) => {
                self.name.clone_from(&body.name);
                self.mode = body.mode;
                self.created_at = event.at;
                true
            }
            Body::SpecSet(body) => {
                self.spec.clone_from(&body.spec);
                true
            }
            Body::AgentRenamed(body) => self.rename(&body.name),
            // The origin of the earlier events does not change the state, nor does the way of an answer.
            Body::AgentImported(_) | Body::Quarantined(_) | Body::PromptRouted(_) => true,
            Body::AgentArchived(_) => {
                self.archived = true;
                self.end_parent_link(SubagentOutcome::Deleted);
                self.compactions.drop_asked();
                self.schedules.pause_all(PausedBecause::Archived);
                true
            }
            Body::AgentRestored(_) => {
                self.archived = false;
                true
            }
            Body::AgentStarted(_) => self.start(),
            Body::AgentHeld(body) => self.begin_hold(event, body),
            Body::AgentReleased(body) => self.release(body),
            Body::AgentStopped(_) => {
                self.stopped = true;
                self.hold.stop();
                self.parent_link_stopped();
                if self.turn.is_none() {
                    self.compactions.drop_asked();
                }
                true
            }
            Body::AgentFailed(body) => {
                self.failed = Some(body.cause);
                self.end_parent_link(SubagentOutcome::Failed);
                self.compactions.drop_asked();
                true
            }
            Body::IncarnationEnded(body) => self.end_incarnation(body),
            Body::IncarnationBegan(body) => self.begin_incarnation(body),

            Body::ConversationBegan(body) => {
                self.tasks.carried_into(event.conversation);
                let is_known = self.tree.begin(event, body);
                let (new, at) = (event.conversation, event.seq);
                let lineage = self.tree.lineage(self.id, new, at);
                self.tasks.branched(event, &lineage.segments);
                is_known
            }
            Body::ConversationSealed(body) => self.tree.seal(event, body),
            Body::PointerMoved(body) => {
                self.tasks.told(event, body.to);
                let after = self.last_turn.as_ref().map(|turn| turn.id);
                let is_known = self.tree.move_pointer(body);
                if is_known && !self.spec.auto_reset.is_off() {
                    self.resets.refuse(event, after);
                }
                is_known
            }
            Body::CheckpointSet(body) => self.tree.label(event, body),
            Body::ResetBegan(body) => self.resets.begin(event, body),
            Body::ResetStepped(body) => self.step_reset(event, body),
            Body::ResetScheduled(_) => {
                self.resets.schedule(event);
                true
            }
            Body::ResetWithdrawn(body) => {
                let after = self.last_turn.as_ref().map(|turn| turn.id);
                self.resets.withdraw(event, body, after)
            }
            Body::ResetEnded(body) => self.resets.end(event, body),
            Body::CompactionAsked(body) => self.compactions.ask(body.op),
            Body::Compacted(_) => {
                if let Some(turn) = &mut self.turn {
                    turn.compacted = true;
                    turn.compaction_is_new = true;
                }
                self.tree.compacted(event.conversation)
            }
            Body::Purged(body) => self.purge(body),

            Body::PromptQueued(body) => {
                self.tree.used(event.conversation);
                self.inbox.queue(event, body);
                true
            }
            Body::PromptsTaken(body) => self.take_prompts(body),
            Body::PromptsSetAside(body) => {
                self.tree.used(event.conversation);
                self.parent_link_set_aside(&body.prompts);
                self.inbox.set_aside(&body.prompts)
            }
            Body::PromptsRequeued(body) => self.inbox.requeue(&body.prompts),
            Body::PromptBlocked(body) => {
                self.parent_link_blocked(&[body.prompt]);
                self.inbox.take(&[body.prompt])
            }
            Body::PromptEdited(body) => self.inbox.edit(body.prompt),
            Body::PromptMoved(body) => self.inbox.move_prompt(body.prompt, body.before),
            Body::PromptsRemoved(body) => {
                self.parent_link_blocked(&body.prompts);
                self.inbox.remove(&body.prompts)
            }

            Body::TurnStarted(body) => {
                self.ops.turn_continued();
                self.start_turn(event, body)
            }
            Body::TurnEnded(body) => {
                self.ops.turn_continued();
                self.end_turn(event, body)
            }
            Body::TurnPaused(body) => self.in_turn(event, |turn| turn.paused = Some(body.reason)),
            Body::TurnContinued(_) => {
                self.ops.turn_continued();
                self.in_turn(event, Turn::continued)
            }
            Body::RequestSent(body) => self.in_turn(event, |turn| turn.request_sent(body)),
            Body::RequestEnded(body) => self.end_request(event, body),

            Body::ToolStarted(body) => self.start_tool(event, body),
            Body::ToolEnded(body) => {
                self.approvals.withdraw_for(&body.call);
                self.in_turn(event, |turn| turn.tool_ended(body))
            }
            Body::TaskStarted(body) => {
                self.tasks.start(event, body);
                true
            }
            Body::TaskEnded(body) => self.tasks.end(event, body),
            Body::CommandStarted(body) => {
                self.tree.used(event.conversation);
                self.commands.start(event, body)
            }
            Body::CommandEnded(body) => self.commands.end(body),
            Body::SubagentStarted(body) => self.children.start(event, body),
            Body::SubagentEnded(body) => self.children.end(event, body),
            Body::SubagentOf(body) => self.begin_parent_link(body),
            Body::ParentTold(_) => self.report_made(),
            Body::ApprovalRequested(body) => self.approvals.request(event, body),
            Body::ApprovalAnswered(body) => self.approvals.answer(body),
            Body::ApprovalWithdrawn(body) => self.approvals.withdraw(body.approval),

            Body::HookStarted(body) => {
                self.hooks.start(event, body);
                true
            }
            Body::HookEnded(body) => self.end_hook(event, body),
            Body::Operation(body) => {
                self.ops.record(event, body, self.incarnation);
                true
            }
            Body::ScheduleAdded(body) => self.schedules.add(event, body),
            Body::ScheduleMoved(body) => self.schedules.move_text(event, body),
            Body::SchedulePaused(body) => self.schedules.pause(body),
            Body::ScheduleResumed(body) => self.schedules.resume(body),
            Body::ScheduleRemoved(body) => self.schedules.remove(body.schedule),
            Body::ScheduleFired(body) => self.schedules.fired(event, body),
            Body::FilesRestoreBegan(body) => self.files.begin(event, body),
            Body::FilesRestoreEnded(body) => self.files.end(body),
            // That there was a scan is known even if its content was purged.
            Body::FilesScanned(_) | Body::Gone(Kind::FilesScanned) => self.files.scanned(),
            // Only the window folds text, and the positions of texts.
            Body::Prompt(_)
            | Body::SchedulePrompt(_)
            | Body::CommandsTaken(_)
            | Body::CommandLine(_)
            | Body::CommandOutput(_)
            | Body::MessageAdded(_)
            | Body::ResultAdded(_)
            | Body::Notice(_)
            | Body::InstructionsChanged(_)
            | Body::McpListed(_)
            | Body::QuestionAsked(_)
            | Body::QuestionAnswered(_)
            | Body::PlanSet(_)
            | Body::Instruction(_)
            | Body::Summary(_)
            | Body::Context(_)
            | Body::Note(_)
            | Body::HookOutput(_)
            | Body::CallRevised(_)
            | Body::FileKept(_)
            | Body::FilesPlan(_)
            | Body::FilesRestored(_)
            | Body::Gone(_) => true,
        }
    }
}

#[cfg(test)]
mod tests;
