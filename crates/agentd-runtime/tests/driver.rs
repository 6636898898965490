//! The whole loop in every wire format: the real machine, driver and provider, with the strict fake model and a journal
//! in memory.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what it did, and panics where it cannot go on"
)]

use agentd_core::draft::Change;
use agentd_core::event::*;
use agentd_core::id::*;
use agentd_core::message::{Block, CallOutcome, ToolCall, Wire};
use agentd_core::recover::CallFact;
use agentd_core::state::{AgentState, StartedCall};
use agentd_core::time::Timestamp;
use agentd_core::turn::{Consent, Finished, Hooks, Policy, Prepared};
use agentd_core::window::{SeenFiles, Window};
use agentd_runtime::driver::{
    Command, Driver, Ended, Folded, Journal, JournalError, Observed, Parts, Tools,
};
use agentd_runtime::provider::{Key, Options, Provider};
use agentd_testkit::model::{FakeModel, Format};
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

const FORMATS: [(Wire, Format); 4] = [
    (Wire::AnthropicMessages, Format::Anthropic),
    (Wire::OpenaiChat, Format::OpenaiChat),
    (Wire::OpenaiResponses, Format::OpenaiResponses),
    (Wire::Gemini, Format::Gemini),
];

const AGENT: AgentId = AgentId::from_bytes([1; 16]);
const CONVERSATION: ConversationId = ConversationId::from_bytes([2; 16]);

/// What would be on disk.
#[derive(Default)]
struct Disk {
    events: Vec<Event>,
    draft: Option<(TryId, Vec<u8>)>,
    /// Text that a reader has seen.
    seen: String,
}

impl Disk {
    fn write(&mut self, event: NewEvent) -> Event {
        let event = event.placed(AGENT, Seq(self.events.len() as u64 + 1));
        self.events.push(event.clone());
        event
    }

    fn fold(&self) -> (AgentState, Window) {
        let (mut state, mut window) = (AgentState::new(AGENT), Window::new());
        for event in &self.events {
            state.apply(event);
            window.apply(event);
        }
        (state, window)
    }
}

#[derive(Clone)]
struct Memory(Arc<Mutex<Disk>>);

#[async_trait]
impl Journal for Memory {
    async fn append(
        &mut self,
        events: Vec<NewEvent>,
        ends: Option<TryId>,
    ) -> Result<Vec<Event>, JournalError> {
        let mut disk = self.0.lock().unwrap();
        if let (Some(ends), Some((of, _))) = (ends, &disk.draft)
            && *of <= ends
        {
            disk.draft = None;
        }
        Ok(events.into_iter().map(|event| disk.write(event)).collect())
    }

    async fn write_draft(
        &mut self,
        request: TryId,
        offset: u64,
        bytes: Vec<u8>,
    ) -> Result<(), JournalError> {
        let mut disk = self.0.lock().unwrap();
        let draft = disk.draft.take().filter(|(of, _)| *of == request);
        let (_, mut kept) = draft.unwrap_or((request, Vec::new()));
        assert_eq!(kept.len() as u64, offset, "no piece is missing");
        assert!(bytes.len() <= agentd_core::draft::MAX_PIECE);
        kept.extend(bytes);
        disk.draft = Some((request, kept));
        Ok(())
    }
}

/// Tools that count their runs; `wait` runs until it is cancelled.
#[derive(Default)]
struct Counting {
    runs: Mutex<BTreeMap<CallId, u32>>,
}

#[async_trait]
impl Tools for Counting {
    async fn prepare(&self, call: &ToolCall, _consent: Consent, _seen: &SeenFiles) -> Prepared {
        let (call, tool) = (call.id.clone(), call.name.clone());
        let (task, boot, change) = (None, None, None);
        Prepared::Run(
            ToolStarted {
                call,
                tool,
                task,
                boot,
                change,
                patched: Vec::new(),
                may_change_files: false,
            },
            Vec::new(),
        )
    }

