//! From the pipe that all of the task writes to, into its file: redacted and capped, never blocking.

use super::redact::Redactor;
use crate::error::{Error, Result};
use crate::task::{Order, cannot, create};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::File;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

const CHUNK: usize = 64 * 1024;
/// How many chunks at once: a flood must not keep the shim from its other duties.
const AT_ONCE: usize = 16;

pub struct Pump {
    /// None once everybody has closed the other end.
    pipe: Option<PipeReader>,
    file: File,
    redactor: Redactor,
    limit: u64,
    kept: u64,
    dropped: u64,
    chunk: Vec<u8>,
    ready: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    More,
    /// Nothing is there: not yet, or never again.
    Dry,
}

impl Pump {
    pub fn new(pipe: PipeReader, path: &Path, order: &Order) -> Result<Self> {
        fcntl_getfl(&pipe)
            .and_then(|flags| fcntl_setfl(&pipe, flags | OFlags::NONBLOCK))
            .map_err(|errno| Error::CannotSetUp {
                what: "cannot read the output without waiting",
                source: errno.into(),
            })?;
        Ok(Self {
            pipe: Some(pipe),
            file: create(path).map_err(|source| cannot(path, source))?,
            redactor: Redactor::new(&order.redact),
            limit: order.output_limit_bytes,
            kept: 0,
            dropped: 0,
            chunk: vec![0; CHUNK],
            ready: Vec::new(),
        })
    }

    /// What to wait for.
    pub fn source(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Takes what is there, or a part of it if that is much.
    pub fn some(&mut self) {
        for _ in 0..AT_ONCE {
            if self.next() == Flow::Dry {
                return;
            }
        }
    }

    /// Takes all that is left, once nobody writes any more, and keeps it for good. Says how much was
    /// kept and how much was not.
    pub fn finish(mut self) -> (u64, u64) {
        while self.next() == Flow::More {}
        self.redactor.finish(&mut self.ready);
        self.keep();
        // As with a write that fails there is nobody to tell: the exit says what was meant.
        drop(self.file.sync_data());
        (self.kept, self.dropped)
    }

    fn next(&mut self) -> Flow {
        let Some(pipe) = &mut self.pipe else {
            return Flow::Dry;
        };
        match pipe.read(&mut self.chunk) {
            Ok(0) => {
                self.pipe = None;
                Flow::Dry
            }
            Ok(length) => {
                self.redactor.push(&self.chunk[..length], &mut self.ready);
                self.keep();
                Flow::More
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Flow::More,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Flow::Dry,
            Err(_) => {
                self.pipe = None;
                Flow::Dry
            }
        }
    }

    /// What cannot be written, since the disk is full say, is dropped as well: the task goes on.
    fn keep(&mut self) {
        let room = usize::try_from(self.limit - self.kept).unwrap_or(usize::MAX);
        let mut rest = &self.ready[..self.ready.len().min(room)];
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => break,
                Ok(length) => {
                    self.kept += length as u64;
                    rest = &rest[length..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let over = self.ready.len().saturating_sub(room);
        self.dropped += (over + rest.len()) as u64;
        // Nothing may follow a gap.
        if !rest.is_empty() {
            self.limit = self.kept;
        }
        self.ready.clear();
    }
}
