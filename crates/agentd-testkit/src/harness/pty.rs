//! A pseudo-terminal: a program that runs in it finds a terminal where a user would sit.

use super::poll::{Poll, TimedOut};
use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::process::{Child, Command};

/// The user's side of the terminal.
pub struct Pty {
    user: File,
    /// What the program has written and no test has waited for yet.
    unread: String,
}

impl Pty {
    /// Starts the command with the terminal as its input and output.
    pub fn start(command: &mut Command) -> io::Result<(Self, Child)> {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&user)?;
        unlockpt(&user)?;
        let name = ptsname(&user, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let program = open(name, flags, Mode::empty())?;
        command.stdin(program.try_clone()?);
        command.stdout(program.try_clone()?).stderr(program);
        fcntl_setfl(&user, OFlags::RDWR | OFlags::NONBLOCK)?;
        let child = command.spawn()?;
        let unread = String::new();
        let user = File::from(user);
        Ok((Self { user, unread }, child))
    }

    /// Waits until the program has written this text, and forgets everything up to it.
    pub fn until(&mut self, text: &str, poll: Poll) -> Result<(), TimedOut> {
        let found = poll.until(text, || {
            self.read();
            let at = self.unread.find(text)?;
            self.unread.drain(..at + text.len());
            Some(())
        });
        found.map_err(|_| TimedOut {
            what: format!("{text:?} on a terminal with {:?}", self.unread),
        })
    }

    /// Everything that the program has written since.
    pub fn unread(&mut self) -> String {
        self.read();
        std::mem::take(&mut self.unread)
    }

    fn read(&mut self) {
        let mut bytes = [0; 4096];
        // It ends when nothing more has arrived, or when the program has closed its side.
        while let Ok(count @ 1..) = self.user.read(&mut bytes) {
            let read = bytes.get(..count).unwrap_or_default();
            self.unread.push_str(&String::from_utf8_lossy(read));
        }
    }

    /// Types a line.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.user, "{line}")
    }
}
