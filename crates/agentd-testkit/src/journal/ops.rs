//! What can happen to an agent in a [`super::driver::JournalDriver`]. proptest generates and shrinks these ops.

use agentd_core::event::{FailureClass, PromptMode, ResetTo};
use agentd_core::message::{CallOutcome, Wire};
use proptest::prelude::*;

/// One thing that happens. An op that is not possible at the moment does nothing.
#[derive(Clone, Debug)]
pub enum Op {
    Prompt {
        mode: PromptMode,
        /// With an image and another file.
        image: bool,
    },
    /// The model's reply arrives completely.
    Reply(ReplyOp),
    /// The request fails after a part of the reply has arrived.
    Fail {
        class: FailureClass,
        partial: ReplyOp,
    },
    /// A call is checked before it starts.
    Prepare(PrepareOp),
    /// One of the running calls ends; an index selects it.
    Finish {
        which: usize,
        outcome: CallOutcome,
        empty: bool,
    },
    /// One of the running calls succeeds and leaves a background task running.
    Background {
        which: usize,
    },
    /// The oldest background task ends.
    EndTask,
    Approve {
        allow: bool,
    },
    BackoffOver,
    Interrupt,
    Continue,
    /// The process dies with a part of a reply in the draft, and a new process takes over.
    Crash {
        partial: ReplyOp,
        facts: Vec<FactOp>,
    },
    /// The process is ended on purpose, and a new one takes over.
    Restart {
        partial: ReplyOp,
    },
    /// The process is told to end, and ends when nothing is in progress.
    Sleep,
    StopAgent,
    StartAgent,
    /// A reset begins; [`Op::StepReset`] continues it.
    BeginReset {
        to: ResetTo,
        keep_queue: bool,
    },
    StepReset,
    WithdrawReset,
    /// A reset from its beginning to its end; undo, redo and rewind too.
    Reset {
        keep_queue: bool,
    },
    Undo,
    Redo,
    /// A new conversation from some earlier event of the current one.
    Rewind {
        back: usize,
    },
    /// A new agent from some event of this one; the driver continues with the new agent.
    Fork {
        back: usize,
    },
    /// Another provider from now on.
    Switch(Wire),
    /// The model's window, in tokens.
    Window(u64),
}

#[derive(Clone, Debug, Default)]
pub struct ReplyOp {
    pub thinking: Option<Signed>,
    pub texts: usize,
    pub blank: bool,
    pub native: bool,
    /// Ids of the calls, as the provider sends them. Some providers send ids that are not unique.
    pub calls: Vec<&'static str>,
    pub malformed: bool,
    pub trailing_text: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Signed {
    Yes,
    No,
}

#[derive(Clone, Copy, Debug)]
pub enum PrepareOp {
    Run,
    Ask,
    Refuse,
}

#[derive(Clone, Copy, Debug)]
pub enum FactOp {
    Running,
    Ended,
    NotStarted,
    Unknown,
    NotListed,
}

pub fn reply() -> impl Strategy<Value = ReplyOp> {
    let id = prop::sample::select(vec!["call_0", "call_1", "toolu_9", "functions.shell:0", ""]);
    (
        prop::option::weighted(0.3, prop::sample::select(vec![Signed::Yes, Signed::No])),
        0..3usize,
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
        prop_oneof![3 => Just(Vec::new()), 2 => prop::collection::vec(id, 1..4)],
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
    )
        .prop_map(
            |(thinking, texts, blank, native, calls, malformed, trailing_text)| ReplyOp {
                thinking,
                texts,
                blank,
                native,
                calls,
                malformed,
                trailing_text,
            },
        )
}

fn class() -> impl Strategy<Value = FailureClass> {
    prop::sample::select(vec![
        FailureClass::Overloaded,
        FailureClass::Dropped,
        FailureClass::RateLimited,
        FailureClass::ContextOverflow,
        FailureClass::Rejected,
    ])
}

fn outcome() -> impl Strategy<Value = CallOutcome> {
    prop::sample::select(vec![
        CallOutcome::Ok,
        CallOutcome::Ok,
        CallOutcome::Error,
        CallOutcome::Interrupted,
    ])
}

fn mode() -> impl Strategy<Value = PromptMode> {
    prop::sample::select(vec![
        PromptMode::Queue,
        PromptMode::Queue,
        PromptMode::Steer,
        PromptMode::Interrupt,
    ])
}

fn fact() -> impl Strategy<Value = FactOp> {
    prop::sample::select(vec![
        FactOp::Running,
        FactOp::Ended,
        FactOp::NotStarted,
        FactOp::Unknown,
        FactOp::NotListed,
    ])
}

fn prepare() -> impl Strategy<Value = PrepareOp> {
    prop::sample::select(vec![
        PrepareOp::Run,
        PrepareOp::Run,
        PrepareOp::Run,
        PrepareOp::Ask,
        PrepareOp::Refuse,
    ])
}

fn reset_to() -> impl Strategy<Value = ResetTo> {
    prop::sample::select(vec![
        ResetTo::Fresh,
        ResetTo::Fresh,
        ResetTo::Undo,
        ResetTo::Redo,
    ])
}

pub fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (mode(), prop::bool::weighted(0.1)).prop_map(|(mode, image)| Op::Prompt { mode, image }),
        14 => reply().prop_map(Op::Reply),
        2 => (class(), reply()).prop_map(|(class, partial)| Op::Fail { class, partial }),
        10 => prepare().prop_map(Op::Prepare),
        10 => (0..4usize, outcome(), prop::bool::weighted(0.1))
            .prop_map(|(which, outcome, empty)| Op::Finish { which, outcome, empty }),
        2 => (0..4usize).prop_map(|which| Op::Background { which }),
        2 => Just(Op::EndTask),
        2 => any::<bool>().prop_map(|allow| Op::Approve { allow }),
        2 => Just(Op::BackoffOver),
        2 => Just(Op::Interrupt),
        1 => Just(Op::Continue),
        3 => (reply(), prop::collection::vec(fact(), 0..4))
            .prop_map(|(partial, facts)| Op::Crash { partial, facts }),
        1 => reply().prop_map(|partial| Op::Restart { partial }),
        1 => Just(Op::Sleep),
        1 => prop_oneof![1 => Just(Op::StopAgent), 3 => Just(Op::StartAgent)],
        2 => (reset_to(), any::<bool>())
            .prop_map(|(to, keep_queue)| Op::BeginReset { to, keep_queue }),
        4 => Just(Op::StepReset),
        2 => Just(Op::WithdrawReset),
        1 => any::<bool>().prop_map(|keep_queue| Op::Reset { keep_queue }),
        1 => Just(Op::Undo),
        1 => Just(Op::Redo),
        1 => (0..40usize).prop_map(|back| Op::Rewind { back }),
        1 => (0..40usize).prop_map(|back| Op::Fork { back }),
        1 => prop::sample::select(Wire::ALL.to_vec()).prop_map(Op::Switch),
        1 => prop::sample::select(vec![60, 400, 100_000]).prop_map(Op::Window),
    ]
}

pub fn ops(most: usize) -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..most)
}
