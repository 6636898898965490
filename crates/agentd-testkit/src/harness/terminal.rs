//! A program in a pseudo-terminal, with a model of the screen that a user would see.

use super::picture::Picture;
use super::poll::{Poll, TimedOut};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// Rows and columns of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub rows: u16,
    pub columns: u16,
}

impl Size {
    pub const fn new(rows: u16, columns: u16) -> Self {
        Self { rows, columns }
    }

    /// A model of a screen has at least one row and one column.
    fn cells(self) -> (NonZeroU16, NonZeroU16) {
        let at_least_one = |n| NonZeroU16::new(n).unwrap_or(NonZeroU16::MIN);
        (at_least_one(self.rows), at_least_one(self.columns))
    }

    const fn winsize(self) -> Winsize {
        Winsize {
            ws_row: self.rows,
            ws_col: self.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        }
    }
}

struct Shown {
    screen: vt100::Parser,
    /// Everything that the program has written.
    bytes: Vec<u8>,
}

impl Shown {
    fn text(&self) -> String {
        let rows = self.screen.screen().contents();
        let rows: Vec<&str> = rows.lines().map(str::trim_end).collect();
        rows.join("\n").trim_end().to_owned()
    }
}

/// A running program and its terminal. It is killed when this is dropped.
pub struct Terminal {
    child: Child,
    /// The user's side.
    user: File,
    shown: Arc<(Mutex<Shown>, Condvar)>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts a command whose standard streams are the terminal.
    pub fn start(mut command: Command, size: Size) -> io::Result<Self> {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&user)?;
        unlockpt(&user)?;
        tcsetwinsize(&user, size.winsize())?;
        let name = ptsname(&user, Vec::new())?;
        // It must not become the controlling terminal of the test.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let program = open(name, flags, Mode::empty())?;
        command.stdin(program.try_clone()?);
        command.stdout(program.try_clone()?).stderr(program);
        let child = command.spawn()?;
        // The command holds the program's side of the terminal: reading would not end as long as it is open here.
        drop(command);
        let user = File::from(user);
        let (rows, columns) = size.cells();
        let shown = Mutex::new(Shown {
            screen: vt100::Parser::new(rows, columns, 1000),
            bytes: Vec::new(),
        });
        let shown = Arc::new((shown, Condvar::new()));
        let (from, to) = (user.try_clone()?, Arc::clone(&shown));
        Ok(Self {
            child,
            user,
            shown,
            reader: Some(std::thread::spawn(move || read(from, &to))),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        let (shown, _) = &*self.shown;
        shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows of the screen, without the spaces at their ends and the empty rows at the bottom.
    pub fn screen(&self) -> String {
        self.lock().text()
    }

    /// The cells of the screen with their colours.
    pub fn picture(&self) -> Picture {
        Picture::of(self.lock().screen.screen())
    }

    /// Everything that the program has written.
    pub fn bytes(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    /// Waits until the screen meets a condition, and returns it. It looks only when something was written.
    pub fn until(
        &self,
        poll: Poll,
        what: &str,
        is_met: impl Fn(&str) -> bool,
    ) -> Result<String, TimedOut> {
        let end = Instant::now() + poll.limit;
        let mut shown = self.lock();
        loop {
            let screen = shown.text();
            if is_met(&screen) {
                return Ok(screen);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let what = format!("{what}; the screen is:\n{screen}");
                return Err(TimedOut { what });
            }
            let written = shown.bytes.len();
            let (_, changed) = &*self.shown;
            let waited = changed.wait_timeout_while(shown, left, |now| now.bytes.len() == written);
            (shown, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Changes the size, and tells the program.
    pub fn resize(&self, size: Size) -> io::Result<()> {
        let mut shown = self.lock();
        let (rows, columns) = size.cells();
        shown.screen.set_size(rows, columns);
        tcsetwinsize(&self.user, size.winsize())?;
        drop(shown);
        self.signal(Signal::WINCH)
    }

    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// Types a line.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.user, "{line}")
    }

    /// Presses keys: what a terminal sends for them, such as `\r` for Enter.
    pub fn keys(&mut self, keys: &str) -> io::Result<()> {
        self.user.write_all(keys.as_bytes())
    }

    /// Waits for its end, and until everything that it has written is on the screen.
    pub fn ended(&mut self, poll: Poll) -> io::Result<ExitStatus> {
        let status = poll.until("the end of the program", || {
            self.child.try_wait().transpose()
        });
        let status = status.map_err(io::Error::other)??;
        if let Some(reader) = self.reader.take() {
            let is_read = poll.until("the rest of its output", || {
                reader.is_finished().then_some(())
            });
            is_read.map_err(io::Error::other)?;
        }
        Ok(status)
    }
}

/// Until the program and its children have closed the terminal, which is an error for the reader.
fn read(mut from: File, (to, changed): &(Mutex<Shown>, Condvar)) {
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        let bytes = piece.get(..count).unwrap_or_default();
        let mut shown = to.lock().unwrap_or_else(PoisonError::into_inner);
        shown.screen.process(bytes);
        shown.bytes.extend_from_slice(bytes);
        changed.notify_all();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A process that was waited for is not signalled again.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::super::program::clean_command;
    use super::*;
    use std::time::Duration;

    const POLL: Poll = Poll::new(Duration::from_millis(1), Duration::from_secs(60));

    #[test]
    fn the_screen_is_what_a_user_would_see() {
        let mut command = clean_command("/bin/sh");
        let script = r"stty size; printf 'wrong\rright\n'; read line; stty size";
        command.args(["-c", script]);
        let mut terminal = Terminal::start(command, Size::new(5, 40)).unwrap();
        let screen = terminal.until(POLL, "its text", |screen| screen.ends_with("right"));
        assert_eq!(screen.unwrap(), "5 40\nright");
        terminal.resize(Size::new(6, 30)).unwrap();
        terminal.line("").unwrap();
        assert!(terminal.ended(POLL).unwrap().success());
        assert_eq!(terminal.screen(), "5 40\nright\n\n6 30");
        assert!(terminal.bytes().starts_with(b"5 40\r\n"));
    }
}
