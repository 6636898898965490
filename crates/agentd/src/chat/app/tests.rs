//! The chat without a terminal and without a connection: keys and events in, effects and screens out, with a fixed clock.

mod approving;
mod files;
mod hostile;
mod prompt_line;
mod screens;

use super::*;
use crate::chat::approvals::tests::approval;
use crate::chat::draw::{Look, draw};
use crate::chat::effect::{Answer, Change};
use crate::chat::style::Colours;
use crate::error::{Error, Exit};
use crate::follow::Seen;
use crate::live::Scope;
use crate::render::Detail;
use agentd_client::api::{
    AgentRef, Approval, Current, Delta, Process, ProcessState, Queue, QueuedPrompt, Usage,
};
use agentd_core::event::{
    Body, Event, Grant, LimitKind, MessageAdded, MessageStatus, Mode, Prompt, PromptMode,
    Purpose as For, RequestEnded, RequestOutcome, RequestSent, TurnEnded, TurnStarted, TurnStatus,
};
use agentd_core::id::{AgentId, ConversationId, Incarnation, Seq, TryId};
use agentd_core::message::Block;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use uuid::Uuid;

const NONE: KeyModifiers = KeyModifiers::NONE;
const CTRL: KeyModifiers = KeyModifiers::CONTROL;
const ALT: KeyModifiers = KeyModifiers::ALT;

fn agent() -> Agent {
    let conversation = ConversationId::new(Uuid::nil());
    Agent {
        id: AgentId::new(Uuid::nil()),
        name: "coder".to_owned(),
        aliases: Vec::new(),
        mode: Mode::Persistent,
        phase: Phase::Idle,
        process: Process {
            state: ProcessState::Asleep,
            pid: None,
        },
        generation: 1,
        head: Seq(0),
        conversation: Some(Current {
            id: conversation,
            ordinal: 1,
            parent: None,
            turns: 0,
            usage: Usage::default(),
        }),
        title: None,
        model: Some("some-model".to_owned()),
        provider: Some("anthropic".to_owned()),
        cwd: Some("/home/me/src".to_owned()),
        usage: Usage::default(),
        created_at: Timestamp::default(),
        updated_at: Timestamp::default(),
        started_at: None,
        completed_at: None,
        turn: None,
        last_turn: None,
        summary: None,
        plan: None,
        error: None,
        paused: None,
        queued: 0,
        approvals: Vec::new(),
        tasks: Vec::new(),
        schedules: Vec::new(),
        parent: None,
        children: Vec::new(),
        archived: false,
        stopped: false,
        held: false,
        displaced: None,
        untrusted_hooks: None,
        broken_hooks: None,
        no_tools: None,
        missing_env: Vec::new(),
        missing_services: Vec::new(),
        missing_keys: Vec::new(),
    }
}

struct Test {
    app: App,
    now: Timestamp,
    size: Size,
    colours: Colours,
    seq: u64,
    turn: Option<TurnId>,
}

impl Test {
    fn new() -> Self {
        Self::after(Vec::new(), true)
    }

    /// With a history.
    fn after(events: Vec<Event>, is_first: bool) -> Self {
        let now = Timestamp::from_millis(1_000_000);
        let begin = Begin {
            agent: agent(),
            options: Options {
                scope: Scope::Agent,
                detail: Detail::Brief,
                window: Some(200_000),
            },
            numbers: Numbers::new(),
            newest: Older {
                context: Vec::new(),
                events,
                is_first,
            },
            own: Vec::new(),
        };
        let mut test = Self {
            app: App::new(begin, now),
            now,
            size: Size {
                width: 100,
                height: 20,
            },
            colours: Colours::None,
            seq: 100_000,
            turn: None,
        };
        test.screen();
        test.update(Input::Tick);
        test
    }

    fn update(&mut self, input: Input) -> Vec<Effect> {
        self.app.update(input, self.now)
    }

    fn pass(&mut self, ms: u64) -> Vec<Effect> {
        self.now = self.now.plus(ms);
        self.update(Input::Tick)
    }

    fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Vec<Effect> {
        self.update(Input::Key(KeyEvent::new(code, modifiers)))
    }

    fn ctrl(&mut self, c: char) -> Vec<Effect> {
        self.key(KeyCode::Char(c), CTRL)
    }

