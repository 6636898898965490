//! One run of an agent: it reads prompts and prints what is durable, until there is no more work.

use super::asking::{Asking, NotTaken};
use super::checkpoint;
use super::input::{self, Frames};
use super::seen::{Checkpoint, Seen};
use super::signals::{Signals, Told};
use super::state_dir::{self, StateDir};
use super::{Input, ResumedFrom, Settings, ended, outcome};
use crate::error::Error;
use crate::printer::Printer;
use agentd_core::event::{ApprovalAnswered, Body, Decision, PromptMode, TurnEnded, TurnStatus};
use agentd_core::frame::{Frame, FrameError, PromptFrame};
use agentd_core::id::{AgentId, ApprovalId, ConversationId, Seq, TurnId};
use agentd_core::message::{Block, Wire};
use agentd_core::state::{AgentState, EndedTurn};
use agentd_runtime::driver::{Command, Ended, JournalError};
use serde_json::json;
use std::collections::HashSet;
use std::io::{self, IsTerminal as _};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// How long the last output lines may take to be read.
const LAST_LINES: Duration = Duration::from_secs(5);
/// The exit code after a second signal: 128 + SIGTERM.
const TERMINATED: i32 = 143;

type Driving = JoinHandle<Result<Ended, JournalError>>;

pub struct Session<'a> {
    state_dir: &'a StateDir,
    agent: AgentId,
    conversation: ConversationId,
    run_id: Option<String>,
    commands: mpsc::Sender<Command>,
    printer: Printer,
    asking: Asking,
    is_terminal: bool,
    /// The process ends after the next turn.
    is_oneshot: bool,
    running: Option<TurnId>,
    question: Option<ApprovalId>,
    /// The calls that are waiting for approval.
    waiting: HashSet<ApprovalId>,
    /// The newest reason of a failure.
    note: Option<String>,
    /// The turn that has ended, until its checkpoint arrives.
    ended: Option<(Option<TurnId>, TurnEnded)>,
    last: Option<EndedTurn>,
    checkpoint: Option<Box<Checkpoint>>,
    /// `session-latest.json` lacks events that a resume needs.
    is_unsaved: bool,
}

impl<'a> Session<'a> {
    pub fn new(
        state_dir: &'a StateDir,
        state: &AgentState,
        conversation: ConversationId,
        commands: mpsc::Sender<Command>,
        mut printer: Printer,
        settings: &Settings,
        wire: Wire,
    ) -> Self {
        let usual_mode = match settings.steer {
            true => PromptMode::Steer,
            false => PromptMode::Queue,
        };
        let asking = Asking::new(state, usual_mode, wire);
        // That of a turn that continues after a crash.
        printer.turn_id = asking.turn_id();
        Self {
            state_dir,
            agent: state.id,
            conversation,
            run_id: settings.run_id.clone(),
            commands,
            printer,
            asking,
            is_terminal: io::stdin().is_terminal(),
            is_oneshot: matches!(settings.input, Input::Prompt(_)),
            running: state.turn.as_ref().map(|turn| turn.id),
            question: None,
            waiting: state.approvals.waiting().map(|(id, _)| *id).collect(),
            note: None,
            ended: None,
            last: None,
            checkpoint: None,
            is_unsaved: false,
        }
    }

    /// The first lines: the agent and its session, and what the session was resumed from.
    pub fn hello(&self, from: Option<&ResumedFrom>, head: Seq) {
        self.printer.object(&json!({
            "kind": "session",
            "v": 1,
            "run_id": self.run_id,
            "agent": self.agent,
            "conversation": self.conversation,
            "resumed": from.is_some(),
            "checkpoint": self.state_dir.path.join(super::FILE),
        }));
        let Some(from) = from else { return };
        let (from, path) = from.named();
        let init = json!({"kind": "init", "resumed_from": from, "path": path, "head": head});
        self.printer.object(&init);
    }

