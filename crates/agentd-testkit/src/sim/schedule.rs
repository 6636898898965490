//! The ops of a schedule, which proptest generates and shrinks.

use super::{Auto, Wanted, Way};
use agentd_core::event::{Decision, PromptMode};
use proptest::prelude::*;

/// One op. An op that is not possible at that moment does nothing.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// A client sends a prompt; one that was not acknowledged is sent again first, under its key.
    Prompt(PromptMode),
    /// The user edits, moves or removes the n-th queued prompt.
    EditPrompt(u8),
    MovePrompt(u8),
    RemovePrompt(u8),
    Interrupt,
    /// One message arrives.
    Up,
    Down,
    /// The daemon reads what was sent on a connection that is now broken.
    Late,
    /// A while without faults: the daemon does what is due, and this many messages arrive in each direction.
    Flow(u8),
    /// The connection breaks. Messages to the runtime are lost; messages to the daemon may be read late.
    Cut,
    /// The runtime makes a new one.
    Connect,
    KillDaemon,
    StartDaemon,
    KillRuntime,
    /// The daemon does one thing that is due: a process, or the next step of a reset.
    Tick,
    /// A client requests a reset, an undo, a redo, a rewind.
    Reset(Wanted),
    /// A client repeats an earlier request, under the same op.
    ResetAgain(u8),
    /// Another agent begins from this many events before the newest.
    Fork(u8),
    /// A client requests a compaction.
    Compact,
    /// Turns automatic new conversations on or off.
    SetAuto(Auto),
    /// A tool's process ends, and the agent requests a new conversation.
    ToolSchedules,
    /// The time limit of what the reset waits for has passed.
    GraceOver,
    StopAgent,
    StartAgent,
    /// The daemon stops trying to keep a process alive.
    GiveUp,
    /// An idle runtime is told to stop.
    Sleep,
    /// A runtime is told to stop, whatever it is doing.
    Restart,
    /// The model answers, with this many calls.
    Reply(u8),
    /// The model's stream has advanced this far.
    Stream,
    ModelFails,
    ToolPrepared,
    ToolAsks,
    Answer(Decision),
    ToolEnds,
    BackoffOver,
    /// A scan of files ends.
    ScanEnds,
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

/// Losses and reconnections, without requests of clients.
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
        1 => any::<u8>().prop_map(Op::EditPrompt),
        1 => any::<u8>().prop_map(Op::MovePrompt),
        1 => any::<u8>().prop_map(Op::RemovePrompt),
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
        2 => Just(Op::ScanEnds),
    ]
}

/// The same, with automatic new conversations. An undo is then not necessarily the last change.
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
