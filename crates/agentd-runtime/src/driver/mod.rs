//! The driver carries out the effects of the turn machine in order, and feeds the results back. It decides nothing.

mod backoff;
mod ending;
mod hooks;
mod injected_bugs;
mod outer;
mod request;
mod seams;
mod tools;
mod turn_clock;
mod wake;

pub use outer::outer_tools;
pub use seams::{
    Heard, Hooks, Journal, JournalError, Observed, Observer, ToolNews, ToolQuestion, Tools,
};
pub use wake::{Folded, Parts};

use crate::outer::Room;
use crate::provider::{Failure, Provider};
use agentd_core::draft::Delta;
use agentd_core::event::{Body, Event, LimitKind, NewEvent, Scan, TaskExit};
use agentd_core::hook::Verdict;
use agentd_core::id::{ApprovalId, CallId, InvocationId, TaskId, TryId, TurnId};
use agentd_core::mcp::{QuestionReply, Seen};
use agentd_core::system_prompt::Present;
use agentd_core::time::Timestamp;
use agentd_core::turn::{Effect, Finished, Input, Machine, Moment, Prepared};
use agentd_core::usage::{MicroUsd, Usage};
use agentd_core::wire::stream::End;
use agentd_failpoint as failpoint;
use request::InFlight;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use turn_clock::{TurnClock, Wake};
use uuid::Uuid;

/// A command to the driver.
#[derive(Debug)]
pub enum Command {
    /// All events of one append that another process made to this agent's journal.
    Events(Vec<Event>),
    /// Events to append, if this process is the only writer of the journal. They are returned when they are durable.
    Append(Vec<NewEvent>, oneshot::Sender<Vec<Event>>),
    Interrupt,
    Continue,
    /// Begin no turn before the daemon says so.
    HoldTurns,
    /// No more commands will come: end when the driver is idle.
    Drain,
    Stop,
}

/// Why the driver ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It received a stop command, and nothing is in progress.
    Stopped,
    /// The agent switched to another conversation: a new process takes over.
    Reload,
    /// No more commands can come, and there is nothing left to do.
    Idle,
}

/// A result or progress of something that the driver started.
enum Happening {
    /// With the room that it takes until it is handled, if the program of an outer agent caused it.
    Delta(TryId, Delta, Room),
    Streamed(TryId, Result<End, Failure>),
    Prepared(CallId, Prepared),
    Finished(CallId, Finished),
    TaskEnded(TaskId, TaskExit, String),
    InstructionsRead(Option<Present>),
    McpSeen(u64, Vec<Seen>),
    News(ToolNews),
    FilesScanned(TurnId, Scan),
    BackoffOver,
    HooksAnswered(InvocationId, Verdict),
    /// A hook wants the turn to end, for this reason.
    Halt(String),
    Spent(Usage, Option<MicroUsd>),
    /// The program of an outer agent has ended.
    ChildGone(String),
    /// A limit of its own has ended its turn.
    ChildLimited(LimitKind),
}

/// One awake agent.
pub struct Driver {
    machine: Machine,
    journal: Box<dyn Journal>,
    provider: Provider,
    tools: Arc<dyn Tools>,
    hooks: Option<Arc<dyn Hooks>>,
    observer: Observer,
    clock: fn() -> Timestamp,
    effects: VecDeque<Effect>,
    in_flight: Option<InFlight>,
    /// Calls that are being checked.
    preparing: usize,
    /// Cancels the running calls.
    calls: BTreeMap<CallId, watch::Sender<bool>>,
    /// Where the replies to questions of running calls go.
    asked: BTreeMap<ApprovalId, (CallId, oneshot::Sender<QuestionReply>)>,
    happened: mpsc::UnboundedSender<Happening>,
    happenings: mpsc::UnboundedReceiver<Happening>,
    /// Instruction files are being read.
    is_reading: bool,
    is_scanning: bool,
    /// Looks at MCP servers in progress. One of an interrupted turn may last into the next turn.
    listing: usize,
    /// The wait before the next attempt.
    waiting: Option<AbortHandle>,
    turn_clock: TurnClock,
    draining: bool,
    ended: Option<Ended>,
}

impl Driver {
    fn new(machine: Machine, parts: Parts) -> Self {
        let (happened, happenings) = mpsc::unbounded_channel();
        Self {
            machine,
            journal: parts.journal,
            provider: parts.provider,
            tools: parts.tools,
            hooks: parts.hooks,
            observer: parts.observer,
            clock: parts.clock,
            effects: VecDeque::new(),
            in_flight: None,
            preparing: 0,
            calls: BTreeMap::new(),
            asked: BTreeMap::new(),
            happened,
            happenings,
            is_reading: false,
            is_scanning: false,
            listing: 0,
            waiting: None,
            turn_clock: TurnClock::default(),
            draining: false,
            ended: None,
        }
    }

