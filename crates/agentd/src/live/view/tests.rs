//! The view of whole turns, as golden text: at three widths, with and without colours.

use super::*;
use crate::{golden, terminal};
use agentd_core::event::*;
use agentd_core::id::{AgentId, CallId, ConversationId, Incarnation, Seq, TryId};
use agentd_core::message::{Arguments, Block, CallOutcome, Signature, ToolCall, Wire};
use agentd_core::usage::{MicroUsd, Usage};
use serde_json::{Value, json};
use uuid::Uuid;

const PROMPT: PromptId = PromptId::new(Uuid::from_u128(7));
const OTHER: PromptId = PromptId::new(Uuid::from_u128(8));

const ANSWER: &str = "## Done\n\nThe test **passes** now: `max` returned the *smaller* value. This is a long sentence that \
does not fit into a narrow terminal, so it is wrapped between its words.\n\n1. The comparison was reversed.\n2. The test \
checks both orders, which it did not do before; see [the docs](https://example.com/max).\n\n```rust\nfn max(a: u32, b: u32) \
-> u32 { // the larger one\n    if a > b { a } else { b }\n}\n```\n\n| file | lines |\n|---|---|\n| src/lib.rs | 12 |\n";

/// A view, the time, and everything that was shown.
struct Test {
    view: View,
    now: Timestamp,
    width: usize,
    turn: Option<TurnId>,
    requests: u64,
    shown: String,
}

impl Test {
    fn new(scope: Scope, detail: Detail, width: usize) -> Self {
        let options = Options {
            scope,
            detail,
            window: Some(200_000),
        };
        Self {
            view: View::new(options),
            now: Timestamp::from_millis(1_000_000),
            width,
            turn: None,
            requests: 0,
            shown: String::new(),
        }
    }

    fn moment(&self) -> Moment {
        let (now, width) = (self.now, self.width);
        Moment { now, width }
    }

    fn put(&mut self, lines: &[Line]) {
        for line in lines {
            self.shown.push_str(&format!("{line}\n"));
        }
    }

    fn made(&self, body: Body) -> Event {
        Event {
            agent: AgentId::new(Uuid::nil()),
            seq: Seq(1),
            at: self.now,
            conversation: ConversationId::new(Uuid::nil()),
            turn: self.turn,
            body,
        }
    }

    fn event(&mut self, body: impl Into<Body>) {
        let event = self.made(body.into());
        let lines = self.view.event(&event, Some(1), self.moment());
        self.put(&lines);
    }

    fn pass(&mut self, ms: u64) {
        self.now = self.now.plus(ms);
    }

    /// Adds the rows at the bottom, marked.
    fn bottom(&mut self) {
        let mut rows = self.view.growing(self.width);
        rows.extend(self.view.status(self.now, self.width));
        for row in rows {
            assert!(row.width() <= self.width, "{row}");
            self.shown.push_str(&format!("┆{row}\n"));
        }
    }

    fn prompt(&mut self, prompt: PromptId, text: &str) {
        self.event(PromptQueued {
            prompt,
            key: None,
            mode: PromptMode::Queue,
        });
        let blocks = vec![Block::text(text)];
        self.event(Prompt { prompt, blocks });
    }

    fn begin(&mut self, turn: u128, prompt: PromptId) {
        self.turn = Some(TurnId::new(Uuid::from_u128(turn)));
        self.event(TurnStarted::default());
        let prompts = vec![prompt];
        self.event(PromptsTaken { prompts });
    }

    fn request(&self) -> TryId {
        TryId {
            incarnation: Incarnation(1),
            n: self.requests,
        }
    }

    fn send(&mut self) {
        self.requests += 1;
        self.event(RequestSent {
            request: self.request(),
            purpose: Purpose::Answer,
            grant: Grant::default(),
        });
    }

    fn delta(&mut self, text: &str, thinking: &str) {
        let delta = Delta {
            request: self.request().to_string(),
            text: text.to_owned(),
            thinking: thinking.to_owned(),
        };
        let lines = self.view.delta(&delta, self.moment());
        self.put(&lines);
    }

