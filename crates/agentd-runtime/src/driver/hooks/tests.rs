//! Which calls the hooks decide about, and what becomes of arguments that they change.

use super::*;
use agentd_core::event::{HookOutcome, TaskExit, ToolStarted};
use agentd_core::hook::Answer;
use agentd_core::id::{BootId, CallId, TaskId};
use agentd_core::recover::CallFact;
use agentd_core::state::StartedCall;
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use uuid::Uuid;

/// Tools of a program that runs its calls itself. It asks about a call, or not.
struct OfProgram {
    asks: bool,
    never: bool,
}

#[async_trait]
impl Tools for OfProgram {
    fn awaits_decision(&self, _call: &ToolCall) -> bool {
        self.asks
    }

    fn takes_other_input(&self) -> bool {
        false
    }

    fn never_asks(&self) -> bool {
        self.never
    }

    async fn prepare(&self, call: &ToolCall, _consent: Consent, _seen: &SeenFiles) -> Prepared {
        let started = ToolStarted {
            call: call.id.clone(),
            tool: call.name.clone(),
            task: None,
            boot: None,
            change: None,
            patched: Vec::new(),
            may_change_files: false,
        };
        Prepared::Run(started, Vec::new())
    }

    async fn run(&self, _: ToolCall, _: StartedCall, _: watch::Receiver<bool>) -> Finished {
        Finished::new(CallOutcome::Ok, Vec::new())
    }

    async fn find(&self, _: &ToolCall, _: &StartedCall) -> CallFact {
        CallFact::Unknown
    }

    async fn resume(&self, _: ToolCall, _: StartedCall, _: watch::Receiver<bool>) -> Finished {
        Finished::new(CallOutcome::Unknown, Vec::new())
    }

    async fn task_ended(&self, _: TaskId, _: BootId) -> (TaskExit, String) {
        std::future::pending().await
    }
}

/// Hooks that always give this verdict.
struct Always {
    verdict: Verdict,
    invoked: AtomicU32,
}

#[async_trait]
impl Hooks for Always {
    async fn invoke(&self, _invocation: HookInvocation) -> Verdict {
        self.invoked.fetch_add(1, Ordering::AcqRel);
        self.verdict.clone()
    }
}

const ASKING: OfProgram = OfProgram {
    asks: true,
    never: false,
};
const SILENT: OfProgram = OfProgram {
    asks: false,
    never: false,
};

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn prepared(tools: &OfProgram, verdict: Verdict) -> (Prepared, u32) {
    let hooks = Arc::new(Always {
        verdict,
        invoked: AtomicU32::new(0),
    });
    let around: Around = Some((
        Arc::clone(&hooks) as Arc<dyn Hooks>,
        TurnId::new(Uuid::nil()),
    ));
    let call = ToolCall {
        id: CallId::new("c"),
        name: "execute".to_owned(),
        arguments: Arguments::Object(map(&json!({"command": "rm -r x"}))),
        signature: None,
    };
    let seen = SeenFiles::default();
    let (prepared, _) = prepare(tools, around, call, Consent::NotAsked, &seen).await;
    (prepared, hooks.invoked.load(Ordering::Acquire))
}

fn denies() -> Verdict {
    Verdict {
        decision: Decision::Deny,
        ..Verdict::default()
    }
}

/// "Nothing was run" would not be true of it.
#[tokio::test]
async fn hooks_do_not_decide_about_a_call_that_runs_already() {
    let (found, invoked) = prepared(&SILENT, denies()).await;
    assert!(matches!(found, Prepared::Run(..)), "{found:?}");
    assert_eq!(invoked, 0);
    let (found, invoked) = prepared(&ASKING, denies()).await;
    assert!(matches!(found, Prepared::Refuse { .. }), "{found:?}");
    assert_eq!(invoked, 1);
}

/// The program would run its own arguments, not those that the user and the journal see.
#[tokio::test]
async fn a_program_is_not_given_arguments_that_a_hook_has_changed() {
    let changed = |input: Value| Verdict {
        decision: Decision::Allow,
        updated_input: Some(map(&input)),
        ..Verdict::default()
    };
    let (found, _) = prepared(&ASKING, changed(json!({"command": "ls"}))).await;
    let Prepared::Refuse { outcome, blocks } = &found else {
        panic!("{found:?}")
    };
    assert_eq!(*outcome, CallOutcome::Denied);
    assert!(matches!(&blocks[..], [Block::Text { text }] if text.contains("nothing was run")));
    let (found, _) = prepared(&ASKING, changed(json!({"command": "rm -r x"}))).await;
    assert!(matches!(found, Prepared::Run(..)), "{found:?}");
}

/// Regression: a hook whose program does not exist was ignored, and the call ran. With `approval: never`, the call is refused.
#[tokio::test]
async fn a_call_whose_hook_could_not_run_is_asked_about_or_refused() {
    let unheard = || {
        Verdict::of(
            HookEvent::PreToolUse,
            [(HookOutcome::NotRun, Answer::default())],
        )
    };
    let (found, _) = prepared(&ASKING, unheard()).await;
    assert!(
        matches!(&found, Prepared::Ask(why) if why == NOT_HEARD),
        "{found:?}"
    );
    let never = OfProgram {
        asks: true,
        never: true,
    };
    let (found, invoked) = prepared(&never, unheard()).await;
    let Prepared::Refuse { outcome, blocks } = &found else {
        panic!("{found:?}")
    };
    assert_eq!((*outcome, invoked), (CallOutcome::Denied, 1));
    assert!(matches!(&blocks[..], [Block::Text { text }] if text.contains("approval: never")));
    let (found, _) = prepared(&never, Verdict::default()).await;
    assert!(matches!(found, Prepared::Run(..)), "{found:?}");
}
