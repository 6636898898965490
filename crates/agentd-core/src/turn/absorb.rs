//! How each input changes the machine.

use super::hooks::Shortened;
use super::live::{Asking, Looked};
use super::{Backoff, Hooks, InTurn, Input, LiveCall, Machine, Prepared};
use crate::draft::Reply;
use crate::event::{
    Body, Compacted, Event, MessageAdded, MessageStatus, Note, Notice, NoticeCause, PromptMode,
    Purpose, RequestOutcome, StopReason, Summary, TaskEnded, TaskExit, TurnEnded, TurnStatus,
};
use crate::id::{TaskId, TryId};
use crate::message::Block;
use crate::recover;
use crate::state::Applied;
use crate::usage::Usage;

impl Machine {
    pub(super) fn absorb(&mut self, input: Input) {
        match input {
            Input::Event(event) => self.event(&event),
            Input::Appended => self.live.outbox.appending = false,
            Input::Replied {
                request,
                reply,
                stop,
                usage,
                provider_request,
            } => self.replied(request, reply, stop, usage, provider_request),
            Input::RequestFailed {
                request,
                class,
                status,
                retry_after_ms,
                detail,
                partial,
            } => {
                let outcome = RequestOutcome::Failed {
                    class,
                    status,
                    retry_after_ms,
                };
                let ended = self.request_over(request, outcome, None, &partial);
                if ended {
                    self.failed(request, class, partial);
                    let about = None;
                    let text = detail;
                    self.live.outbox.backlog.push(Note { about, text }.into());
                    self.live.turn.backoff = Backoff::Wanted(retry_after_ms);
                }
            }
            Input::RequestCancelled { request, partial }
                if self.live.process.leaving && !self.live.turn.interrupting =>
            {
                match self.is_outer() {
                    true => self.child_left(request, partial),
                    false => self.left_behind(request, &partial),
                }
            }
            Input::RequestCancelled { request, partial } => {
                let ended = self.request_over(request, RequestOutcome::Interrupted, None, &partial);
                if ended {
                    self.keep_partial(request, partial, MessageStatus::Interrupted);
                }
            }
            Input::Prepared { call, prepared } => {
                if self.live.calls.get(&call) != Some(&LiveCall::Preparing) {
                    return;
                }
                let gone = self.live.turn.gone_while_preparing.take();
                match prepared {
                    Prepared::Run(started, kept) => {
                        self.live.calls.insert(call, LiveCall::Prepared);
                        let kept = kept.into_iter().map(Body::from);
                        self.live.outbox.backlog.extend(kept);
                        self.live.outbox.backlog.push(started.into());
                    }
                    // The plan assigns the id of the approval.
                    Prepared::Ask(why) => {
                        self.live.calls.remove(&call);
                        match gone {
                            // No program waits for the answer any more.
                            Some(gone) => self.child_gone(gone),
                            None => self.live.ask.push((call, Asking::Approval(why))),
                        }
                    }
                    Prepared::Refuse { outcome, blocks } => {
                        self.live.calls.remove(&call);
                        self.live
                            .outbox
                            .backlog
                            .extend(recover::result(&call, outcome, blocks));
                    }
                }
            }
            Input::ToolFinished { call, finished } => {
                self.live.questions.retain(|_, asking| *asking != call);
                if self.live.calls.remove(&call).is_some() {
                    let ended = recover::ended(&call, finished);
                    self.live.outbox.backlog.extend(ended);
                }
            }
            Input::ToolAsks {
                approval,
                call,
                question,
            } => self.tool_asks(approval, call, question),
            Input::ToolWithdraws { approval } => self.tool_withdraws(approval),
            Input::TaskEnded { task, exit, text } => self.task_ended(task, exit, text),
            Input::McpSeen { look, seen } => self.mcp_seen(look, seen),
            Input::InstructionsRead(present) => self.instructions_read(present.as_ref()),
            Input::FilesScanned { turn, found } => self.scanned(turn, found),
            // A late one, from a turn that was interrupted, must not end another wait.
            Input::BackoffOver if self.live.turn.backoff != Backoff::Waiting => {}
            Input::BackoffOver => self.live.turn.backoff = Backoff::None,
            Input::Spent { usage, cost } => {
                self.live.request.usage = Some(usage);
                self.live.request.cost = cost;
            }
            Input::ChildGone(why) => self.child_gone(why),
            Input::ChildLimited(limit) => self.live.turn.child_limited = Some(limit),
            Input::HooksAnswered { id, verdict } => {
                if self.live.turn.asked.take_if(|asked| *asked == id).is_some() {
                    self.live.turn.heard = Some((id, verdict));
                }
            }
            Input::Halt(reason) => {
                self.live.turn.halted = Some(reason);
                self.want_interrupt();
            }
            Input::TimeUp { turn, limit } => {
                if self.agent.turn.as_ref().is_some_and(|it| it.id == turn) {
                    self.out_of_time(limit);
                }
            }
            Input::Interrupt => {
                self.want_interrupt();
                if !self.live.turn.interrupting {
                    self.live.turn.unwanted = self.live.turn.asked;
                }
            }
            Input::InterruptTurn(turn) => {
                if self.agent.turn.as_ref().is_some_and(|it| it.id == turn) {
                    self.want_interrupt();
                }
            }
            Input::Continue => self.live.continue_asked = true,
            Input::HoldTurns => self.live.holds_turns = true,
            Input::BeginTurns => self.live.holds_turns = false,
            Input::Stop => self.stop(),
            Input::Leave => {
                self.live.process.leaving = true;
                self.stop();
            }
        }
    }