    fn enter(&mut self) -> Vec<Effect> {
        self.key(KeyCode::Enter, NONE)
    }

    fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            self.key(KeyCode::Char(c), NONE);
        }
    }

    fn answer(&mut self, answer: Answer) -> Vec<Effect> {
        self.update(Input::Answer(answer))
    }

    fn event(&mut self, body: impl Into<Body>) -> Vec<Effect> {
        self.seq += 1;
        let event = made(self.seq, self.now, self.turn, body);
        self.update(Input::Seen(Seen::Event(Box::new(event))))
    }

    fn begin_turn(&mut self) {
        self.turn = Some(TurnId::new(Uuid::from_u128(1)));
        self.event(TurnStarted::default());
    }

    fn end_turn(&mut self) {
        self.event(TurnEnded::with(TurnStatus::Completed));
        self.turn = None;
    }

    fn waits_for(&mut self, approvals: Vec<Approval>) {
        let mut agent = agent();
        agent.approvals = approvals;
        agent.turn = self.turn;
        self.answer(Answer::Agent(Ok(Box::new(agent))));
    }

    fn drawn(&mut self) -> Buffer {
        let Size { width, height } = self.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let look = Look {
            colours: self.colours,
            home: Some("/home/me".to_owned()),
        };
        self.app.prepare(self.size, self.now);
        let app = &self.app;
        terminal.draw(|frame| draw(app, &look, frame)).unwrap();
        terminal.backend().buffer().clone()
    }

    /// The rows of the screen, without spaces at their ends.
    fn screen(&mut self) -> String {
        let buffer = self.drawn();
        let width = usize::from(self.size.width).max(1);
        let rows = buffer.content().chunks(width).map(|cells| {
            let row: String = cells.iter().map(|cell| cell.symbol()).collect();
            row.trim_end().to_owned()
        });
        rows.collect::<Vec<_>>().join("\n")
    }
}

fn made(seq: u64, at: Timestamp, turn: Option<TurnId>, body: impl Into<Body>) -> Event {
    Event {
        agent: AgentId::new(Uuid::nil()),
        seq: Seq(seq),
        at,
        conversation: ConversationId::new(Uuid::nil()),
        turn,
        body: body.into(),
    }
}

fn prompt(text: &str) -> Prompt {
    Prompt {
        prompt: PromptId::new(Uuid::nil()),
        blocks: vec![Block::text(text)],
    }
}

fn message(text: &str) -> MessageAdded {
    MessageAdded {
        request: None,
        status: MessageStatus::Complete,
        stop: None,
        blocks: vec![Block::text(text)],
    }
}

fn sent(n: u64) -> RequestSent {
    RequestSent {
        request: TryId {
            incarnation: Incarnation(1),
            n,
        },
        purpose: For::Answer,
        grant: Grant::default(),
    }
}

fn queued(n: u128, text: &str) -> QueuedPrompt {
    QueuedPrompt {
        prompt: PromptId::new(Uuid::from_u128(n)),
        position: usize::try_from(n).unwrap(),
        mode: PromptMode::Queue,
        at: Timestamp::default(),
        edits: 2,
        text: text.to_owned(),
        attachments: Vec::new(),
    }
}

fn queue(prompts: Vec<QueuedPrompt>) -> Answer {
    let agent = AgentRef {
        id: AgentId::new(Uuid::nil()),
        name: None,
    };
    Answer::Queue(Ok(Queue { agent, prompts }))
}

fn refused() -> Error {
    Error::new(Exit::Refused, "the queue is full").next("wait")
}

#[test]
fn escape_interrupts_the_turn() {
    let mut test = Test::new();
    assert_eq!(test.key(KeyCode::Esc, NONE), []);
    test.begin_turn();
    assert_eq!(test.key(KeyCode::Esc, NONE), [Effect::Interrupt]);
}

#[test]
fn ctrl_c_clears_then_interrupts_and_twice_leaves() {
    let mut test = Test::new();
    test.begin_turn();
    test.type_text("draft");
    assert_eq!(test.ctrl('c'), []);
    assert!(test.app.composer.is_empty());
    test.pass(3000);
    assert_eq!(test.ctrl('c'), [Effect::Interrupt]);
    assert_eq!(test.ctrl('c'), [Effect::Quit]);
    // What was cleared can be taken back.
    test.key(KeyCode::Up, NONE);
    assert_eq!(test.app.composer.text(), "draft");
}