    async fn run(
        &self,
        call: ToolCall,
        _started: StartedCall,
        mut cancelled: watch::Receiver<bool>,
    ) -> Finished {
        *self
            .runs
            .lock()
            .unwrap()
            .entry(call.id.clone())
            .or_default() += 1;
        if call.arguments.to_object().contains_key("wait") {
            let _dropped = cancelled.wait_for(|cancelled| *cancelled).await;
            let blocks = vec![Block::text("was cancelled")];
            return Finished::new(CallOutcome::Interrupted, blocks);
        }
        let blocks = vec![Block::text(format!("ran {}", call.id))];
        Finished::new(CallOutcome::Ok, blocks)
    }

    /// No call outlives the process.
    async fn find(&self, _call: &ToolCall, _started: &StartedCall) -> CallFact {
        CallFact::Unknown
    }

    async fn resume(
        &self,
        call: ToolCall,
        started: StartedCall,
        cancelled: watch::Receiver<bool>,
    ) -> Finished {
        self.run(call, started, cancelled).await
    }

    async fn task_ended(&self, _task: TaskId, _boot: BootId) -> (TaskExit, String) {
        std::future::pending().await
    }
}

fn clock() -> Timestamp {
    Timestamp::from_millis(1_000)
}

type Running = (
    mpsc::Sender<Command>,
    JoinHandle<Result<Ended, JournalError>>,
);

struct Bench {
    model: FakeModel,
    wire: Wire,
    format: Format,
    disk: Arc<Mutex<Disk>>,
    tools: Arc<Counting>,
    prompts: u8,
    changed: watch::Sender<()>,
    running: Option<Running>,
}

impl Bench {
    fn new(wire: Wire, format: Format) -> Self {
        let mut disk = Disk::default();
        let (name, mode) = ("agent".to_owned(), Mode::Persistent);
        disk.write(outside(AgentCreated { name, mode }));
        let (parent, from, op) = (None, None, None);
        let source = BeginSource::Create;
        disk.write(outside(ConversationBegan {
            source,
            parent,
            from,
            op,
        }));
        Self {
            model: FakeModel::start().unwrap(),
            wire,
            format,
            disk: Arc::new(Mutex::new(disk)),
            tools: Arc::default(),
            prompts: 0,
            changed: watch::Sender::new(()),
            running: None,
        }
    }

