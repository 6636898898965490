//! A compaction that a client requests, and resets that the agent's settings or a tool cause: both begin between two
//! turns, whatever else is in progress.

use super::Sim;
use super::runtime::done;
use agentd_core::begin::Line;
use agentd_core::event::{
    CompactionAsked, Note, ResetBegan, ResetScheduled, ResetSource, ResetTo, SpecSet,
};
use agentd_core::id::OpId;
use agentd_core::reset::{self, Begin};
use agentd_core::spec::AutoReset;
use agentd_core::turn::Input;

/// What causes a new conversation.
#[derive(Clone, Copy, Debug)]
pub enum Auto {
    Off,
    ByTool,
    Idle,
    OverTokens,
}

/// In simulated milliseconds: other ops happen in between.
const IDLE_MS: u64 = 30;
const OVER_TOKENS: u64 = 40;

impl Sim {
    /// A client requests it, and again under the same op.
    pub(super) fn ask_compaction(&mut self) {
        let op = OpId::new(self.new_id());
        if self.compact(op) {
            self.compactions.push(op);
            self.compact(op);
        }
    }

    /// False if it is not possible now.
    fn compact(&mut self, op: OpId) -> bool {
        let state = self.kept.state();
        let is_off = state.stopped || state.failed.is_some() || state.resets.under_way().is_some();
        let is_known = state.compactions.outcome(op).is_some();
        let asked = state.compactions.asked();
        if is_known || asked == Some(op) {
            return true;
        }
        if self.daemon.is_none() || is_off || asked.is_some() {
            return false;
        }
        self.write([CompactionAsked { op }.into()]);
        true
    }

    pub(super) fn set_auto(&mut self, auto: Auto) {
        if self.daemon.is_none() {
            return;
        }
        let mut spec = self.kept.state().spec.clone();
        spec.auto_reset = match auto {
            Auto::Off => AutoReset::default(),
            Auto::ByTool => AutoReset {
                by_tool: true,
                ..AutoReset::default()
            },
            Auto::Idle => AutoReset {
                idle_ms: Some(IDLE_MS),
                ..AutoReset::default()
            },
            Auto::OverTokens => AutoReset {
                over_tokens: Some(OVER_TOKENS),
                ..AutoReset::default()
            },
        };
        self.write([SpecSet { spec }.into()]);
    }

    /// A tool ends and requests a new conversation.
    pub(super) fn tool_schedules(&mut self) {
        let Some(call) = self.end_running() else {
            return;
        };
        let mut finished = done(&call);
        let (about, text) = (None, "enough of this".to_owned());
        finished.also = vec![ResetScheduled {}.into(), Note { about, text }.into()];
        self.input(Input::ToolFinished { call, finished });
    }

    /// The daemon starts the reset that is due. False if none is.
    pub(super) fn make_auto_reset(&mut self) -> bool {
        let Some(source) = self.kept.state().auto_reset(self.now()) else {
            return false;
        };
        let lines = self.auto_reset(source);
        self.commit(None, lines);
        true
    }

    fn auto_reset(&mut self, source: ResetSource) -> Vec<Line> {
        let order = ResetBegan {
            op: OpId::new(self.new_id()),
            to: ResetTo::Fresh,
            force: false,
            kill_background: false,
            keep_queue: true,
            clear_log: false,
            skip_hooks: false,
            grace_ms: 15_000,
            was_awake: self.runtime.is_some(),
            source,
        };
        match reset::begin(self.kept.state(), order) {
            Ok(Begin::Append(line)) => vec![line],
            other => panic!("what is due can begin: {other:?}"),
        }
    }
}