#[test]
fn ctrl_d_leaves_only_if_the_prompt_is_empty() {
    let mut test = Test::new();
    test.type_text("ab");
    test.key(KeyCode::Left, NONE);
    assert_eq!(test.ctrl('d'), []);
    assert_eq!(test.app.composer.text(), "a");
    test.key(KeyCode::Backspace, NONE);
    assert_eq!(test.ctrl('d'), [Effect::Quit]);
}

#[test]
fn an_approval_is_answered_in_each_way_for_the_call_that_was_shown() {
    let mut test = Test::new();
    test.begin_turn();
    test.pass(2000);
    let id = approval(1, "").id;
    for (key, always) in [('y', false), ('a', true)] {
        test.waits_for(vec![approval(1, "cargo test")]);
        assert!(test.screen().contains("cargo test"));
        test.pass(500);
        let approve = Effect::Approve {
            approval: id,
            hash: "hash1".to_owned(),
            always,
        };
        if always {
            assert_eq!(test.key(KeyCode::Char(key), NONE), []);
            assert!(test.screen().contains("a again or Enter"));
        }
        assert_eq!(test.key(KeyCode::Char(key), NONE), [approve]);
        assert!(matches!(test.app.focus, Focus::Prompt));
        test.answer(Answer::Changed(Ok(Change::Done(String::new()))));
        test.waits_for(Vec::new());
        test.pass(2000);
    }
    test.waits_for(vec![approval(1, "rm -rf target")]);
    test.pass(500);
    assert_eq!(test.key(KeyCode::Char('n'), NONE), []);
    assert!(test.screen().contains("reason>"));
    test.type_text("not that");
    let deny = Effect::Deny {
        approval: id,
        hash: Some("hash1".to_owned()),
        reason: Some("not that".to_owned()),
    };
    assert_eq!(test.enter(), [deny]);
    assert_eq!(test.app.purpose, Purpose::Prompt);
}

/// Calls often ask one after the other: each takes the keys again, as long as nothing is typed.
#[test]
fn approvals_are_answered_one_after_the_other() {
    let mut test = Test::new();
    test.begin_turn();
    test.pass(2000);
    for n in 1..4 {
        test.waits_for(vec![approval(n, "cargo test")]);
        assert!(matches!(test.app.focus, Focus::Approval), "{n}");
        test.pass(500);
        let effects = test.key(KeyCode::Char('y'), NONE);
        assert!(matches!(effects[..], [Effect::Approve { .. }]), "{n}");
        test.waits_for(Vec::new());
        test.pass(100);
    }
    // So does one after a denial, and one that could not be approved.
    test.waits_for(vec![approval(4, "rm x")]);
    test.pass(500);
    test.key(KeyCode::Char('n'), NONE);
    test.type_text("no");
    test.enter();
    test.waits_for(vec![approval(5, "rm y")]);
    assert!(matches!(test.app.focus, Focus::Approval));
    test.pass(500);
    test.key(KeyCode::Char('y'), NONE);
    test.answer(Answer::Changed(Err(refused())));
    test.waits_for(vec![approval(5, "rm y")]);
    assert!(matches!(test.app.focus, Focus::Approval));
}

#[test]
fn a_call_that_leaves_the_sandbox_is_never_allowed_always() {
    let mut test = Test::new();
    let mut leaves = approval(1, "touch ~/x");
    let call = leaves.what.as_mut().unwrap();
    call.input["escalate"] = "it needs to".into();
    test.waits_for(vec![leaves]);
    let screen = test.screen();
    assert!(screen.contains("y yes · n no"), "{screen}");
    test.pass(500);
    assert_eq!(test.key(KeyCode::Char('a'), NONE), []);
    let screen = test.screen();
    assert!(screen.contains("y approves this call only"), "{screen}");
    let effects = test.key(KeyCode::Char('y'), NONE);
    assert!(matches!(effects[..], [Effect::Approve { .. }]));
}

