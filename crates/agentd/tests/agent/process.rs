//! A running `agentd agent`: its output is recorded as it arrives, and it ends with the test.

use agentd_testkit::harness::Poll;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A time limit for tests that would otherwise hang, far longer than any step takes.
pub const DEADLINE: Duration = Duration::from_secs(30);
const POLL: Poll = Poll::new(Duration::from_millis(2), DEADLINE);

/// Waits until the closure returns a value.
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    POLL.until(what, look).unwrap()
}

/// Lines as they come, each as it was written.
#[derive(Default)]
struct Lines {
    kept: Mutex<(Vec<String>, bool)>,
    changed: Condvar,
    is_enough: AtomicBool,
}

impl Lines {
    fn read(from: impl Read + Send + 'static) -> (Arc<Self>, JoinHandle<()>) {
        let lines = Arc::new(Self::default());
        let ours = Arc::clone(&lines);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                if ours.is_enough.load(Ordering::Relaxed) {
                    break;
                }
                let line = String::from_utf8_lossy(&line).into_owned();
                ours.kept.lock().unwrap().0.push(line);
                ours.changed.notify_all();
            }
            ours.kept.lock().unwrap().1 = true;
            ours.changed.notify_all();
        });
        (lines, reader)
    }

    fn all(&self) -> Vec<String> {
        self.kept.lock().unwrap().0.clone()
    }
}

/// A process that has ended, and all of its output.
#[derive(Debug)]
pub struct Ended {
    /// None if a signal ended it.
    pub code: Option<i32>,
    pub lines: Vec<Value>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn of_kind(&self, kind: &str) -> Vec<&Value> {
        let lines = self.lines.iter();
        lines.filter(|line| line["kind"] == kind).collect()
    }

    /// How its turns ended.
    pub fn statuses(&self) -> Vec<&str> {
        let results = self.of_kind("turn_result").into_iter();
        results
            .map(|line| line["status"].as_str().unwrap())
            .collect()
    }
}

pub struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    out: Arc<Lines>,
    err: Arc<Lines>,
    readers: Vec<JoinHandle<()>>,
    status: Option<ExitStatus>,
}

impl Agent {
    pub fn spawn(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let (out, out_reader) = Lines::read(child.stdout.take().unwrap());
        let (err, err_reader) = Lines::read(child.stderr.take().unwrap());
        Self {
            child,
            stdin,
            out,
            err,
            readers: vec![out_reader, err_reader],
            status: None,
        }
    }

    /// Its output is closed at the next line.
    pub fn stop_reading(&mut self) {
        self.out.is_enough.store(true, Ordering::Relaxed);
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a frame.
    pub fn send(&mut self, frame: &str) {
        self.send_bytes(&[frame.as_bytes(), b"\0"].concat());
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("its input is open");
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// Closes its input: there will be no more prompts.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Waits until a signal has been delivered: two pending signals of one kind arrive as one.
    pub fn until_taken(&self, signal: Signal) {
        let path = format!("/proc/{}/status", self.child.id());
        until("a signal to be taken", || {
            let status = fs::read_to_string(&path).unwrap();
            let pending = status.lines().filter_map(|line| {
                let mask = line
                    .strip_prefix("ShdPnd:")
                    .or(line.strip_prefix("SigPnd:"))?;
                u64::from_str_radix(mask.trim(), 16).ok()
            });
            let pending = pending.fold(0, |all, mask| all | mask);
            let bit = 1 << (signal.as_raw() - 1);
            (pending & bit == 0).then_some(())
        });
    }

    /// Its output so far.
    pub fn lines(&self) -> Vec<Value> {
        parse(&self.out.all())
    }

    /// Waits for the first line that matches.
    pub fn line(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        self.nth_line(what, 0, is_it)
    }

    /// Waits for the matching line after `skip` others.
    pub fn nth_line(&self, what: &str, skip: usize, is_it: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        let mut kept = self.out.kept.lock().unwrap();
        loop {
            if let Some(line) = parse(&kept.0).into_iter().filter(&is_it).nth(skip) {
                return line;
            }
            let left = DEADLINE.saturating_sub(begin.elapsed());
            assert!(
                !left.is_zero() && !kept.1,
                "there is no {what} in {:#?}\n{:#?}",
                kept.0,
                self.err.all()
            );
            kept = self.out.changed.wait_timeout(kept, left).unwrap().0;
        }
    }

    pub fn event(&self, kind: &str) -> Value {
        self.line(kind, |line| line["kind"] == kind)
    }

    /// The end of its turn number `n`, counted from 0.
    pub fn turn_result(&self, n: usize) -> Value {
        self.nth_line("result of a turn", n, |line| line["kind"] == "turn_result")
    }

    pub fn is_running(&mut self) -> bool {
        self.look().is_none()
    }

    fn look(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().unwrap();
        }
        self.status
    }

    /// Kills it with SIGKILL, and waits until it is gone.
    pub fn kill(mut self) -> Ended {
        assert!(
            self.is_running(),
            "it had ended before it was killed: {:#?} {:#?}",
            self.out.all(),
            self.err.all()
        );
        self.child.kill().unwrap();
        self.ended()
    }

    /// Waits for its own end.
    pub fn ended(mut self) -> Ended {
        let status = POLL.until("its end", || self.look());
        let status = status.unwrap_or_else(|error| {
            let (out, err) = (self.out.all(), self.err.all());
            panic!("{error}: {out:#?}\n{err:#?}")
        });
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        let (out, err) = (self.out.all(), self.err.all());
        Ended {
            code: status.code(),
            lines: parse(&out),
            stdout: out.join("\n"),
            stderr: err.join("\n"),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if self.status.is_none() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// The output of a killed process may end anywhere: an incomplete last line does not count as received.
fn parse(lines: &[String]) -> Vec<Value> {
    let whole = lines
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok());
    whole.collect()
}
