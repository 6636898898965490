//! The terminal as a whole screen. It is as it was before when the chat has ended, however it ends.

use super::app::App;
use super::draw::{Look, draw};
use super::layout::Size;
use crate::error::Error;
use agentd_core::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use std::io::{self, BufWriter, Stdout, Write as _};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// The size of a terminal that does not say its size.
const USUAL: Size = Size {
    width: 80,
    height: 24,
};
/// A frame is written at once, if it is not larger.
const FRAME: usize = 64 * 1024;

/// The terminal shows the chat.
static IS_ON: AtomicBool = AtomicBool::new(false);

pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    size: Size,
    look: Look,
}

impl Screen {
    pub fn enter(look: Look) -> Result<Self, Error> {
        restore_at_panic();
        let size = size();
        let out = BufWriter::with_capacity(FRAME, io::stdout());
        let viewport = Viewport::Fixed(area(size));
        let options = TerminalOptions { viewport };
        let terminal = Terminal::with_options(CrosstermBackend::new(out), options);
        let terminal = terminal.map_err(|error| Error::of_output(&error))?;
        let mut screen = Self {
            terminal,
            size,
            look,
        };
        screen.resume()?;
        Ok(screen)
    }

    /// Draws what has changed.
    pub fn draw(&mut self, app: &mut App, now: Timestamp) -> Result<(), Error> {
        let size = size();
        if size != self.size {
            self.size = size;
            self.redraw()?;
        }
        app.prepare(size, now);
        let look = &self.look;
        let drawn = self.terminal.draw(|frame| draw(app, look, frame));
        drawn.map(drop).map_err(|error| Error::of_output(&error))
    }

    /// The next frame is drawn completely.
    pub fn redraw(&mut self) -> Result<(), Error> {
        let resized = self.terminal.resize(area(self.size));
        resized.map_err(|error| Error::of_output(&error))
    }

    /// Gives the terminal to another program.
    pub fn suspend(&self) {
        restore();
    }

    pub fn resume(&mut self) -> Result<(), Error> {
        let begin = || {
            IS_ON.store(true, Ordering::Relaxed);
            enable_raw_mode()?;
            execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)
        };
        begin().map_err(|error| Error::of_output(&error))?;
        self.redraw()
    }

    /// Asks the terminal to put a text into its clipboard (OSC 52).
    pub fn copy(&mut self, text: &str) -> Result<(), Error> {
        let text = STANDARD.encode(text);
        let mut out = io::stdout().lock();
        let written = write!(out, "\x1b]52;c;{text}\x07").and_then(|()| out.flush());
        written.map_err(|error| Error::of_output(&error))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    if IS_ON.swap(false, Ordering::Relaxed) {
        // A terminal that is gone needs nothing.
        let _gone = execute!(
            io::stdout(),
            DisableBracketedPaste,
            LeaveAlternateScreen,
            Show
        );
        let _gone = disable_raw_mode();
    }
}

/// A panic is printed on the terminal as it was before.
fn restore_at_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}

const fn area(size: Size) -> Rect {
    Rect::new(0, 0, size.width, size.height)
}

fn size() -> Size {
    let Ok(size) = rustix::termios::tcgetwinsize(io::stdout()) else {
        return USUAL;
    };
    match (size.ws_col, size.ws_row) {
        (0, _) | (_, 0) => USUAL,
        (width, height) => Size { width, height },
    }
}