#[test]
fn the_last_row_says_what_enter_does_now() {
    let mut test = Test::new();
    let says = |test: &mut Test, what: &str| {
        let screen = test.screen();
        let last = screen.lines().last().unwrap_or_default();
        assert!(last.contains(what), "{what}: {last}");
    };
    says(&mut test, "Enter sends");
    test.type_text("/");
    says(&mut test, "Enter chooses");
    test.ctrl('u');
    test.ctrl('r');
    says(&mut test, "Enter takes it");
    test.key(KeyCode::Esc, NONE);
    test.begin_turn();
    says(&mut test, "Enter steers");
    test.answer(queue(vec![queued(1, "later")]));
    test.ctrl('q');
    assert!(!test.screen().contains("Enter steers"));
    test.key(KeyCode::Char('e'), NONE);
    says(&mut test, "Enter saves");
    test.key(KeyCode::Esc, NONE);
    test.pass(2000);
    test.waits_for(vec![approval(1, "rm x")]);
    test.pass(500);
    test.key(KeyCode::Char('n'), NONE);
    says(&mut test, "Enter denies");
    assert!(!test.screen().contains("Ctrl-O answers it"));
}

#[test]
fn another_model_brings_the_size_of_its_window() {
    let mut test = Test::new();
    let change = Change::Model {
        message: "model: large".to_owned(),
        window: Some(1_000_000),
    };
    test.answer(Answer::Changed(Ok(change)));
    test.begin_turn();
    test.event(sent(1));
    test.event(RequestEnded {
        request: sent(1).request,
        outcome: RequestOutcome::Completed,
        usage: agentd_core::usage::Usage {
            input_tokens: 100_000,
            ..agentd_core::usage::Usage::default()
        },
        estimated: false,
        cost: None,
        provider_request: None,
    });
    test.end_turn();
    let screen = test.screen();
    assert!(screen.contains("context 10% of 1.0M"), "{screen}");
}

#[test]
fn a_whole_call_is_shown_and_closed() {
    let mut test = Test::new();
    test.waits_for(vec![approval(1, &"echo line\n".repeat(60))]);
    test.pass(500);
    test.key(KeyCode::Char('v'), NONE);
    assert!(test.screen().contains("The call that waits for approval"));
    test.key(KeyCode::End, NONE);
    assert!(test.screen().contains("because no rule allows it"));
    test.key(KeyCode::Esc, NONE);
    assert!(matches!(test.app.focus, Focus::Approval));
}

#[test]
fn an_approval_does_not_take_keys_from_a_user_who_types() {
    let mut test = Test::new();
    test.begin_turn();
    test.type_text("wh");
    test.waits_for(vec![approval(1, "ls")]);
    test.pass(5000);
    test.type_text("y");
    assert_eq!(test.app.composer.text(), "why");
    test.ctrl('o');
    assert!(matches!(test.app.focus, Focus::Approval));
    test.pass(500);
    let effects = test.key(KeyCode::Char('y'), NONE);
    assert!(matches!(effects[..], [Effect::Approve { .. }]));
    assert_eq!(test.app.composer.text(), "why");
}

#[test]
fn a_call_that_was_answered_elsewhere_needs_no_reason() {
    let mut test = Test::new();
    test.waits_for(vec![approval(1, "ls")]);
    test.pass(500);
    test.key(KeyCode::Char('n'), NONE);
    test.waits_for(Vec::new());
    assert_eq!(test.app.purpose, Purpose::Prompt);
    assert!(test.screen().contains("answered elsewhere"));
}

#[test]
fn shift_tab_goes_through_the_approval_modes() {
    let mut test = Test::new();
    let modes = [
        ApprovalMode::Always,
        ApprovalMode::Never,
        ApprovalMode::OnRequest,
    ];
    for mode in modes {
        let effects = test.key(KeyCode::BackTab, KeyModifiers::SHIFT);
        assert_eq!(effects, [Effect::SetApprovalMode(mode)]);
        assert!(test.screen().contains(&render::word(mode)));
    }
}

#[test]
fn a_lost_connection_is_shown_until_it_is_found() {
    let mut test = Test::new();
    test.answer(Answer::Agent(Ok(Box::new(agent()))));
    test.update(Input::Seen(Seen::Lost));
    assert!(test.screen().contains("connection to the daemon lost"));
    let effects = test.update(Input::Seen(Seen::Found));
    assert!(effects.contains(&Effect::LoadAgent), "{effects:?}");
    assert!(!test.screen().contains("lost"));
}

