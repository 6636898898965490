//! Who sends a request: the user, one of the user's hooks, or a process that an agent started. In doubt the daemon
//! assumes the last, which has the fewest rights.

use crate::layout::Layout;
use agentd_core::id::AgentId;
use agentd_process::{Around, Peer};
use rustix::io::Errno;
use std::fs::File;

const EMFILE: i32 = Errno::MFILE.raw_os_error();
const ENFILE: i32 = Errno::NFILE.raw_os_error();

/// Decided once per connection, from the process that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    User,
    /// A process that an agent started, or may have started. `agent` is none if the daemon cannot tell which one.
    Tool {
        agent: Option<AgentId>,
    },
    /// One of this agent's hooks, or a process that such a hook started.
    Hook {
        agent: AgentId,
    },
    /// The daemon had no free file descriptor to identify the process.
    Unidentified,
}

/// Whether this process, or the machine, has too many open files.
fn has_no_descriptor() -> bool {
    let opened = File::open("/dev/null");
    let error = opened.err().and_then(|error| error.raw_os_error());
    error.is_some_and(|error| [EMFILE, ENFILE].contains(&error))
}

impl Caller {
    /// The name of this kind of caller in the journal.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Tool { .. } => "tool",
            Self::Hook { .. } => "hook",
            Self::Unidentified => "unidentified",
        }
    }

    pub fn of(layout: &Layout, peer: &Peer) -> Self {
        let around = agentd_process::task_around(peer.pid());
        // `around` counts only if the process is still alive: its pid may have been reused.
        match around {
            Ok(Around::InDoubt) | Err(_) if has_no_descriptor() => Self::Unidentified,
            Ok(around) if peer.is_alive() => Self::inside(layout, &around),
            _ if has_no_descriptor() => Self::Unidentified,
            _ => Self::Tool { agent: None },
        }
    }

    fn inside(layout: &Layout, around: &Around) -> Self {
        match around {
            Around::Nothing => Self::User,
            Around::Task(dir) if dir.starts_with(layout.hooks()) => {
                let owner = layout.owner(dir);
                owner.map_or(Self::Tool { agent: None }, |agent| Self::Hook { agent })
            }
            // A command of the user runs programs of the project, which have no more rights than tools.
            Around::Task(dir) if dir.starts_with(layout.commands()) => Self::Tool {
                agent: layout.owner(dir),
            },
            Around::Task(dir) => Self::Tool {
                agent: layout.agent_of_dir(dir),
            },
            Around::InDoubt => Self::Tool { agent: None },
        }
    }
}
