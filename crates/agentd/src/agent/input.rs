//! The sources of prompts. They are read on a separate thread: a read that blocks on a terminal or a pipe must not keep
//! the process from ending.

use crate::error::{Error, Exit};
use agentd_core::frame::{self, Frame, FrameError, Splitter};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::File;
use std::io::{self, BufRead as _, IsTerminal as _, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use tokio::sync::mpsc;

/// The size of the frame queue; when it is full, the sender waits.
const QUEUE: usize = 16;

pub type Frames = mpsc::Receiver<Result<Frame, FrameError>>;
type Sender = mpsc::Sender<Result<Frame, FrameError>>;

/// NUL-terminated frames from stdin; lines, if stdin is a terminal.
pub fn stdin() -> Frames {
    let (frames, queue) = mpsc::channel(QUEUE);
    std::thread::spawn(move || {
        let stdin = io::stdin();
        match stdin.is_terminal() {
            true => read_lines(&frames),
            false => read_frames(stdin.lock(), &frames),
        }
    });
    queue
}

/// NUL-terminated frames from a named pipe, which is created if it does not exist. It has no end.
pub fn fifo(path: &Path) -> Result<Frames, Error> {
    let cannot = |error: io::Error| {
        let what = format!("cannot read from {}", path.display());
        Error::new(Exit::Unavailable, what).because(error)
    };
    if !path.exists() {
        let (mode, none) = (Mode::RUSR | Mode::WUSR, 0);
        mknodat(CWD, path, FileType::Fifo, mode, none).map_err(|errno| cannot(errno.into()))?;
    }
    // Opened for writing too, so that it does not end when its first writer closes it.
    let file = File::options().read(true).write(true).open(path);
    let file = file.map_err(cannot)?;
    let kind = file.metadata().map_err(cannot)?.file_type();
    if !kind.is_fifo() {
        let what = format!("{} is not a named pipe", path.display());
        return Err(Error::new(Exit::Usage, what)
            .next("give the path of a named pipe, or a path that does not exist"));
    }
    let (frames, queue) = mpsc::channel(QUEUE);
    std::thread::spawn(move || read_frames(file, &frames));
    Ok(queue)
}

fn read_frames(mut from: impl Read, frames: &Sender) {
    let mut splitter = Splitter::default();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // No more frames can arrive.
            Err(_) => 0,
        };
        let read = buffer.get(..count).unwrap_or_default();
        let mut found = splitter.feed(read);
        if count == 0 {
            found.extend(splitter.finish());
        }
        for frame in found {
            let frame = frame.and_then(|bytes| frame::parse(&bytes));
            if frames.blocking_send(frame).is_err() {
                return;
            }
        }
        if count == 0 {
            return;
        }
    }
}

fn read_lines(frames: &Sender) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        if line.trim().is_empty() {
            continue;
        }
        if frames.blocking_send(frame::parse(line.as_bytes())).is_err() {
            return;
        }
    }
}
