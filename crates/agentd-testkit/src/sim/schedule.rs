//! What can happen, as proptest makes it up and shrinks it.

use super::{Auto, Wanted, Way};
use agentd_core::event::{Decision, PromptMode};
use proptest::prelude::*;

/// One thing that happens. One that does not fit the moment does nothing.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// A client sends a prompt; one that was not acknowledged is sent again first, under its key.
    Prompt(PromptMode),
    Interrupt,
    /// One message arrives.
    Up,
    Down,
    /// The daemon reads what was said on a connection that is broken by now.
    Late,
    /// For a while all is well: the daemon does what is due, and so many messages arrive each way.
    Flow(u8),
    /// The connection breaks. What was on its way down is lost; what was on its way up may be read late.
    Cut,
    /// The runtime makes a new one.
    Connect,
    KillDaemon,
    StartDaemon,
    KillRuntime,
    /// The daemon does one thing that is due: a process, or the next step of a reset.
    Tick,
    /// A client asks for a reset, an undo, a redo, a rewind.
    Reset(Wanted),
    /// One that asked before asks once more, under the same op.
    ResetAgain(u8),
    /// Another agent begins from so many events before the newest.
    Fork(u8),
    /// A client wants the conversation to be shortened.
    Compact,
    /// From now on the agent gets a fresh conversation by itself, or does not.
    SetAuto(Auto),
    /// A tool's process ends, and with it the agent asks for a fresh conversation.
    ToolSchedules,
    /// What the reset waits for has had its time.
    GraceOver,
    StopAgent,
    StartAgent,
    /// The daemon does not try again to keep a process alive.
    GiveUp,
    /// An idle runtime is told to stop.
    Sleep,
    /// A runtime is told to stop, whatever it is doing.
    Restart,
    /// The model answers, with so many calls.
    Reply(u8),
    /// The model's stream has come so far.
    Stream,
    ModelFails,
    ToolPrepared,
    ToolAsks,
    Answer(Decision),
    ToolEnds,
    BackoffOver,
}

fn mode() -> impl Strategy<Value = PromptMode> {
    prop::sample::select(vec![
        PromptMode::Queue,
        PromptMode::Queue,
        PromptMode::Steer,
        PromptMode::Interrupt,
    ])
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let way = prop_oneof![
        4 => Just(Way::Fresh),
        3 => Just(Way::Undo),
        2 => Just(Way::Redo),
        1 => (0..30_u8).prop_map(Way::Rewind),
        1 => any::<u8>().prop_map(Way::RewindAnywhere),
    ];
    let how = (prop::bool::weighted(0.3), any::<bool>());
    (way, how).prop_map(|(way, (keep_queue, force))| Wanted {
        way,
        keep_queue,
        force,
    })
}

/// Things that are lost and found again; nobody asks for anything.
pub fn trouble() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => Just(Op::Up),
        8 => Just(Op::Down),
        3 => Just(Op::Late),
        20 => (1..6_u8).prop_map(Op::Flow),
        3 => Just(Op::Cut),
        4 => Just(Op::Connect),
        2 => Just(Op::KillDaemon),
        3 => Just(Op::StartDaemon),
        2 => Just(Op::KillRuntime),
        6 => Just(Op::Tick),
        1 => Just(Op::Sleep),
        1 => Just(Op::Restart),
    ]
}

pub fn op() -> impl Strategy<Value = Op> {
    let decision = prop::sample::select(vec![Decision::Allow, Decision::Deny]);
    prop_oneof![
        60 => trouble(),
        6 => mode().prop_map(Op::Prompt),
        1 => Just(Op::Interrupt),
        4 => wanted().prop_map(Op::Reset),
        1 => any::<u8>().prop_map(Op::ResetAgain),
        1 => any::<u8>().prop_map(Op::Fork),
        3 => Just(Op::GraceOver),
        1 => Just(Op::StopAgent),
        3 => Just(Op::StartAgent),
        1 => Just(Op::GiveUp),
        12 => (0..3_u8).prop_map(Op::Reply),
        2 => Just(Op::Stream),
        1 => Just(Op::ModelFails),
        7 => Just(Op::ToolPrepared),
        4 => Just(Op::ToolAsks),
        4 => decision.prop_map(Op::Answer),
        5 => Just(Op::ToolEnds),
        1 => Just(Op::BackoffOver),
    ]
}

/// The same, with what an agent does to its conversation by itself. An undo is then not the last word.
pub fn everything() -> impl Strategy<Value = Op> {
    let auto = prop::sample::select(vec![
        Auto::Off,
        Auto::ByTool,
        Auto::ByTool,
        Auto::Idle,
        Auto::Idle,
        Auto::OverTokens,
    ]);
    prop_oneof![
        100 => op(),
        3 => Just(Op::Compact),
        2 => auto.prop_map(Op::SetAuto),
        6 => Just(Op::ToolSchedules),
    ]
}
