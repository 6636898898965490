//! The program that agents run in the lab: it records that it ran, and for which call.

use agentd_failpoint::{self as failpoint, VARIABLE, plan::Role};
use agentd_process::Identity;
use serde_json::json;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where effects are recorded, and when the run began.
pub const EFFECTS: &str = "LAB_EFFECTS";
pub const BEGAN: &str = "LAB_BEGAN";
const CALL: &str = "AGENTD_CALL_ID";

/// The owner of this process, by the working directory of its shim; empty if the shim is gone.
#[derive(Debug, Default)]
pub struct Whose {
    pub agent: Option<String>,
    /// Its task, its hook, or the command of the user.
    pub task: Option<String>,
}

impl Whose {
    pub fn look() -> Self {
        let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
        let shim = parent.and_then(|pid| std::fs::read(format!("/proc/{pid}/cmdline")).ok());
        let shim = String::from_utf8(shim.unwrap_or_default()).unwrap_or_default();
        Self::of(
            shim.trim_end_matches('\0')
                .rsplit('\0')
                .next()
                .unwrap_or_default(),
        )
    }

    /// `…/agents/AGENT/tasks/TASK`, `…/hooks/HOOK`, or `…/commands/COMMAND`.
    fn of(dir: &str) -> Self {
        let mut parts = dir.rsplit('/');
        let task = parts.next().map(str::to_owned);
        match parts.next() {
            Some("tasks") => Self {
                agent: parts.next().map(str::to_owned),
                task,
            },
            Some("hooks" | "commands") => Self { agent: None, task },
            _ => Self::default(),
        }
    }
}

/// The time, in the unit of the record.
pub fn micros_since(began: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_micros());
    u64::try_from(now).unwrap_or_default().saturating_sub(began)
}

/// `agentd-lab tool WORD [MILLISECONDS]`: begins, takes this long, prints its word, ends.
pub fn run(args: &[String]) -> io::Result<()> {
    let word = args.first().map_or("effect", String::as_str);
    let millis = args.get(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let lab = variable(VARIABLE);
    failpoint::enter(Path::new(&lab), Path::new(&lab), Role::Tool).map_err(io::Error::other)?;
    let began: u64 = variable(BEGAN).parse().unwrap_or(0);
    let me = Identity::current().map_err(io::Error::other)?;
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(variable(EFFECTS))?;
    let whose = Whose::look();
    let namespace = failpoint::pid_namespace();
    let mut effect = |what: &str| {
        let at = micros_since(began);
        let (call, pid, start) = (variable(CALL), me.pid, me.start_ticks);
        let line = json!({"call": call, "agent": whose.agent, "task": whose.task, "pid": pid,
                          "pid_ns": namespace, "start": start, "what": what, "at": at});
        file.write_all(format!("{line}\n").as_bytes())
    };
    failpoint::hit("before", "effect");
    effect(word)?;
    failpoint::hit("after", "effect");
    // tidy: polls nothing; this is the duration of the work
    std::thread::sleep(Duration::from_millis(millis));
    failpoint::hit("before", "end");
    effect("end")?;
    let mut out = io::stdout().lock();
    writeln!(out, "{word} is done")?;
    out.flush()?;
    failpoint::hit("after", "end");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Whose;

    #[test]
    fn a_directory_says_whose_it_is() {
        let whose = Whose::of("/lab/home/agents/a-1/tasks/t-1");
        assert_eq!(
            (whose.agent.as_deref(), whose.task.as_deref()),
            (Some("a-1"), Some("t-1"))
        );
        let whose = Whose::of("/lab/home/hooks/h-1");
        assert_eq!((whose.agent, whose.task.as_deref()), (None, Some("h-1")));
        let whose = Whose::of("/lab/home/commands/c-1");
        assert_eq!((whose.agent, whose.task.as_deref()), (None, Some("c-1")));
        assert!(Whose::of("systemd").task.is_none());
    }
}
