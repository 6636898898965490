//! What agents run in the lab: a program that writes down that it ran, and by which call.

use agentd_process::Identity;
use agentd_process::failpoint::{self, VARIABLE, plan::Role};
use serde_json::json;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where effects are written down, and when the run began.
pub const EFFECTS: &str = "LAB_EFFECTS";
pub const BEGAN: &str = "LAB_BEGAN";
const CALL: &str = "AGENTD_CALL_ID";

/// `agentd-lab tool WORD [MILLISECONDS]`: begins, takes so long, says its word, ends.
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
    let mut effect = |what: &str| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_micros());
        let at = u64::try_from(now).unwrap_or_default().saturating_sub(began);
        let (call, pid, start) = (variable(CALL), me.pid, me.start_ticks);
        let line = json!({"call": call, "pid": pid, "start": start, "what": what, "at": at});
        file.write_all(format!("{line}\n").as_bytes())
    };
    failpoint::hit("before", "effect");
    effect(word)?;
    failpoint::hit("after", "effect");
    // tidy: polls nothing; the work takes so long
    std::thread::sleep(Duration::from_millis(millis));
    failpoint::hit("before", "end");
    effect("end")?;
    let mut out = io::stdout().lock();
    writeln!(out, "{word} is done")?;
    out.flush()?;
    failpoint::hit("after", "end");
    Ok(())
}