    pub async fn run(
        mut self,
        mut driver: Driving,
        mut sight: mpsc::UnboundedReceiver<Seen>,
        mut signals: Signals,
        settings: Settings,
    ) -> Result<(), Error> {
        for (approval, decision) in settings.answers {
            self.answer(approval, decision).await;
        }
        if settings.continue_turn {
            self.tell(Command::Continue).await;
        }
        let mut frames = self.source(settings.input).await?;
        let mut is_stopping = false;
        let ended = loop {
            tokio::select! {
                biased;
                told = signals.next() => match told {
                    Told::Interrupt => self.interrupt().await,
                    // At once: all state is on disk.
                    Told::Terminate if is_stopping => std::process::exit(TERMINATED),
                    Told::Terminate => {
                        is_stopping = true;
                        self.tell(Command::Stop).await;
                    }
                },
                Some(seen) = sight.recv() => self.seen(seen).await?,
                joined = &mut driver => break ended(joined)?,
                frame = next(&mut frames), if !is_stopping => match frame {
                    Some(frame) => self.frame(frame).await,
                    None => {
                        frames = None;
                        self.tell(Command::Drain).await;
                    }
                },
            }
        };
        while let Ok(seen) = sight.try_recv() {
            self.seen(seen).await?;
        }
        let outcome = self.outcome(ended).await;
        self.printer.finish(LAST_LINES);
        outcome
    }

    /// Opens the source of prompts; a prompt from the command line is sent.
    async fn source(&mut self, input: Input) -> Result<Option<Frames>, Error> {
        match input {
            Input::Prompt(blocks) => {
                let frame = PromptFrame {
                    turn_id: None,
                    blocks,
                    mode: None,
                    metadata: None,
                };
                self.prompt(frame).await;
                if self.is_terminal && !self.printer.is_json() {
                    // A user at the terminal can be asked.
                    return Ok(Some(input::stdin()));
                }
                self.tell(Command::Drain).await;
                Ok(None)
            }
            Input::Stdin => Ok(Some(input::stdin())),
            Input::Fifo(path) => Ok(Some(input::fifo(&path)?)),
            Input::Nothing => {
                self.tell(Command::Drain).await;
                Ok(None)
            }
        }
    }

    async fn interrupt(&mut self) {
        if self.is_terminal && self.running.is_none() && !self.is_oneshot {
            self.tell(Command::Drain).await;
        }
        self.tell(Command::Interrupt).await;
    }

    async fn frame(&mut self, frame: Result<Frame, FrameError>) {
        match frame {
            Ok(Frame::Prompt(prompt)) => match (self.question, typed(&prompt)) {
                (Some(approval), Some(decision)) if self.is_terminal => {
                    self.question = None;
                    self.answer(approval, decision).await;
                }
                _ => self.prompt(prompt).await,
            },
            Ok(Frame::Answer { approval, decision }) => self.answer(approval, decision).await,
            Ok(Frame::Continue) => self.tell(Command::Continue).await,
            Err(error) => self.refuse(error.kind(), &error.to_string()),
        }
    }

    /// An approval is answered once; an unknown one is an error.
    async fn answer(&mut self, approval: ApprovalId, decision: Decision) {
        if !self.waiting.remove(&approval) {
            let text = format!("no call is waiting for the approval {approval}");
            return self.refuse("approval_unknown", &text);
        }
        self.append(vec![ApprovalAnswered::new(approval, decision).into()])
            .await;
    }

    async fn prompt(&mut self, frame: PromptFrame) {
        match self.asking.take(frame) {
            Ok(bodies) => self.append(bodies).await,
            Err(repeated @ NotTaken::Repeated(_)) => {
                self.printer.remark("repeated", &repeated.to_string());
            }
            Err(full @ NotTaken::QueueFull(_)) => self.refuse("queue_full", &full.to_string()),
            Err(unfit @ NotTaken::Unfit(_)) => {
                self.refuse("attachment_refused", &unfit.to_string());
            }
        }
    }

    /// Sends events to the driver, which appends them.
    pub async fn append(&mut self, bodies: Vec<Body>) {
        let events = bodies.into_iter();
        let events = events.map(|body| state_dir::event(self.conversation, None, body));
        let (reply, _whoever_looks_sees_it) = oneshot::channel();
        self.tell(Command::Append(events.collect(), reply)).await;
    }

    async fn tell(&self, command: Command) {
        // If the driver has ended, its result says why.
        let _ended = self.commands.send(command).await;
    }

    fn refuse(&mut self, kind: &str, text: &str) {
        if self.printer.is_json() {
            let error = json!({"kind": kind, "message": text});
            return self
                .printer
                .object(&json!({"kind": "error", "error": error}));
        }
        self.printer.remark(kind, &format!("rejected: {text}"));
    }