#[test]
fn a_turn_that_may_not_begin_is_shown_with_its_reason() {
    let mut test = Test::new();
    let mut waits = agent();
    waits.error = Some("its turn waits: the disk is full".to_owned());
    waits.queued = 1;
    test.answer(Answer::Agent(Ok(Box::new(waits))));
    assert!(test.screen().contains("its turn waits: the disk is full"));
    test.answer(Answer::Agent(Ok(Box::new(agent()))));
    assert!(!test.screen().contains("its turn waits"));
}

#[test]
fn a_reply_streams_and_is_there_once() {
    let mut test = Test::new();
    test.begin_turn();
    test.event(sent(1));
    for text in ["Hello ", "**wor", "ld**"] {
        let delta = Delta {
            request: "1.1".to_owned(),
            text: text.to_owned(),
            thinking: String::new(),
        };
        test.update(Input::Seen(Seen::Delta(delta)));
    }
    let screen = test.screen();
    assert!(
        screen.contains("Hello world") && screen.contains("writing"),
        "{screen}"
    );
    test.event(message("Hello **world**"));
    test.end_turn();
    assert_eq!(test.screen().matches("Hello world").count(), 1);
}

#[test]
fn one_request_at_a_time_asks_what_an_event_changed() {
    let mut test = Test::new();
    test.answer(Answer::Agent(Ok(Box::new(agent()))));
    test.turn = Some(TurnId::new(Uuid::from_u128(1)));
    let first = test.event(TurnStarted::default());
    assert!(first.contains(&Effect::LoadAgent), "{first:?}");
    let second = test.event(TurnEnded::with(TurnStatus::Completed));
    assert!(!second.contains(&Effect::LoadAgent), "{second:?}");
    let third = test.answer(Answer::Agent(Ok(Box::new(agent()))));
    assert!(third.contains(&Effect::LoadAgent), "{third:?}");
}

#[test]
fn a_long_history_is_loaded_page_by_page_as_the_user_scrolls() {
    const ALL: u64 = 20_000;
    const PAGE: u64 = 500;
    let page = |end: u64| -> Vec<Event> {
        let seqs = end.saturating_sub(PAGE)..end;
        let at = Timestamp::from_millis(1);
        let body = |seq: u64| message(&format!("message {seq}"));
        seqs.map(|seq| made(seq + 1, at, None, body(seq + 1)))
            .collect()
    };
    let mut test = Test::after(page(ALL), false);
    test.key(KeyCode::Home, CTRL);
    // The page before the newest one was asked for in advance.
    let mut effects = vec![Effect::LoadOlder(Seq(ALL - PAGE + 1))];
    let mut pages = 1;
    while let Some(Effect::LoadOlder(before)) = effects.pop() {
        let end = before.0 - 1;
        let older = Older {
            context: Vec::new(),
            events: page(end),
            is_first: end <= PAGE,
        };
        effects = test.answer(Answer::Older(Ok(older)));
        pages += 1;
    }
    assert_eq!(pages, ALL / PAGE);
    assert!(test.screen().contains("message 1\n"), "{}", test.screen());
    test.key(KeyCode::End, CTRL);
    assert!(test.screen().contains("message 20000"));
    test.key(KeyCode::PageUp, NONE);
    assert!(test.screen().contains("scrolled back"));
}

#[test]
fn a_change_that_failed_is_shown_with_what_to_do() {
    let mut test = Test::new();
    test.answer(Answer::Changed(Err(refused())));
    let screen = test.screen();
    assert!(screen.contains("error: the queue is full"), "{screen}");
    assert!(screen.contains("next: wait"), "{screen}");
    test.pass(60_000);
    assert!(!test.screen().contains("queue is full"));
}

#[test]
fn a_cleared_log_is_not_shown() {
    let mut test = Test::new();
    test.event(message("old"));
    let cleared = Change::Cleared("conversation 2".to_owned());
    test.answer(Answer::Changed(Ok(cleared)));
    let screen = test.screen();
    assert!(!screen.contains("old"), "{screen}");
    assert!(screen.contains("conversation 2"), "{screen}");
}
