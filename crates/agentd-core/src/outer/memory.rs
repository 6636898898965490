//! What the program of an outer agent knows of a conversation that the agent has switched to.

use crate::event::ResetTo;
use crate::spec::Runtime;
use serde::{Deserialize, Serialize};

/// Each as far as the program allows: only it can restore its own state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramMemory {
    /// Nothing: the conversation is empty, too.
    Empty,
    /// What its session of that conversation has. It is resumed or loaded; a program that cannot do that is given the
    /// conversation so far as text.
    Session,
    /// The conversation so far, as text in a new session.
    Text,
    /// What its files of that conversation have.
    Files,
    /// Nothing, although the conversation has messages: it cannot branch its own state.
    Nothing,
}

impl ProgramMemory {
    /// After a reset, an undo, a redo or a rewind. `None` for an agent without a program.
    pub const fn after_reset(runtime: Runtime, to: &ResetTo) -> Option<Self> {
        Some(match (runtime, to) {
            (Runtime::Native, _) => return None,
            (Runtime::Acp | Runtime::Command, ResetTo::Fresh) => Self::Empty,
            (Runtime::Acp, ResetTo::Undo | ResetTo::Redo) => Self::Session,
            (Runtime::Acp, ResetTo::Rewind { .. }) => Self::Text,
            (Runtime::Command, ResetTo::Undo | ResetTo::Redo) => Self::Files,
            (Runtime::Command, ResetTo::Rewind { .. }) => Self::Nothing,
        })
    }

    /// In a fork. `None` for an agent without a program.
    pub const fn after_fork(runtime: Runtime) -> Option<Self> {
        match runtime {
            Runtime::Native => None,
            Runtime::Acp => Some(Self::Text),
            Runtime::Command => Some(Self::Nothing),
        }
    }

    /// For users.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Empty => "it begins anew",
            Self::Session => {
                "its session is resumed if it can do that; otherwise it is given the conversation so far as text"
            }
            Self::Text => "it begins a new session, and is given the conversation so far as text",
            Self::Files => {
                "it is started again, and knows what its files of this conversation have"
            }
            Self::Nothing => "it begins anew, without the conversation so far",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Seq;

    #[test]
    fn a_receipt_says_what_the_program_knows() {
        let rewind = ResetTo::Rewind {
            at: Seq(3),
            conversation: None,
        };
        let after = ProgramMemory::after_reset;
        for to in [ResetTo::Fresh, ResetTo::Undo, ResetTo::Redo, rewind] {
            assert_eq!(after(Runtime::Native, &to), None);
            assert!(after(Runtime::Acp, &to).is_some());
        }
        assert_eq!(
            after(Runtime::Acp, &ResetTo::Undo),
            Some(ProgramMemory::Session)
        );
        assert_eq!(after(Runtime::Acp, &rewind), Some(ProgramMemory::Text));
        assert_eq!(
            after(Runtime::Command, &rewind),
            ProgramMemory::after_fork(Runtime::Command)
        );
    }
}