    /// What a new process does: fold, recover, continue.
    async fn start(&mut self, after: After) {
        let folded = {
            let disk = self.disk.lock().unwrap();
            let (state, window) = disk.fold();
            let draft = disk.draft.clone();
            Folded {
                incarnation: state.incarnation.next(),
                state,
                window,
                draft,
            }
        };
        let key = Some(Key::new("sk-canary"));
        let options = Options::new(self.wire, self.model.base_url(self.format), key);
        let (disk, changed) = (Arc::clone(&self.disk), self.changed.clone());
        let observer = Box::new(move |observed: Observed<'_>| {
            if let Observed::Delta(_, delta) = observed
                && let Change::Text { text } = &delta.change
            {
                disk.lock().unwrap().seen.push_str(text);
            }
            changed.send_replace(());
        });
        let journal = Box::new(Memory(Arc::clone(&self.disk)));
        let provider = Provider::new(options).unwrap();
        let tools = Arc::clone(&self.tools) as Arc<dyn Tools>;
        let parts = Parts {
            journal,
            provider,
            tools,
            hooks: None,
            observer,
            clock,
        };
        let driver = Driver::wake(folded, after, self.policy(), parts).await;
        let driver = driver.unwrap();
        let (commands, queue) = mpsc::channel(16);
        self.running = Some((commands, tokio::spawn(driver.run(queue))));
    }

    fn policy(&self) -> Policy {
        Policy {
            context: Context {
                max_output_tokens: 1000,
                ..agentd_testkit::journal::context(self.wire)
            },
            model_window: None,
            price: None,
            mcp: Vec::new(),
            parallel: BTreeSet::from(["shell".to_owned()]),
            max_failures: 4,
            missing_key: None,
            lacking: Default::default(),
            hooks: Hooks::None,
        }
    }

    /// Sets the agent's limit, also for a running process.
    fn limit_turn_ms(&self, wall_ms: u64) {
        let mut spec = Box::<agentd_core::spec::AgentSpec>::default();
        spec.limits.turn.wall_ms = Some(wall_ms);
        let event = self.disk.lock().unwrap().write(outside(SpecSet { spec }));
        if let Some((commands, _)) = &self.running {
            commands.try_send(Command::Events(vec![event])).unwrap();
        }
    }

    async fn tell(&self, command: Command) {
        let (commands, _) = self.running.as_ref().unwrap();
        commands.send(command).await.unwrap();
    }

    async fn prompt(&mut self, text: &str) {
        self.prompts += 1;
        let prompt = PromptId::from_bytes([self.prompts; 16]);
        let (key, mode) = (None, PromptMode::Queue);
        let blocks = vec![Block::text(text)];
        let events = {
            let mut disk = self.disk.lock().unwrap();
            vec![
                disk.write(outside(Prompt { prompt, blocks })),
                disk.write(outside(PromptQueued { prompt, key, mode })),
            ]
        };
        self.tell(Command::Events(events)).await;
    }

    /// Waits until a condition on the disk's content holds.
    async fn until(&self, what: &str, holds: impl Fn(&Disk) -> bool) {
        let mut changes = self.changed.subscribe();
        let wait = async {
            while !holds(&self.disk.lock().unwrap()) {
                changes.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(30), wait).await;
        assert!(waited.is_ok(), "{what} never came");
    }

    /// Waits until this many turns have ended, and returns how the last one ended.
    async fn turns(&self, count: usize) -> TurnStatus {
        let ended = |disk: &Disk| {
            let events = disk.events.iter();
            let ended = events.filter_map(|event| match &event.body {
                Body::TurnEnded(ended) => Some(ended.status),
                _ => None,
            });
            ended.collect::<Vec<_>>()
        };
        self.until("the end of the turn", |disk| ended(disk).len() >= count)
            .await;
        ended(&self.disk.lock().unwrap())[count - 1]
    }

    async fn stop(&mut self) {
        self.tell(Command::Stop).await;
        let (_, task) = self.running.take().unwrap();
        assert_eq!(task.await.unwrap().unwrap(), Ended::Stopped);
    }

    async fn kill(&mut self) {
        let (_, task) = self.running.take().unwrap();
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }

    fn last_text(&self) -> String {
        self.disk.lock().unwrap().fold().1.last_text()
    }

    fn kinds(&self, kind: Kind) -> usize {
        let disk = self.disk.lock().unwrap();
        let of_kind = disk.events.iter().filter(|event| event.kind() == kind);
        of_kind.count()
    }

    fn interrupted_text(&self) -> String {
        let disk = self.disk.lock().unwrap();
        let mut texts = disk.events.iter().filter_map(|event| match &event.body {
            Body::MessageAdded(m) if m.status == MessageStatus::Interrupted => {
                Some(event.body.words().join(""))
            }
            _ => None,
        });
        texts.next().unwrap()
    }

    fn messages(&self, status: MessageStatus) -> usize {
        let disk = self.disk.lock().unwrap();
        let is =
            |event: &&Event| matches!(&event.body, Body::MessageAdded(m) if m.status == status);
        disk.events.iter().filter(is).count()
    }

    fn assert_all_accepted(&self) {
        let refused = self.model.refused();
        assert!(refused.is_empty(), "{refused:#?}");
        let runs = self.tools.runs.lock().unwrap();
        assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
    }
}

fn outside(body: impl Into<Body>) -> NewEvent {
    NewEvent {
        at: clock(),
        conversation: CONVERSATION,
        turn: None,
        body: body.into(),
    }
}

fn in_every_format(scenario: impl AsyncFn(Bench)) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    for (wire, format) in FORMATS {
        println!("{wire:?}");
        let bench = Bench::new(wire, format);
        runtime.block_on(scenario(bench));
    }
}

const LS: &str = r#"call shell {"command": "ls"}"#;

