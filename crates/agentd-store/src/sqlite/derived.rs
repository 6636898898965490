//! The connection to what is derived, for those who read it: opened once the file is there.
//!
//! The follower makes the file when there is something to derive; until then there is nothing to read,
//! and a store that lives for a moment never has one.

use super::{Options, connect};
use crate::error::{Error, Result};
use rusqlite::Connection;
use std::cell::OnceCell;

pub struct Derived {
    /// How to open it. None where it is open from the start.
    options: Option<Options>,
    connection: OnceCell<Connection>,
}

impl Derived {
    /// Opens it when it is first needed and there.
    pub fn reader(options: &Options) -> Self {
        Self {
            options: Some(options.clone()),
            connection: OnceCell::new(),
        }
    }

    pub fn open(connection: Connection) -> Self {
        Self {
            options: None,
            connection: connection.into(),
        }
    }

    /// None where there is nothing to read yet.
    pub fn get(&self) -> Option<&Connection> {
        if self.connection.get().is_none()
            && let Some(options) = &self.options
            && options.derived().exists()
        {
            match connect::reader(options, &options.derived()) {
                Ok(opened) => drop(self.connection.set(opened)),
                // Only a cache: it is as if there were none.
                Err(error) => tracing::warn!(%error, "search and snapshots cannot be opened"),
            }
        }
        self.connection.get()
    }

    /// For the follower, which has it.
    pub fn own(&self) -> Result<&Connection> {
        self.connection.get().ok_or(Error::Closed)
    }

    pub fn own_mut(&mut self) -> Result<&mut Connection> {
        self.connection.get_mut().ok_or(Error::Closed)
    }
}
