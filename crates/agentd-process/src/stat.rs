//! `/proc/PID/stat`: the identity, parent, group and session of a process, and whether it is alive.

use crate::error::{Error, Result};
use crate::identity::Identity;
use agentd_files::own;
use std::io;

/// Zombies and processes that are being removed: they have ended.
const ENDED: [char; 3] = ['Z', 'X', 'x'];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub state: char,
    pub parent: u32,
    /// Its process group id; 0 if it has none any more.
    pub group: u32,
    /// Its session id; 0 if it has none any more.
    pub session: u32,
    /// Its start time, in clock ticks since boot.
    pub start_ticks: u64,
}

impl Stat {
    pub fn has_ended(&self) -> bool {
        ENDED.contains(&self.state)
    }
}

impl Identity {
    /// The process that has this pid now. It may be a zombie.
    pub fn of(pid: u32) -> Result<Self> {
        let stat = read(pid)?.ok_or(Error::NoSuchProcess { pid })?;
        Ok(Self {
            pid,
            start_ticks: stat.start_ticks,
        })
    }

    /// The calling process.
    pub fn current() -> Result<Self> {
        Self::of(std::process::id())
    }

    /// Whether it is running. A zombie is not, and neither is another process with the same pid.
    pub fn is_alive(self) -> Result<bool> {
        Ok(self.look()?.is_some_and(|stat| !stat.has_ended()))
    }

    /// Its `/proc/PID/stat`; `None` if it is gone.
    pub(crate) fn look(self) -> Result<Option<Stat>> {
        let stat = read(self.pid)?;
        Ok(stat.filter(|stat| stat.start_ticks == self.start_ticks))
    }
}

/// `None` if there is no such process.
pub fn read(pid: u32) -> Result<Option<Stat>> {
    let line = match own::read(format!("/proc/{pid}/stat")) {
        Ok(line) => line,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // It ended between open and read.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
            return Ok(None);
        }
        Err(source) => return Err(Error::CannotLook { pid, source }),
    };
    // A program's name may be any bytes.
    let line = String::from_utf8_lossy(&line);
    parse(&line).map(Some).ok_or_else(|| Error::BadStat {
        pid,
        line: line.trim_end().to_owned(),
    })
}

/// The program's name, in parentheses, may itself contain spaces and parentheses: the fields are counted from the last
/// parenthesis.
pub fn parse(line: &str) -> Option<Stat> {
    let (_, fields) = line.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let mut state = fields.next()?.chars();
    let state = state.next().filter(|_| state.next().is_none())?;
    // A process that is being removed has group and session -1.
    let mut pid = || {
        fields
            .next()?
            .parse::<i32>()
            .ok()
            .map(|pid| pid.max(0).unsigned_abs())
    };
    Some(Stat {
        state,
        parent: pid()?,
        group: pid()?,
        session: pid()?,
        // Fields up to 6 are read; the start time is field 22.
        start_ticks: fields.nth(22 - 7)?.parse().ok()?,
    })
}