    fn ended(&mut self, outcome: RequestOutcome) {
        let usage = Usage {
            input_tokens: 2_000,
            output_tokens: 150,
            cache_read_tokens: 40_000,
            cache_write_tokens: 0,
        };
        self.event(RequestEnded {
            request: self.request(),
            outcome,
            usage,
            estimated: false,
            cost: Some(MicroUsd(12_300)),
            provider_request: None,
        });
    }

    fn message(&mut self, blocks: Vec<Block>) {
        self.ended(RequestOutcome::Completed);
        self.event(MessageAdded {
            request: Some(self.request()),
            status: MessageStatus::Complete,
            stop: None,
            blocks,
        });
    }

    fn start(&mut self, call: &str, tool: &str) {
        self.event(ToolStarted {
            call: CallId::new(call),
            tool: tool.to_owned(),
            task: None,
            boot: None,
            change: None,
            patched: Vec::new(),
            may_change_files: false,
        });
    }

    fn result(&mut self, call: &str, outcome: CallOutcome, text: &str) {
        let call = CallId::new(call);
        self.event(ToolEnded::new(call.clone(), outcome));
        let blocks = vec![Block::text(text)];
        self.event(ResultAdded {
            call,
            outcome,
            blocks,
        });
    }

    fn end(&mut self, status: TurnStatus) {
        self.event(TurnEnded::with(status));
        self.turn = None;
    }
}

fn call(id: &str, name: &str, arguments: &Value) -> Block {
    Block::ToolCall(ToolCall {
        id: CallId::new(id),
        name: name.to_owned(),
        arguments: Arguments::parse(&arguments.to_string()),
        signature: None,
    })
}

fn thought(text: &str) -> Block {
    Block::Thinking {
        text: text.to_owned(),
        signature: Some(Signature {
            wire: Wire::AnthropicMessages,
            value: "s".to_owned(),
            id: None,
        }),
    }
}

/// A turn with everything in it.
fn whole_turn(detail: Detail, width: usize) -> String {
    let mut test = Test::new(Scope::Prompt(PROMPT), detail, width);
    test.bottom();
    test.prompt(PROMPT, "Fix the failing test");
    test.begin(1, PROMPT);
    test.send();
    test.pass(1_200);
    test.bottom();
    test.delta("", "The test compares both orders.\nI should look at it.");
    test.pass(3_000);
    test.bottom();
    test.delta("I look at", "");
    test.bottom();
    test.delta(" the test.", "");
    let edit = json!({
        "file_path": "src/lib.rs",
        "old_string": "pub fn max(a: u32, b: u32) -> u32 {\n    if a < b { a } else { b }\n}\n",
        "new_string": "/// The larger one.\npub fn max(a: u32, b: u32) -> u32 {\n    if a > b { a } else { b }\n}\n",
    });
    test.message(vec![
        thought("The test compares both orders.\nI should look at it."),
        Block::text("I look at the test."),
        call("a", "read_file", &json!({"file_path": "src/lib.rs"})),
        call("b", "shell", &json!({"command": "cargo test"})),
        call("c", "edit_file", &edit),
    ]);
    test.start("a", "read_file");
    test.result("a", CallOutcome::Ok, "1\n2\n3\n");
    test.start("b", "shell");
    test.pass(2_300);
    test.bottom();
    let output: Vec<String> = (1..=20)
        .map(|n| format!("test number_{n} ... ok"))
        .collect();
    let output = format!(
        "{}\ntest last ... FAILED: {}\nexit code 101",
        output.join("\n"),
        "long ".repeat(30)
    );
    test.result("b", CallOutcome::Error, &output);
    test.start("c", "edit_file");
    test.result("c", CallOutcome::Ok, "Replaced one occurrence.");
    test.send();
    test.ended(RequestOutcome::Failed {
        class: FailureClass::Overloaded,
        status: Some(529),
        retry_after_ms: Some(4_000),
    });
    test.bottom();
    test.pass(3_100);
    test.bottom();
    test.pass(1_000);
    test.bottom();
    test.send();
    for piece in ANSWER.as_bytes().chunks(50) {
        test.delta(std::str::from_utf8(piece).unwrap(), "");
    }
    test.bottom();
    test.message(vec![Block::text(ANSWER)]);
    test.pass(500);
    test.end(TurnStatus::Completed);
    test.bottom();
    test.shown
}

