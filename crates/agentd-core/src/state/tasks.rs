//! Background tasks, and approvals that were requested.

use super::Segment;
use crate::event::{
    ApprovalAnswered, ApprovalRequested, Asks, Decision, Event, TaskEnded, TaskExit, TaskStarted,
};
use crate::id::{ApprovalId, BootId, CallId, ConversationId, Seq, TaskId, TurnId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A background task that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub call: CallId,
    pub tool: String,
    pub boot: BootId,
    pub conversation: ConversationId,
    #[serde(default)]
    pub turn: Option<TurnId>,
    pub started_at: Timestamp,
    /// The event that started it.
    #[serde(default)]
    pub seq: Seq,
    /// The conversations in which the model knows that the task is running.
    #[serde(default)]
    known_in: Vec<ConversationId>,
}

/// How many ended tasks are remembered. A branch is not told that an older one has ended.
const REMEMBERED: usize = 64;

/// A task that has ended, and the conversations that know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Over {
    ended: EndedTask,
    /// Where it was started.
    conversation: ConversationId,
    seq: Seq,
    known_in: Vec<ConversationId>,
    /// Where the model was told that the task has ended.
    told: Vec<(ConversationId, Seq)>,
}

impl Over {
    /// Whether the model has seen in these segments that the task started, but not that it ended.
    fn is_believed_to_run(&self, segments: &[Segment]) -> bool {
        let knows = segments.iter().any(|segment| {
            let is_its_own = segment.conversation == self.conversation;
            let is_known = self.known_in.contains(&segment.conversation);
            is_known && (!is_its_own || self.seq <= segment.through)
        });
        let is_told = segments.iter().any(|segment| {
            let mut told = self.told.iter();
            told.any(|(it, at)| *it == segment.conversation && *at <= segment.through)
        });
        knows && !is_told
    }
}

/// A task that ended while another conversation was the current one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedTask {
    pub task: TaskId,
    pub tool: String,
    pub exit: TaskExit,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasks {
    running: BTreeMap<TaskId, Task>,
    ended: u64,
    /// Tasks whose end other conversations have not been told.
    #[serde(default)]
    untold: BTreeMap<ConversationId, Vec<EndedTask>>,
    /// The newest tasks that have ended.
    #[serde(default)]
    over: VecDeque<Over>,
}

impl Tasks {
    pub fn running(&self) -> impl ExactSizeIterator<Item = (&TaskId, &Task)> {
        self.running.iter()
    }

    pub const fn ended(&self) -> u64 {
        self.ended
    }

    pub(super) fn start(&mut self, event: &Event, body: &TaskStarted) {
        self.running.insert(
            body.task,
            Task {
                call: body.call.clone(),
                tool: body.tool.clone(),
                boot: body.boot,
                conversation: event.conversation,
                turn: event.turn,
                started_at: event.at,
                seq: event.seq,
                known_in: vec![event.conversation],
            },
        );
    }

    pub(super) fn end(&mut self, event: &Event, body: &TaskEnded) -> bool {
        let Some(known) = self.running.remove(&body.task) else {
            return false;
        };
        self.ended = self.ended.saturating_add(1);
        let ended = EndedTask {
            task: body.task,
            tool: known.tool,
            exit: body.exit,
        };
        // The conversation in which it ended is told immediately.
        let others = known
            .known_in
            .iter()
            .filter(|it| **it != event.conversation);
        for other in others {
            self.untold.entry(*other).or_default().push(ended.clone());
        }
        self.over.push_back(Over {
            ended,
            conversation: known.conversation,
            seq: known.seq,
            known_in: known.known_in,
            told: vec![(event.conversation, event.seq)],
        });
        if self.over.len() > REMEMBERED {
            self.over.pop_front();
        }
        true
    }

    /// The tasks that a branch believes to be running and that have ended since.
    pub fn ended_since(&self, segments: &[Segment]) -> impl Iterator<Item = &EndedTask> {
        let over = self.over.iter();
        let believed = over.filter(|over| over.is_believed_to_run(segments));
        believed.map(|over| &over.ended)
    }

