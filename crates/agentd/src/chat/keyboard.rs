//! Keys and pasted text, read by a thread of their own: the terminal can only be read in a blocking way.

use crossterm::event::{Event, poll, read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How long the thread waits for a key before it looks whether another program needs the terminal.
const WAIT: Duration = Duration::from_millis(100);

pub struct Keyboard {
    events: UnboundedReceiver<Event>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    terminal: Mutex<Terminal>,
    /// Notified when `terminal` changes.
    changed: Condvar,
}

#[derive(Default)]
struct Terminal {
    /// Another program needs it.
    is_wanted: bool,
    /// The thread reads it.
    is_read: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Terminal> {
        self.terminal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the terminal as soon as it is ready for the change.
    fn change(&self, is_busy: impl Fn(&mut Terminal) -> bool, change: impl Fn(&mut Terminal)) {
        let waited = self.changed.wait_while(self.lock(), is_busy);
        change(&mut waited.unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

/// While this exists, the terminal is not read.
pub struct Held<'a> {
    shared: &'a Shared,
}

impl Keyboard {
    pub fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let (sender, events) = unbounded_channel();
        let of_thread = Arc::clone(&shared);
        std::thread::spawn(move || watch(&of_thread, &sender));
        Self { events, shared }
    }

    /// The next key; none if the terminal is gone.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// A key that was pressed already.
    pub fn ready(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// Leaves the terminal to another program.
    pub fn hold(&self) -> Held<'_> {
        let shared = &*self.shared;
        shared.change(|_| false, |terminal| terminal.is_wanted = true);
        // The thread lets go of it within its time to wait for a key.
        shared.change(|terminal| terminal.is_read, |_| {});
        Held { shared }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let shared = self.shared;
        shared.change(|_| false, |terminal| terminal.is_wanted = false);
    }
}

fn watch(shared: &Shared, sender: &UnboundedSender<Event>) {
    loop {
        shared.change(|terminal| terminal.is_wanted, |it| it.is_read = true);
        let event = match poll(WAIT) {
            Ok(true) => read().map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        shared.change(|_| false, |terminal| terminal.is_read = false);
        // An unreadable terminal is gone, and so is a chat that no longer receives.
        let Ok(event) = event else { return };
        if event.is_some_and(|event| sender.send(event).is_err()) || sender.is_closed() {
            return;
        }
    }
}