#[test]
fn a_turn_at_each_width() {
    for width in [60, 100, 200] {
        let shown = whole_turn(Detail::Brief, width);
        let plain = terminal::seen(&shown, false);
        golden::check(&format!("live/turn-{width}.txt"), &plain);
        let coloured = terminal::seen(&shown, true).replace('\u{1b}', "\\e");
        golden::check(&format!("live/turn-{width}-coloured.txt"), &coloured);
    }
}

#[test]
fn a_turn_in_full() {
    let shown = terminal::seen(&whole_turn(Detail::Full, 100), false);
    golden::check("live/turn-full.txt", &shown);
    for n in 1..=20 {
        assert!(shown.contains(&format!("test number_{n} ... ok")), "{n}");
    }
    assert!(shown.contains("I should look at it."), "{shown}");
}

#[test]
fn everything_that_an_agent_does_at_the_narrowest() {
    let mut test = Test::new(Scope::Agent, Detail::Brief, 20);
    test.bottom();
    test.prompt(OTHER, "Clean up");
    test.begin(1, OTHER);
    test.send();
    let calls = vec![
        Block::text("I remove the old files."),
        call("a", "shell", &json!({"command": "rm -r target/old"})),
        call(
            "b",
            "agent",
            &json!({"kind": "reviewer", "prompt": "Look at it"}),
        ),
    ];
    test.message(calls);
    let approval = ApprovalId::new(Uuid::from_u128(3));
    test.event(ApprovalRequested::new(approval, CallId::new("a")));
    test.bottom();
    test.event(ApprovalAnswered::new(approval, Decision::Allow));
    test.start("a", "shell");
    test.start("b", "agent");
    test.pass(61_000);
    test.bottom();
    test.result("a", CallOutcome::Ok, "removed");
    test.result("b", CallOutcome::Denied, "A rule denies it.");
    test.event(TurnPaused {
        reason: PauseReason::MissingKey,
    });
    test.bottom();
    test.event(TurnContinued {});
    test.bottom();
    test.end(TurnStatus::Failed);
    test.bottom();
    golden::check("live/agent-20.txt", &terminal::seen(&test.shown, false));
}

#[test]
fn another_turn_is_only_in_the_status_line() {
    let mut test = Test::new(Scope::Prompt(PROMPT), Detail::Brief, 80);
    test.begin(1, OTHER);
    test.send();
    test.delta("Not for you.", "");
    test.bottom();
    test.message(vec![
        Block::text("Not for you."),
        call("a", "shell", &json!({"command": "make"})),
    ]);
    test.start("a", "shell");
    test.bottom();
    test.result("a", CallOutcome::Ok, "made");
    test.end(TurnStatus::Completed);
    test.begin(2, PROMPT);
    test.send();
    test.delta("For ", "");
    test.message(vec![Block::text("For you.")]);
    test.end(TurnStatus::Completed);
    let shown = terminal::seen(&test.shown, false);
    assert!(
        !shown.contains("Not for you") && !shown.contains("made"),
        "{shown}"
    );
    assert!(shown.contains("queued behind: $ make"), "{shown}");
    assert_eq!(shown.matches("For you.").count(), 1, "{shown}");
}

#[test]
fn what_was_streamed_is_shown_once_and_a_gap_is_filled() {
    let mut test = Test::new(Scope::Agent, Detail::Brief, 80);
    test.begin(1, OTHER);
    test.send();
    test.delta("One\n\nTw", "");
    test.message(vec![Block::text("One\n\nTwo\n\nThree")]);
    test.send();
    test.delta("Fo", "");
    // A piece is missing.
    test.delta("r", "");
    test.message(vec![Block::text("Four")]);
    let shown = terminal::seen(&test.shown, false);
    assert_eq!(shown, "One\n\nTwo\n\nThree\n\nFor\n\nFour\n");
}