    /// A branch has begun and was told about those tasks.
    pub(super) fn branched(&mut self, event: &Event, segments: &[Segment]) {
        for over in &mut self.over {
            if over.is_believed_to_run(segments) {
                over.told.push((event.conversation, event.seq));
            }
        }
    }

    /// The tasks that a conversation believes to be running and that have ended.
    pub fn untold(&self, conversation: ConversationId) -> &[EndedTask] {
        self.untold
            .get(&conversation)
            .map_or(&[], |ended| ended.as_slice())
    }

    /// A conversation has begun and was told about the running tasks.
    pub(super) fn carried_into(&mut self, conversation: ConversationId) {
        for task in self.running.values_mut() {
            task.known_in.push(conversation);
        }
    }

    /// The pointer has returned to a conversation, which was told about the ended tasks.
    pub(super) fn told(&mut self, event: &Event, conversation: ConversationId) {
        for ended in self.untold.remove(&conversation).unwrap_or_default() {
            let over = self.over.iter_mut();
            for over in over.filter(|over| over.ended.task == ended.task) {
                over.told.push((conversation, event.seq));
            }
        }
    }

    /// Its content was purged, so there is nothing to tell it.
    pub(super) fn forget(&mut self, conversation: ConversationId) {
        self.untold.remove(&conversation);
    }
}

/// A requested approval of one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub call: CallId,
    pub turn: Option<TurnId>,
    pub conversation: ConversationId,
    pub asked_at: Timestamp,
    /// The event that requested it. The call is before it.
    #[serde(default)]
    pub seq: Seq,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// `None` while it waits.
    pub decision: Option<Decision>,
    #[serde(default)]
    pub asks: Asks,
}

/// Approvals of calls that have no result yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approvals {
    open: BTreeMap<ApprovalId, Approval>,
}

impl Approvals {
    pub fn iter(&self) -> impl Iterator<Item = (&ApprovalId, &Approval)> {
        self.open.iter()
    }

    pub fn waiting(&self) -> impl Iterator<Item = (&ApprovalId, &Approval)> {
        self.open
            .iter()
            .filter(|(_, approval)| approval.decision.is_none())
    }

    /// The approval of this call, answered or not. A question of a call that runs is not one.
    pub fn of_call(&self, turn: TurnId, call: &CallId) -> Option<&Approval> {
        let is_approval = |it: &&Approval| it.asks == Asks::Approval;
        let mut approvals = self.open.values().filter(is_approval);
        approvals.find(|approval| approval.turn == Some(turn) && approval.call == *call)
    }

    pub fn get(&self, approval: ApprovalId) -> Option<&Approval> {
        self.open.get(&approval)
    }

    pub(super) fn request(&mut self, event: &Event, body: &ApprovalRequested) -> bool {
        self.open.insert(
            body.approval,
            Approval {
                call: body.call.clone(),
                turn: event.turn,
                conversation: event.conversation,
                asked_at: event.at,
                seq: event.seq,
                why: body.why.clone(),
                decision: None,
                asks: body.asks,
            },
        );
        true
    }

    pub(super) fn answer(&mut self, body: &ApprovalAnswered) -> bool {
        match self.open.get_mut(&body.approval) {
            Some(approval) if approval.decision.is_none() => {
                approval.decision = Some(body.decision);
                true
            }
            _ => false,
        }
    }

    pub(super) fn withdraw(&mut self, approval: ApprovalId) -> bool {
        self.open.remove(&approval).is_some()
    }

    /// The call has its result, so no approval is needed.
    pub(super) fn withdraw_for(&mut self, call: &CallId) {
        self.open.retain(|_, approval| approval.call != *call);
    }

    pub(super) fn end_turn(&mut self, turn: TurnId) {
        self.open.retain(|_, approval| approval.turn != Some(turn));
    }
}
