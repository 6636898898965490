//! The readers' connection to `derived.db`: opened when the file exists.
//!
//! The follower creates the file when there is something to derive. Until then there is nothing to read, and
//! a short-lived store never has one.

use super::{Options, connect};
use crate::error::{Error, Result};
use rusqlite::Connection;
use std::cell::OnceCell;

pub struct Derived {
    /// How to open the file. None if the connection is open from the start.
    options: Option<Options>,
    connection: OnceCell<Connection>,
}

impl Derived {
    /// Opens the file when it is first needed, if it exists by then.
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

    /// None if there is nothing to read yet.
    pub fn get(&self) -> Option<&Connection> {
        if self.connection.get().is_none()
            && let Some(options) = &self.options
            && options.derived().exists()
        {
            match connect::reader(options, &options.derived()) {
                Ok(opened) => drop(self.connection.set(opened)),
                // Only a cache: treated as if it did not exist.
                Err(error) => tracing::warn!(%error, "cannot open derived.db"),
            }
        }
        self.connection.get()
    }

    /// For the follower, which always has it open.
    pub fn own(&self) -> Result<&Connection> {
        self.connection.get().ok_or(Error::Closed)
    }

    pub fn own_mut(&mut self) -> Result<&mut Connection> {
        self.connection.get_mut().ok_or(Error::Closed)
    }
}