    /// Runs until a stop command, or until no more commands can come and the driver is idle. The program of an outer
    /// agent and the MCP servers have ended when this returns.
    pub async fn run(self, commands: mpsc::Receiver<Command>) -> Result<Ended, JournalError> {
        let tools = Arc::clone(&self.tools);
        let ended = self.drive(commands).await;
        tools.close().await;
        ended
    }

    async fn drive(mut self, mut commands: mpsc::Receiver<Command>) -> Result<Ended, JournalError> {
        self.watch_child();
        self.watch_news();
        // Commands that were sent before the start come before anything that the driver does by itself.
        while let Ok(command) = commands.try_recv() {
            self.command(command).await?;
        }
        let effects = self.with_moment(Machine::start);
        self.effects.extend(effects);
        let mut open = true;
        loop {
            self.carry_out_all().await?;
            if let Some(ended) = self.ended {
                return Ok(ended);
            }
            if self.draining && self.is_idle() {
                self.end_incarnation().await?;
                return Ok(Ended::Idle);
            }
            let flush_at = self.in_flight.as_ref().and_then(InFlight::flush_at);
            let (wake_at, time_up) = self.deadline().unzip();
            tokio::select! {
                // In this order: commands first, then the journal.
                biased;
                command = commands.recv(), if open => match command {
                    Some(command) => self.command(command).await?,
                    None => (open, self.draining) = (false, true),
                },
                heard = self.journal.heard() => self.heard(heard?),
                // Before streamed data, so that the limit also ends a reply that never stops.
                () = sleep_until(wake_at) => self.step_if(time_up.flatten()),
                () = sleep_until(flush_at) => self.flush().await?,
                Some(happening) = self.happenings.recv() => self.happening(happening).await?,
            }
        }
    }

    /// When to check the turn's time limit, and the input for the machine at that time.
    fn deadline(&mut self) -> Option<(Instant, Option<Input>)> {
        let now = (self.clock)();
        let deadline = self.machine.deadline(now)?;
        let (turn, limit) = (deadline.turn, deadline.limit);
        Some(
            match self.turn_clock.wake_at(&deadline, now, Instant::now()) {
                Wake::TimeUp(at) => (at, Some(Input::TimeUp { turn, limit })),
                Wake::LookAgain(at) => (at, None),
            },
        )
    }

    fn is_idle(&self) -> bool {
        self.in_flight.is_none()
            && self.preparing == 0
            && self.calls.is_empty()
            && self.effects.is_empty()
            && self.waiting.is_none()
            && !self.is_reading
            && !self.is_scanning
            && !(self.listing > 0 && self.machine.agent().turn.is_some())
    }

    async fn command(&mut self, command: Command) -> Result<(), JournalError> {
        match command {
            Command::Events(events) => self.feed(events),
            Command::Append(events, reply) => {
                let events = self.append(events, None).await?;
                // The sender of the command may be gone.
                let _gone = reply.send(events);
            }
            Command::Interrupt => self.step(Input::Interrupt),
            Command::Continue => self.step(Input::Continue),
            Command::HoldTurns => self.step(Input::HoldTurns),
            Command::Drain => self.draining = true,
            Command::Stop => self.step(Input::Stop),
        }
        Ok(())
    }

    fn heard(&mut self, heard: Heard) {
        match heard {
            Heard::Events(events) => self.feed(events),
            Heard::Order(order, turn) => self.step(Input::of_order(order, turn)),
        }
    }

    async fn happening(&mut self, happening: Happening) -> Result<(), JournalError> {
        match happening {
            Happening::Delta(request, delta, _room) => self.arrived(request, delta).await?,
            Happening::Streamed(request, outcome) => self.streamed(request, outcome),
            Happening::Prepared(call, prepared) => {
                self.preparing -= 1;
                self.step(Input::Prepared { call, prepared });
            }
            Happening::Finished(call, finished) => self.finished(call, finished),
            Happening::TaskEnded(task, exit, text) => {
                self.step(Input::TaskEnded { task, exit, text });
            }
            Happening::InstructionsRead(present) => self.instructions_read(present),
            Happening::McpSeen(look, seen) => self.mcp_seen(look, seen),
            Happening::News(news) => self.tool_news(news),
            Happening::FilesScanned(turn, found) => self.files_scanned(turn, found),
            Happening::HooksAnswered(id, verdict) => {
                self.step(Input::HooksAnswered { id, verdict })
            }
            Happening::Halt(reason) => self.step(Input::Halt(reason)),
            Happening::Spent(usage, cost) => self.step(Input::Spent { usage, cost }),
            Happening::ChildGone(why) => self.step(Input::ChildGone(why)),
            Happening::ChildLimited(limit) => self.step(Input::ChildLimited(limit)),
            Happening::BackoffOver => {
                self.waiting = None;
                self.step(Input::BackoffOver);
            }
        }
        Ok(())
    }