#[test]
fn a_reply_that_broke_off_is_marked() {
    let mut test = Test::new(Scope::Agent, Detail::Brief, 80);
    test.begin(1, OTHER);
    test.send();
    test.delta("Once upon", "");
    test.ended(RequestOutcome::Failed {
        class: FailureClass::Dropped,
        status: None,
        retry_after_ms: None,
    });
    test.event(MessageAdded {
        request: Some(test.request()),
        status: MessageStatus::Superseded,
        stop: None,
        blocks: vec![Block::text("Once upon")],
    });
    test.send();
    test.delta("Once upon a time", "");
    test.message(vec![Block::text("Once upon a time")]);
    let shown = terminal::seen(&test.shown, false);
    let expected = "the connection to the provider broke\n\nOnce upon\n(the reply broke off)\n\nOnce upon a time\n";
    assert_eq!(shown, expected);
}

#[test]
fn a_primed_view_knows_what_runs_and_shows_nothing_of_it() {
    let mut test = Test::new(Scope::Agent, Detail::Brief, 80);
    test.turn = Some(TurnId::new(Uuid::from_u128(1)));
    let message = MessageAdded {
        request: None,
        status: MessageStatus::Complete,
        stop: None,
        blocks: vec![
            Block::text("Before."),
            call("a", "shell", &json!({"command": "make"})),
        ],
    };
    let started = ToolStarted {
        call: CallId::new("a"),
        tool: "shell".to_owned(),
        task: None,
        boot: None,
        change: None,
        patched: Vec::new(),
        may_change_files: false,
    };
    for body in [Body::from(message), Body::from(started)] {
        let event = test.made(body);
        test.view.prime(&event, test.moment());
    }
    assert_eq!(test.view.answered, None);
    test.pass(2_000);
    test.bottom();
    let shown = terminal::seen(&test.shown, false);
    assert!(
        shown.starts_with('┆') && shown.ends_with("$ make · 2 s\n"),
        "{shown}"
    );
    test.result("a", CallOutcome::Ok, "made");
    let shown = terminal::seen(&test.shown, false);
    assert!(shown.contains("\n$ make\n  made\n  2.0 s\n"), "{shown}");
    let answer = test.view.answer("**Done**", 80);
    assert_eq!(answer, [Line::default(), Line::painted(HEADING, "Done")]);
}

#[test]
fn a_plan_is_shown_when_it_is_set_and_a_patch_file_by_file() {
    let mut test = Test::new(Scope::Agent, Detail::Brief, 80);
    test.turn = Some(TurnId::new(Uuid::from_u128(1)));
    let patch = "*** Begin Patch\n*** Update File: a.rs\n@@ fn a() {\n-x\n+y\n+z\n*** Add File: b.md\n+b\n*** End Patch";
    test.message(vec![
        call("a", "update_plan", &json!({"steps": []})),
        call("b", "apply_patch", &json!({"input": patch})),
        call("c", "update_plan", &json!({"steps": 3})),
    ]);
    test.start("a", "update_plan");
    let plan = PlanSet {
        steps: vec![PlanStep {
            step: "look".to_owned(),
            state: StepState::InProgress,
        }],
        explanation: None,
    };
    test.result("a", CallOutcome::Ok, "The plan was updated.");
    test.event(plan);
    test.start("b", "apply_patch");
    test.result("b", CallOutcome::Ok, "Updated a.rs.");
    test.result("c", CallOutcome::Error, "Invalid arguments.");
    let shown = terminal::seen(&test.shown, false);
    let expected = "plan: 0 of 1 done\n  [>] look\nedit a.rs +2 −1\n  @@ fn a() {\n  -x\n  +y\n  +z\nwrite b.md +1\n  +b\n\
                    update the plan\n  Invalid arguments.\n  failed\n";
    assert!(shown.ends_with(expected), "{shown}");
}

#[test]
fn an_error_is_shown_to_its_end_and_long_lines_are_cut() {
    let mut test = Test::new(Scope::Agent, Detail::Brief, 40);
    test.begin(1, OTHER);
    test.send();
    let content = "x".repeat(1_000_000);
    let file = json!({"file_path": "a", "content": content});
    test.message(vec![
        call("a", "write_file", &file),
        call("b", "shell", &json!({"command": content})),
    ]);
    let error = "a exists, and you have not read it in this conversation; nothing was written.";
    test.result("a", CallOutcome::Error, error);
    test.start("b", "shell");
    test.result("b", CallOutcome::Ok, &content);
    let shown = terminal::seen(&test.shown, false);
    let expected = "  a exists, and you have not read it in\n  this conversation; nothing was\n  written.\n  failed\n";
    assert!(shown.contains(expected), "{shown}");
    assert!(shown.len() < 1000, "{}", shown.len());
}

