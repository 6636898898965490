//! Keys and pasted text, read by a thread of their own: the terminal can only be read in a blocking way.

use ratatui::crossterm::event::{Event, poll, read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How long the thread waits for a key before it looks whether another program needs the terminal.
const WAIT: Duration = Duration::from_millis(100);
const BREATH: Duration = Duration::from_millis(5);

pub struct Keyboard {
    events: UnboundedReceiver<Event>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Another program needs the terminal.
    is_wanted: AtomicBool,
    /// Locked by the thread while it reads.
    reads: Mutex<()>,
}

/// While this exists, the terminal is not read.
pub struct Held<'a> {
    shared: &'a Shared,
    _reads: MutexGuard<'a, ()>,
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
        self.shared.is_wanted.store(true, Ordering::Relaxed);
        let reads = self.shared.reads.lock();
        Held {
            shared: &self.shared,
            _reads: reads.unwrap_or_else(PoisonError::into_inner),
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.shared.is_wanted.store(false, Ordering::Relaxed);
    }
}

fn watch(shared: &Shared, sender: &UnboundedSender<Event>) {
    loop {
        if shared.is_wanted.load(Ordering::Relaxed) {
            std::thread::sleep(BREATH);
            continue;
        }
        let _reads = shared.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let event = match poll(WAIT) {
            Ok(false) => continue,
            Ok(true) => read(),
            Err(error) => Err(error),
        };
        // An unreadable terminal is gone, and so is a chat that no longer receives.
        let Ok(event) = event else { return };
        if sender.send(event).is_err() {
            return;
        }
    }
}