    /// Carries out the effects in order; effects that result from them are added to the end.
    async fn carry_out_all(&mut self) -> Result<(), JournalError> {
        while let Some(effect) = self.effects.pop_front() {
            self.carry_out(effect).await?;
        }
        Ok(())
    }

    async fn carry_out(&mut self, effect: Effect) -> Result<(), JournalError> {
        match effect {
            Effect::Append { events, ends } => {
                self.append(events, ends).await?;
                self.step(Input::Appended);
            }
            Effect::Send {
                request_id,
                request,
            } => {
                // The request is durable before it is sent.
                failpoint::hit("at", "barrier.2");
                self.send(request_id, *request);
            }
            Effect::CancelRequest { request } => self.cancel_request(request),
            Effect::PrepareTool { call, consent } => self.prepare_tool(call, consent),
            Effect::RunTool { call, started } => {
                // The start of the call is durable before the call runs.
                failpoint::hit("at", "barrier.3");
                self.run_tool(call, started);
            }
            Effect::CancelTool { call } => self.cancel_tool(&call),
            Effect::InvokeHooks { invocation } => self.invoke(*invocation),
            Effect::ReadInstructions { told } => self.read_instructions(told),
            Effect::AnswerTool {
                approval, reply, ..
            } => self.answer_tool(approval, reply),
            Effect::ListMcp { look, unknown } => self.list_mcp(look, unknown),
            Effect::ScanFiles { turn, since } => self.scan_files(turn, since),
            Effect::Backoff {
                failures,
                at_least_ms,
            } => {
                let happened = self.happened.clone();
                let wait = tokio::spawn(async move {
                    tokio::time::sleep(backoff::delay(failures, at_least_ms)).await;
                    let _gone = happened.send(Happening::BackoffOver);
                });
                self.waiting = Some(wait.abort_handle());
            }
            Effect::Reload { .. } => self.ended = Some(Ended::Reload),
            Effect::Stopped => {
                self.end_incarnation().await?;
                self.ended = Some(Ended::Stopped);
            }
        }
        Ok(())
    }

    /// Makes the events durable, then passes them to the observer and to the machine.
    async fn append(
        &mut self,
        events: Vec<NewEvent>,
        ends: Option<TryId>,
    ) -> Result<Vec<Event>, JournalError> {
        let (events, unkept) = injected_bugs::of(events);
        let mut events = self.journal.append(events, ends).await?;
        injected_bugs::pretend(&mut events, unkept);
        for event in &events {
            (self.observer)(Observed::Event(event));
        }
        self.feed(events.clone());
        if events.iter().any(ends_turn) {
            self.settle_child();
            self.checkpoint();
        }
        Ok(events)
    }

    /// Feeds all events of an append to the machine before any resulting effect is carried out.
    fn feed(&mut self, events: Vec<Event>) {
        for event in events {
            // A turn that has ended makes no further attempt.
            if let Body::TurnEnded(_) = &event.body
                && let Some(wait) = self.waiting.take()
            {
                wait.abort();
            }
            self.tools.recorded(&event.body);
            self.step(Input::Event(event));
        }
        self.tools.tidy(self.machine.agent());
    }

    fn step_if(&mut self, input: Option<Input>) {
        if let Some(input) = input {
            self.step(input);
        }
    }

    fn step(&mut self, input: Input) {
        let effects = self.with_moment(|machine, moment| machine.step(moment, input));
        self.effects.extend(effects);
    }

    fn with_moment<T>(&mut self, run: impl FnOnce(&mut Machine, &mut Moment<'_>) -> T) -> T {
        let mut moment = Moment {
            at: (self.clock)(),
            new_id: &mut Uuid::now_v7,
        };
        run(&mut self.machine, &mut moment)
    }
}

const fn ends_turn(event: &Event) -> bool {
    matches!(event.body, Body::TurnEnded(_))
}

/// Never returns if there is nothing to wait for.
async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