    async fn seen(&mut self, seen: Seen) -> Result<(), Error> {
        let event = match seen {
            Seen::Delta(request, delta) => {
                self.printer.delta(request, &delta);
                return Ok(());
            }
            Seen::Checkpoint(checkpoint) => {
                if let Some((turn, ended)) = self.ended.take() {
                    self.turn_ended(&checkpoint, turn, &ended).await?;
                }
                self.checkpoint = Some(checkpoint);
                return Ok(());
            }
            Seen::Event(event) => *event,
        };
        self.is_unsaved |= !matches!(event.body, Body::IncarnationEnded(_));
        if let Body::PromptsTaken(taken) = &event.body {
            self.asking.taken(&taken.prompts);
            self.printer.turn_id = self.asking.turn_id();
        }
        self.printer.event(&event);
        match &event.body {
            Body::TurnStarted(_) => {
                self.running = event.turn;
                self.note = None;
            }
            Body::Note(note) => self.note = Some(note.text.clone()),
            Body::ApprovalRequested(asked) => {
                self.question = Some(asked.approval);
                self.waiting.insert(asked.approval);
                let how = match self.is_terminal {
                    true => "allow it? [y/n]".to_owned(),
                    false => format!("answer with --approve {0} or --deny {0}", asked.approval),
                };
                let text = format!("this call needs your approval: {how}");
                self.printer.remark("approval", &text);
            }
            Body::ApprovalWithdrawn(withdrawn) => {
                self.waiting.remove(&withdrawn.approval);
            }
            Body::TurnEnded(ended) => self.ended = Some((event.turn, ended.clone())),
            _ => {}
        }
        Ok(())
    }

    async fn turn_ended(
        &mut self,
        checkpoint: &Checkpoint,
        id: Option<TurnId>,
        ended: &TurnEnded,
    ) -> Result<(), Error> {
        self.running = None;
        self.save(checkpoint)?;
        let turn = checkpoint.state.last_turn.clone();
        let turn = turn.filter(|turn| Some(turn.id) == id);
        let spent = turn.as_ref().map(|turn| turn.spent).unwrap_or_default();
        let cost = (spent.unpriced == 0).then_some(spent.cost.0 as f64 / 1e6);
        let error = match ended.status {
            TurnStatus::Completed | TurnStatus::Interrupted => None,
            TurnStatus::Limited => ended.limit.map(|limit| json!(limit)),
            TurnStatus::Failed | TurnStatus::Lost => Some(json!(self.note)),
        };
        let asked = self.asking.answered();
        self.printer.turn_id = None;
        self.printer.object(&json!({
            "kind": "turn_result",
            "agent": self.agent,
            "conversation": self.conversation,
            "turn": id,
            "turn_id": asked.turn_id,
            "metadata": asked.metadata,
            "status": ended.status,
            "text": checkpoint.text,
            "usage": {
                "input_tokens": spent.usage.input_tokens
                    + spent.usage.cache_read_tokens
                    + spent.usage.cache_write_tokens,
                "output_tokens": spent.usage.output_tokens,
                "cost_usd": cost,
            },
            "error": error,
        }));
        self.printer.end_line();
        self.last = turn;
        if self.is_oneshot {
            self.tell(Command::Drain).await;
        } else if ended.status != TurnStatus::Completed {
            let text = format!("the turn ended as {}", json!(ended.status));
            self.printer.remark("turn", &text);
        }
        Ok(())
    }

    /// Writes `session-latest.json`.
    fn save(&mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        if let Some(saved) = &checkpoint.saved {
            checkpoint::replace(&self.state_dir.path, saved)?;
        }
        self.is_unsaved = false;
        Ok(())
    }

    /// The outcome of the run, as an exit code.
    async fn outcome(&mut self, ended: Ended) -> Result<(), Error> {
        let state = match self.checkpoint.take() {
            Some(checkpoint) => {
                if self.is_unsaved || ended == Ended::Stopped {
                    self.save(&checkpoint)?;
                }
                checkpoint.state
            }
            None => self.state_dir.save(self.agent).await?.state,
        };
        let resume = format!("agentd agent --resume {}", self.state_dir.path.display());
        for (task, _) in state.tasks.running() {
            self.printer
                .remark("task", &format!("task {task} keeps running"));
        }
        if ended == Ended::Stopped {
            return Ok(());
        }
        outcome::of(&state, self.last.as_ref(), self.note.take(), &resume)
    }
}

/// The next frame; never returns if there is no input.
async fn next(frames: &mut Option<Frames>) -> Option<Result<Frame, FrameError>> {
    match frames {
        Some(frames) => frames.recv().await,
        None => std::future::pending().await,
    }
}

/// The decision that a user types at the terminal.
fn typed(prompt: &PromptFrame) -> Option<Decision> {
    let [Block::Text { text }] = &prompt.blocks[..] else {
        return None;
    };
    match text.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(Decision::Allow),
        "n" | "no" => Some(Decision::Deny),
        _ => None,
    }
}