    fn stop(&mut self) {
        self.live.process.stopping = true;
        // None of these is recorded, so the next process prepares them again.
        let calls = &mut self.live.calls;
        calls.retain(|_, state| *state != LiveCall::Preparing);
    }

    fn event(&mut self, event: &Event) {
        if self.agent.apply(event) == Applied::PointerMoved {
            self.live.process.reloaded = true;
        }
        if Some(event.conversation) == self.agent.tree.current() {
            self.window.apply(event);
        }
        match &event.body {
            // During a reset it is meant for the next conversation.
            Body::PromptQueued(queued)
                if queued.mode == PromptMode::Interrupt && !self.agent.is_held_back() =>
            {
                self.want_interrupt();
            }
            Body::ResetStepped(_) | Body::AgentStopped(_) if self.agent.ends_turn() => {
                self.want_interrupt();
            }
            Body::TurnStarted(_) => self.live.outbox.starting = false,
            Body::Summary(summary) => {
                self.live.turn.overflowed = false;
                self.live.turn.shortened = Some(Shortened {
                    at: event.seq,
                    text: summary.text.clone(),
                    is_told: false,
                });
            }
            Body::TurnEnded(_) => self.live.turn = InTurn::default(),
            Body::QuestionAnswered(given) => {
                self.live.content = Some((given.approval, given.content.clone()));
            }
            Body::ApprovalAnswered(answered) => self.question_answered(answered),
            Body::PromptsTaken(_) | Body::ResultAdded(_) => {
                self.live.turn.instructions = Looked::NotYet;
            }
            _ => {}
        }
    }

    fn task_ended(&mut self, task: TaskId, exit: TaskExit, text: String) {
        let is_known = self.agent.tasks.running().any(|(known, _)| *known == task);
        let told = |body: &Body| matches!(body, Body::TaskEnded(ended) if ended.task == task);
        if !is_known || self.live.ended_tasks.iter().any(told) {
            return;
        }
        let cause = NoticeCause::TaskEnded;
        self.live
            .ended_tasks
            .push(TaskEnded::by_itself(task, exit).into());
        self.live.ended_tasks.push(Notice { cause, text }.into());
    }

    fn want_interrupt(&mut self) {
        self.live.turn.interrupting = self.agent.turn.is_some() || self.live.outbox.starting;
    }

    fn replied(
        &mut self,
        request: TryId,
        reply: Reply,
        stop: StopReason,
        usage: Option<Usage>,
        provider_request: Option<String>,
    ) {
        let purpose = self.purpose_of(request);
        if self.is_outer() && stop == StopReason::ToolUse {
            // What the program's turn costs is reported at its end.
            self.live.request.cost.get_or_insert_default();
        }
        if !self.request_over(request, RequestOutcome::Completed, usage, &reply) {
            return;
        }
        if let (Some(Body::RequestEnded(ended)), Some(id)) =
            (self.live.outbox.backlog.last_mut(), provider_request)
        {
            ended.provider_request = Some(id);
        }
        let mut blocks = reply.finish(request, self.window.call_ids());
        if self.is_outer() && blocks.is_empty() {
            // The answer of a program may be empty. A prompt without an answer would be delivered again.
            blocks.push(Block::text("(no output)"));
        }
        if purpose == Some(Purpose::Compact) {
            return self.summarised(request, blocks);
        }
        let is_paused = stop == StopReason::Paused;
        // A limit of the program is recorded when nothing is in flight any more.
        let is_limited = self.live.turn.child_limited.is_some();
        let ends = !is_paused && !is_limited && self.ends_with(&blocks);
        let message = MessageAdded {
            request: Some(request),
            status: MessageStatus::Complete,
            stop: Some(stop),
            blocks,
        };
        let calls = message.blocks.iter().any(|block| block.as_call().is_some());
        self.live.outbox.backlog.push(message.into());
        if is_paused && !calls {
            let cause = NoticeCause::Paused;
            let text = "The provider paused your reply here. Continue it.".to_owned();
            self.live.outbox.backlog.push(Notice { cause, text }.into());
        }
        if ends {
            self.push_end(TurnEnded::with(TurnStatus::Completed));
        }
    }

    /// Whether the turn ends with this reply. If that is known before the reply is durable, the end of the turn is in
    /// the same commit.
    fn ends_with(&self, blocks: &[Block]) -> bool {
        let turn = self.agent.turn.as_ref();
        let is_alone = (self.policy.hooks == Hooks::None || self.live.turn.hookless)
            && !self.live.turn.interrupting
            && self.live.ended_tasks.is_empty()
            && turn.is_some_and(|turn| turn.paused.is_none());
        let calls = blocks.iter().any(|block| block.as_call().is_some());
        let joins = self
            .waiting()
            .any(|queued| queued.mode == PromptMode::Steer && !self.is_outer());
        is_alone && !calls && !joins
    }

    /// An empty summary is not a summary. It is recorded as superseded, and the next plan finds that nothing was
    /// gained.
    fn summarised(&mut self, request: TryId, blocks: Vec<Block>) {
        let text: Vec<&str> = blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text { text } | Block::Annotated { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        match self.live.request.cut.take() {
            Some(through) if !text.is_empty() => {
                let text = text.join("\n");
                self.live.outbox.backlog.push(Compacted { through }.into());
                self.live
                    .outbox
                    .backlog
                    .push(Summary { through, text }.into());
            }
            _ => {
                self.live.turn.compaction_failed = true;
                self.live.outbox.backlog.push(
                    MessageAdded {
                        request: Some(request),
                        status: MessageStatus::Superseded,
                        stop: None,
                        blocks,
                    }
                    .into(),
                );
            }
        }
    }
}
