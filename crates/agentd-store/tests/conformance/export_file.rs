//! Export files in memory, and agents that are worth exporting.

use crate::author::Author;
use agentd_core::id::{AgentId, ConversationId};
use agentd_core::time::Timestamp;
use agentd_store::{Error, Import, Imported, Store};
use std::io::Write;
use std::sync::{Arc, Mutex};

/// A file in memory.
#[derive(Clone, Default)]
pub struct Shelf(Arc<Mutex<Vec<u8>>>);

impl Write for Shelf {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub async fn export(store: &dyn Store, agent: AgentId) -> Vec<u8> {
    let shelf = Shelf::default();
    store.export(agent, Box::new(shelf.clone())).await.unwrap();
    shelf.0.lock().unwrap().clone()
}

pub async fn import(store: &dyn Store, file: &[u8]) -> Result<Imported, Error> {
    let file = std::io::Cursor::new(file.to_vec());
    let order = Import::at(Timestamp::from_millis(66));
    store.import(Box::new(file), order).await
}

/// An agent with a large output and a purged conversation, and a fork of it.
pub async fn family(store: &dyn Store) -> (Author, Author, ConversationId) {
    let mut parent = Author::create(store, 1, "parent").await;
    let events = parent.turn("secret", "more secret");
    parent.append(store, events).await;
    let purged = parent.conversation;
    let events = parent.reset();
    parent.append(store, events).await;
    let events = parent.tool_turn("look", &"plain as day ".repeat(2000), "seen");
    parent.append(store, events).await;
    let mut fork = Author::claim(store, 2).await;
    let events = fork.forked("fork", parent.here());
    fork.append(store, events).await;
    let events = fork.turn("what did you see", "something plain");
    fork.append(store, events).await;
    let at = Timestamp::from_millis(1);
    store.purge(parent.fence, purged, at).await.unwrap();
    (parent, fork, purged)
}