#[test]
fn a_chain_of_tools_runs_to_its_answer() {
    in_every_format(async |mut bench| {
        bench.start(After::Start).await;
        bench
            .prompt(&format!(
                "do: think hm | {LS} | {LS} ;; say more | {LS} ;; say done"
            ))
            .await;
        assert_eq!(bench.turns(1).await, TurnStatus::Completed);
        assert_eq!(bench.last_text(), "done");
        assert_eq!(bench.tools.runs.lock().unwrap().len(), 3);
        assert_eq!(bench.model.requests().len(), 3);
        bench.prompt("and now?").await;
        assert_eq!(bench.turns(2).await, TurnStatus::Completed);
        bench.stop().await;
        bench.assert_all_accepted();
        assert!(
            bench.disk.lock().unwrap().draft.is_none(),
            "no draft outlives its message"
        );
    });
}

#[test]
fn a_failed_try_is_made_again_and_leaves_one_message() {
    in_every_format(async |mut bench| {
        bench.start(After::Start).await;
        bench
            .prompt("do: drop 4 | fail 529 | deltas 8 | say one two three four")
            .await;
        assert_eq!(bench.turns(1).await, TurnStatus::Completed);
        assert_eq!(bench.last_text(), "one two three four");
        assert_eq!(bench.model.requests().len(), 3);
        assert_eq!(bench.messages(MessageStatus::Complete), 1);
        assert_eq!(
            bench.messages(MessageStatus::Superseded),
            1,
            "what the broken try had said"
        );
        bench.stop().await;
        bench.assert_all_accepted();
    });
}

#[test]
fn a_rejected_request_fails_the_turn_and_the_next_one_works() {
    in_every_format(async |mut bench| {
        bench.start(After::Start).await;
        bench.prompt("do: dance").await;
        assert_eq!(bench.turns(1).await, TurnStatus::Failed);
        assert_eq!(bench.model.requests().len(), 1, "it is not tried again");
        bench.prompt("do: say better").await;
        assert_eq!(bench.turns(2).await, TurnStatus::Completed);
        assert_eq!(bench.last_text(), "better");
        bench.stop().await;
    });
}

#[test]
fn a_window_that_is_full_is_summarised_and_the_turn_goes_on() {
    in_every_format(async |mut bench| {
        bench.start(After::Start).await;
        bench
            .prompt(&format!("do: say {}", "word ".repeat(1500)))
            .await;
        assert_eq!(bench.turns(1).await, TurnStatus::Completed);
        bench.prompt("do: overflow 6000 | say it fits").await;
        assert_eq!(bench.turns(2).await, TurnStatus::Completed);
        assert_eq!(bench.last_text(), "it fits");
        assert_eq!(bench.kinds(Kind::Summary), 1);
        bench.stop().await;
        bench.assert_all_accepted();
    });
}

/// goose#11996, goose#9938: the turn ends at once, received text is kept, nothing new starts, and the next prompt is
/// answered.
#[test]
fn an_interrupt_in_mid_stream_ends_the_turn_and_frees_the_next() {
    in_every_format(async |mut bench| {
        bench.start(After::Start).await;
        let long = "tick ".repeat(400);
        bench.prompt(&format!("do: slowly 20 {long}")).await;
        bench
            .until("the first words", |disk| disk.seen.len() > 20)
            .await;
        bench.tell(Command::Interrupt).await;
        assert_eq!(bench.turns(1).await, TurnStatus::Interrupted);
        assert_eq!(bench.messages(MessageStatus::Interrupted), 1);
        let seen = bench.disk.lock().unwrap().seen.clone();
        assert!(
            bench.last_text().starts_with(&seen),
            "all that was seen is kept"
        );
        assert_eq!(bench.model.requests().len(), 1);
        bench.prompt("do: say the next").await;
        assert_eq!(bench.turns(2).await, TurnStatus::Completed);
        assert_eq!(bench.last_text(), "the next");
        bench.stop().await;
        bench.assert_all_accepted();
    });
}

