//! The faults during a run: records the planned ones, continues a stopped process after a while, and sends signals to
//! processes at random times.

use super::dice::Dice;
use super::processes::{self, Process};
use super::record;
use super::testbed::Testbed;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a stopped process stays stopped.
const STANDS_STILL: Duration = Duration::from_millis(150);
/// How often the faults are checked.
const LOOK: Duration = Duration::from_millis(4);
/// The longest random part of the time between two random kills, in milliseconds.
const LONGEST_PEACE: u64 = 400;

/// The processes and signals from which a random kill is chosen. Daemon and runtime are listed several times, so they
/// are chosen most often.
const TARGETS: [(&str, Signal, &str); 12] = [
    ("daemon", Signal::KILL, "KILL"),
    ("daemon", Signal::KILL, "KILL"),
    ("daemon", Signal::TERM, "TERM"),
    ("daemon", Signal::STOP, "STOP"),
    ("runtime", Signal::KILL, "KILL"),
    ("runtime", Signal::KILL, "KILL"),
    ("runtime", Signal::TERM, "TERM"),
    ("runtime", Signal::STOP, "STOP"),
    ("client", Signal::KILL, "KILL"),
    ("tool", Signal::KILL, "KILL"),
    ("shim", Signal::KILL, "KILL"),
    ("shim", Signal::STOP, "STOP"),
];

/// How many of `TARGETS` are SIGKILL, and how many targets there are.
pub fn kills_among_targets() -> (usize, usize) {
    let kills = TARGETS
        .iter()
        .filter(|(_, signal, _)| *signal == Signal::KILL);
    (kills.count(), TARGETS.len())
}

struct Watch<'a> {
    testbed: &'a Testbed,
    /// How many lines of `fired.jsonl` were already read.
    known: usize,
    /// The stopped processes: pid, role, and when each is continued.
    stopped: Vec<(u32, String, Instant)>,
    dice: Dice,
    random_left: u32,
    next_random: Instant,
}

/// Watches until the run is over. Runs on its own thread.
pub fn watch(testbed: &Testbed) -> std::io::Result<()> {
    let mut watch = Watch {
        testbed,
        known: 0,
        stopped: Vec::new(),
        dice: Dice::new(testbed.spec.seed),
        random_left: testbed.spec.random,
        next_random: Instant::now() + Duration::from_millis(200),
    };
    while !testbed.is_over.load(Ordering::Relaxed) {
        watch.look()?;
        // tidy: polls
        std::thread::sleep(LOOK);
    }
    watch.let_go()
}

impl Watch<'_> {
    fn look(&mut self) -> std::io::Result<()> {
        self.look_for_fired()?;
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.stopped)
            .into_iter()
            .partition::<Vec<_>, _>(|(_, _, until)| *until <= now);
        self.stopped = later;
        for (pid, role, _) in due {
            self.send(pid, &role, None, Signal::CONT, "CONT")?;
        }
        let is_due = self.random_left > 0 && now >= self.next_random;
        if let (true, Ok(_no_peace)) = (is_due, self.testbed.peace.try_lock()) {
            self.kill_random()?;
            let peace = 20 + self.dice.below(LONGEST_PEACE);
            self.next_random = now + Duration::from_millis(peace);
        }
        processes::reap(self.testbed);
        Ok(())
    }

    /// Records the planned faults that happened.
    fn look_for_fired(&mut self) -> std::io::Result<()> {
        let lines = record::lines(&self.testbed.root.join("fired.jsonl"));
        for line in lines.iter().skip(self.known) {
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            let (role, what) = (text("role"), text("action"));
            let pid = line["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
            let pid = pid.unwrap_or_default();
            let at = self
                .testbed
                .record
                .at_unix(line["at"].as_u64().unwrap_or_default());
            let task = task_of(&role, &text("inside"));
            self.note(at, &role, pid, &what, task, Some(line))?;
            if what == "STOP"
                && let Some(pid) = processes::find(self.testbed, line)
            {
                self.stopped
                    .push((pid, role, Instant::now() + STANDS_STILL));
            }
        }
        self.known = lines.len();
        Ok(())
    }

    /// `fired` is the line of a fault that a process injected into itself.
    fn note(
        &self,
        at: u64,
        role: &str,
        pid: u32,
        what: &str,
        task: Option<String>,
        fired: Option<&Value>,
    ) -> std::io::Result<()> {
        let of = |name: &str| fired.map_or(Value::Null, |line| line[name].clone());
        let line = json!({"at": at, "role": role, "pid": pid, "what": what, "task": task,
                          "failpoint": of("failpoint"), "nth": of("nth")});
        self.testbed.record.line("faults.jsonl", &line)
    }

    fn kill_random(&mut self) -> std::io::Result<()> {
        let all = processes::descendants(&self.testbed.root);
        let Some((role, signal, what)) = self.dice.choose(&TARGETS).copied() else {
            return Ok(());
        };
        let targets: Vec<&Process> = all
            .iter()
            .filter(|it| it.role == role && it.is_alive())
            .collect();
        if let Some(target) = self.dice.choose(&targets) {
            self.random_left -= 1;
            let task = task_of(role, &target.cmdline);
            self.send(target.pid, role, task, signal, what)?;
            if signal == Signal::STOP {
                let until = Instant::now() + STANDS_STILL;
                self.stopped.push((target.pid, role.to_owned(), until));
            }
        }
        Ok(())
    }

    /// Records the signal before it sends it, because its consequences may be visible before this returns.
    fn send(
        &self,
        pid: u32,
        role: &str,
        task: Option<String>,
        signal: Signal,
        what: &str,
    ) -> std::io::Result<()> {
        self.note(self.testbed.record.at(), role, pid, what, task, None)?;
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            // The process may have ended by itself.
            let _gone = kill_process(pid, signal);
        }
        Ok(())
    }

    fn let_go(&mut self) -> std::io::Result<()> {
        for (pid, role, _) in std::mem::take(&mut self.stopped) {
            self.send(pid, &role, None, Signal::CONT, "CONT")?;
        }
        self.look_for_fired()
    }
}

/// The task or hook of a shim: its working directory has the name.
pub fn task_of(role: &str, command: &str) -> Option<String> {
    let dir = command.trim_end().rsplit('/').next();
    let dir = dir.filter(|_| role == "shim");
    dir.map(str::to_owned)
}