/// A sequence that would move the cursor is not counted and not shown.
#[test]
fn control_sequences_are_removed_before_anything_is_measured() {
    let mut test = Test::new(Scope::Agent, Detail::Brief, 40);
    test.begin(1, OTHER);
    test.send();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2Jtext\u{202e}\u{FDD1}";
    test.delta(evil, "\u{1b}[2Jhm");
    test.message(vec![
        Block::text(evil),
        call("a", "shell", &json!({"command": evil})),
        call(
            "b",
            "write_file",
            &json!({"file_path": evil, "content": evil}),
        ),
    ]);
    test.start("a", "shell");
    test.bottom();
    test.result("a", CallOutcome::Error, evil);
    test.start("b", "write_file");
    test.bottom();
    let harmless = test.shown.chars().all(|c| !c.is_control() || c == '\n');
    assert!(harmless, "{:?}", test.shown);
    // What is said and printed loses its sequences; no part of a command or a file's name is hidden.
    let shown = terminal::seen(&test.shown, false);
    let with_it: Vec<&str> = shown
        .lines()
        .filter(|line| line.contains("owned"))
        .collect();
    assert!(!with_it.is_empty(), "{shown}");
    assert!(
        with_it.iter().all(|line| line.contains("\\u{1b}]0;owned")),
        "{shown}"
    );
    assert!(shown.lines().any(|line| line == "text"), "{shown}");
}

#[test]
fn an_event_after_the_end_of_a_turn_does_not_begin_it_again() {
    let mut test = Test::new(Scope::Agent, Detail::Brief, 80);
    test.prompt(OTHER, "Clean up");
    test.begin(1, OTHER);
    assert!(test.view.status(test.now, 80).is_some());
    test.event(TurnEnded::with(TurnStatus::Completed));
    // For example a checkpoint, which belongs to the turn.
    test.event(Notice {
        cause: NoticeCause::Hook,
        text: "checked".to_owned(),
    });
    assert!(test.view.status(test.now, 80).is_none());
}

/// A prompt that waits behind a turn is shown where it is answered, below the answer before it.
#[test]
fn a_queued_prompt_is_shown_when_it_is_answered() {
    let mut test = Test::new(Scope::Agent, Detail::Brief, 80);
    test.prompt(PROMPT, "first");
    test.begin(1, PROMPT);
    test.prompt(OTHER, "second\nof two lines");
    test.message(vec![Block::text("One.")]);
    test.event(TurnEnded::with(TurnStatus::Completed));
    test.turn = None;
    test.begin(2, OTHER);
    test.message(vec![Block::text("Two.")]);
    let shown = terminal::uncoloured(&test.shown);
    let (first, second) = shown.split_once("tokens in").unwrap();
    assert!(
        first.starts_with("> first\nqueued: second\n\nOne.\n\n"),
        "{shown}"
    );
    assert!(
        second.ends_with("\n\n> second\nof two lines\n\nTwo.\n"),
        "{shown}"
    );
    assert!(!test.view.has_waiting());
}

/// The text for the model is not for the user, who knows it.
#[test]
fn an_interrupted_turn_says_so_once() {
    let mut test = Test::new(Scope::Agent, Detail::Brief, 80);
    test.prompt(PROMPT, "first");
    test.begin(1, PROMPT);
    test.event(Notice {
        cause: NoticeCause::Interrupted,
        text: "The user interrupted this turn. Do not continue it.".to_owned(),
    });
    test.event(TurnEnded::with(TurnStatus::Interrupted));
    let expected = "> first\nturn ended: interrupted\n";
    assert_eq!(terminal::uncoloured(&test.shown), expected);
}

