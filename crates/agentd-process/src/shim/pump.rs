//! Copies the task's output from its pipe to its file: redacted, capped, and without blocking.

use super::redact::Redactor;
use crate::error::{Error, Result};
use crate::task::{Order, cannot, create};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::File;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

const CHUNK: usize = 64 * 1024;
/// How many chunks are read at once: a flood of output must not keep the shim from its other work.
const AT_ONCE: usize = 16;

pub struct Pump {
    /// `None` after all processes have closed the other end.
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
    /// No data at the moment, or the end of the output.
    Dry,
}

impl Pump {
    pub fn new(pipe: PipeReader, path: &Path, order: &Order) -> Result<Self> {
        fcntl_getfl(&pipe)
            .and_then(|flags| fcntl_setfl(&pipe, flags | OFlags::NONBLOCK))
            .map_err(|errno| Error::CannotSetUp {
                what: "cannot make the output pipe non-blocking",
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

    /// The descriptor to poll.
    pub fn source(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads what is available, or a part of it if there is much.
    pub fn some(&mut self) {
        for _ in 0..AT_ONCE {
            if self.next() == Flow::Dry {
                return;
            }
        }
    }

    /// Reads the rest after all writers have ended, and makes the file durable. Returns how many bytes were kept and
    /// how many were dropped.
    pub fn finish(mut self) -> (u64, u64) {
        while self.next() == Flow::More {}
        self.redactor.finish(&mut self.ready);
        self.keep();
        // As with a failed write, an error cannot be reported here.
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

    /// Writes the redacted output, up to the limit. Output that cannot be written, for example because the disk is
    /// full, is dropped like output over the limit, and the task continues.
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
        // After a failed write nothing more is kept: the file must not have a gap.
        if !rest.is_empty() {
            self.limit = self.kept;
        }
        self.ready.clear();
    }
}