#[test]
fn an_interrupt_cancels_a_tool_that_runs() {
    in_every_format(async |mut bench| {
        bench.start(After::Start).await;
        bench
            .prompt(r#"do: call shell {"wait": true} ;; say never"#)
            .await;
        let started = |disk: &Disk| disk.events.iter().any(|e| e.kind() == Kind::ToolStarted);
        bench.until("the start of the tool", started).await;
        bench.tell(Command::Interrupt).await;
        assert_eq!(bench.turns(1).await, TurnStatus::Interrupted);
        bench.prompt("do: say here").await;
        assert_eq!(bench.turns(2).await, TurnStatus::Completed);
        bench.stop().await;
        bench.assert_all_accepted();
    });
}

/// A time limit of the turn ends a streaming reply, a request that the server does not answer, and a running tool.
#[test]
fn a_time_limit_ends_whatever_the_turn_is_doing() {
    in_every_format(async |mut bench| {
        bench.limit_turn_ms(300);
        bench.start(After::Start).await;
        let slowly = format!("do: slowly 20 {}", "tick ".repeat(2_000));
        let tool = r#"do: call shell {"wait": true} ;; say never"#.to_owned();
        for (n, script) in [slowly, "do: hang".to_owned(), tool].iter().enumerate() {
            bench.prompt(script).await;
            assert_eq!(bench.turns(n + 1).await, TurnStatus::Limited, "{script}");
        }
        assert_eq!(bench.kinds(Kind::ToolEnded), 1);
        assert_eq!(bench.messages(MessageStatus::Interrupted), 1);
        bench.limit_turn_ms(60_000);
        bench.prompt("do: say here").await;
        assert_eq!(bench.turns(4).await, TurnStatus::Completed);
        bench.stop().await;
        bench.assert_all_accepted();
    });
}

/// The limit counts from the start of the turn in the journal, so a new process gets no additional time.
#[test]
fn a_time_limit_survives_a_kill() {
    in_every_format(async |mut bench| {
        bench.limit_turn_ms(60_000);
        bench.start(After::Start).await;
        bench.prompt("do: hang").await;
        let sent = |disk: &Disk| disk.events.iter().any(|e| e.kind() == Kind::RequestSent);
        bench.until("the request", sent).await;
        bench.kill().await;
        // As if it had begun a minute earlier.
        for event in &mut bench.disk.lock().unwrap().events {
            event.at = Timestamp::from_millis(event.at.as_millis() - 60_000);
        }
        bench.start(After::Crash).await;
        assert_eq!(bench.turns(1).await, TurnStatus::Limited);
        assert_eq!(bench.kinds(Kind::RequestSent), 1, "nothing more was asked");
        bench.stop().await;
    });
}

/// The process is killed in mid-stream: the new process finds the partial reply, tells the model, and continues.
#[test]
fn a_kill_in_mid_stream_loses_nothing_that_anybody_saw() {
    in_every_format(async |mut bench| {
        bench.start(After::Start).await;
        let long = "tick ".repeat(400);
        bench
            .prompt(&format!("do: slowly 20 {long} ;; say and on it goes"))
            .await;
        bench
            .until("the first words", |disk| disk.seen.len() > 20)
            .await;
        bench.kill().await;
        let seen = bench.disk.lock().unwrap().seen.clone();
        bench.start(After::Crash).await;
        assert_eq!(bench.turns(1).await, TurnStatus::Completed);
        assert_eq!(bench.last_text(), "and on it goes");
        assert!(bench.interrupted_text().starts_with(&seen));
        bench.stop().await;
        bench.assert_all_accepted();
    });
}

/// claude-code#42338, claude-code#93490: a restart between turns does not change the request.
#[test]
fn a_restart_keeps_the_prefix_byte_for_byte() {
    in_every_format(async |mut bench| {
        bench.start(After::Start).await;
        bench.prompt(&format!("do: {LS} ;; say one")).await;
        bench.turns(1).await;
        bench.stop().await;
        bench.start(After::Start).await;
        bench.prompt("do: say two").await;
        bench.turns(2).await;
        bench.stop().await;
        let requests = bench.model.requests();
        let messages = |index: usize| {
            let body: &serde_json::Value = &requests[index].body;
            let list = agentd_core::wire::messages(bench.wire, body).unwrap();
            let mut list: Vec<String> = list.iter().map(ToString::to_string).collect();
            for message in &mut list {
                *message = message.replace(r#""cache_control":{"type":"ephemeral"},"#, "");
            }
            list
        };
        let (before, after) = (messages(1), messages(2));
        assert_eq!(before[..], after[..before.len()]);
        bench.assert_all_accepted();
    });
}