/// A turn that has just begun is not another one.
#[test]
fn a_prompt_is_not_queued_behind_its_own_turn() {
    let mut test = Test::new(Scope::Prompt(PROMPT), Detail::Brief, 80);
    test.prompt(PROMPT, "first");
    test.turn = Some(TurnId::new(Uuid::from_u128(1)));
    test.event(TurnStarted::default());
    let status = |test: &Test| {
        let line = test.view.status(test.now, 80);
        line.map(|line| terminal::uncoloured(&line.to_string()))
            .unwrap_or_default()
    };
    assert!(status(&test).ends_with("starting"), "{}", status(&test));
    test.send();
    let behind = status(&test);
    assert!(behind.contains("queued behind: waiting"), "{behind}");
}

#[test]
fn a_prompt_whose_turn_may_not_begin_says_why() {
    let mut test = Test::new(Scope::Prompt(PROMPT), Detail::Brief, 80);
    test.prompt(PROMPT, "first");
    let status = |test: &Test| {
        let line = test.view.status(test.now, 80);
        line.map(|line| terminal::uncoloured(&line.to_string()))
            .unwrap_or_default()
    };
    test.view
        .set_waits(Some("its turn waits: the disk is \u{1b}[2Jfull"));
    let waits = status(&test);
    assert!(waits.contains("its turn waits: the disk is"), "{waits}");
    assert!(!waits.contains('\u{1b}'), "{waits:?}");
    test.view.set_waits(None);
    assert!(status(&test).ends_with("starting"), "{}", status(&test));
    test.view.set_waits(Some("its turn waits"));
    test.begin(1, PROMPT);
    test.send();
    assert!(!status(&test).contains("waits"), "{}", status(&test));
}

/// What a prompt is shown as when it is answered.
#[test]
fn a_prompt_that_was_set_aside_is_shown_when_it_is_answered_after_all_and_a_blocked_one_does_not_wait()
 {
    let mut test = Test::new(Scope::Agent, Detail::Brief, 80);
    let prompts = vec![OTHER];
    test.prompt(PROMPT, "first");
    test.begin(1, PROMPT);
    test.prompt(OTHER, "second");
    test.event(TurnEnded::with(TurnStatus::Interrupted));
    test.turn = None;
    test.event(PromptsSetAside {
        prompts: prompts.clone(),
    });
    assert!(!test.view.has_waiting());
    test.event(PromptsRequeued { prompts });
    assert!(test.view.has_waiting());
    test.begin(2, OTHER);
    let shown = terminal::uncoloured(&test.shown);
    assert!(shown.ends_with("\n> second\n"), "{shown}");
    // A hook refuses the next one.
    let third = PromptId::new(Uuid::from_u128(9));
    test.prompt(third, "third");
    assert!(test.view.has_waiting());
    test.event(PromptBlocked { prompt: third });
    assert!(!test.view.has_waiting());
}

/// The status line of the call has what the server reported last, and the result does not.
#[test]
fn the_progress_of_a_call_is_in_the_status_line() {
    let mut test = Test::new(Scope::Agent, Detail::Brief, 80);
    test.prompt(PROMPT, "first");
    test.begin(1, PROMPT);
    test.send();
    test.message(vec![call("a", "mcp__fs__read", &json!({}))]);
    test.start("a", "mcp__fs__read");
    let status = |test: &Test| {
        let line = test.view.status(test.now, 80);
        line.map(|line| terminal::uncoloured(&line.to_string()))
            .unwrap_or_default()
    };
    let mut progress = agentd_core::mcp::CallProgress {
        call: CallId::new("a"),
        progress: 3.0,
        total: Some(5.0),
        message: Some("the third".to_owned()),
    };
    test.view.progress(&progress);
    assert!(
        status(&test).contains("(3/5, the third)"),
        "{}",
        status(&test)
    );
    (progress.progress, progress.total, progress.message) = (3.5, None, None);
    test.view.progress(&progress);
    assert!(status(&test).contains("(3.5)"), "{}", status(&test));
    // A call that is not known.
    progress.call = CallId::new("b");
    test.view.progress(&progress);
    test.result("a", CallOutcome::Ok, "done");
    assert!(!status(&test).contains("(3.5)"), "{}", status(&test));
    assert!(!terminal::uncoloured(&test.shown).contains("3.5"));
}
