//! Where a key comes from: a variable, a file or a command, in this order.
//!
//! No error here repeats what was read, nor a command, which may have a key written out in it.

use super::Key;
use agentd_core::catalog::ProviderEntry;
use agentd_process::{Child, Exit, Signal, Start, signal_group};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a command may take to print a key: somebody may have to touch a device.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// Longer than any key; more than that is some other file.
const MAX_BYTES: u64 = 64 * 1024;
/// How often a command that has closed its output is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("`{provider}` needs a key: {advice}")]
    Missing { provider: String, advice: String },
    #[error("the key file {} of `{provider}` cannot be used: {why}", .path.display())]
    File {
        provider: String,
        path: PathBuf,
        why: String,
    },
    #[error(
        "the key_command of `{provider}` gave no key: {why}; run it by hand, with nothing but PATH \
         and HOME set, to see what it prints"
    )]
    Command { provider: String, why: String },
}

/// Looks for the key of a provider; none where it needs none and has none. Blocks while a command
/// runs.
pub fn find_key(
    provider: &ProviderEntry,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Key>, KeyError> {
    find(provider, env, COMMAND_LIMIT)
}

fn find(
    provider: &ProviderEntry,
    env: &dyn Fn(&str) -> Option<String>,
    limit: Duration,
) -> Result<Option<Key>, KeyError> {
    let set = |name: &String| env(name).filter(|value| !value.trim().is_empty());
    if let Some(value) = provider.key_env.iter().find_map(set) {
        return Ok(Some(Key::new(&value)));
    }
    if let Some(path) = &provider.key_file {
        let path = at_home(path, env);
        return from_file(&path).map(Some).map_err(|why| KeyError::File {
            provider: provider.name.clone(),
            path,
            why,
        });
    }
    if let Some(command) = &provider.key_command {
        let key = from_command(command, env, limit);
        return key.map(Some).map_err(|why| KeyError::Command {
            provider: provider.name.clone(),
            why,
        });
    }
    if provider.needs_key {
        return Err(KeyError::Missing {
            provider: provider.name.clone(),
            advice: advice(provider),
        });
    }
    Ok(None)
}

fn advice(provider: &ProviderEntry) -> String {
    let section = format!(
        "key_file or key_command under [providers.{}] in the configuration file",
        provider.name
    );
    match provider.key_env.join(" or ") {
        names if names.is_empty() => format!("give {section}"),
        names => format!("set {names}, or give {section}"),
    }
}

fn at_home(path: &str, env: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    match (path.strip_prefix("~/"), env("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}

fn from_file(path: &Path) -> Result<Key, String> {
    let why = |error: std::io::Error| format!("{error}; check its path and who may read it");
    // Looked at first: to open a pipe is to wait for whoever writes into it.
    let about = std::fs::metadata(path).map_err(why)?;
    if !about.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(why)?;
    let mut file = file.take(MAX_BYTES + 1);
    file.read_to_end(&mut bytes).map_err(why)?;
    key_in(&bytes).map_err(|why| format!("{why}; write the key into it, and nothing else"))
}

fn key_in(bytes: &[u8]) -> Result<Key, &'static str> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err("that is too long for a key");
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "that is no text")?;
    let key = Key::new(text);
    if key.expose().is_empty() {
        return Err("it is empty");
    }
    if key.expose().contains(['\n', '\r']) {
        return Err("it has more than one line");
    }
    Ok(key)
}

fn from_command(
    command: &str,
    env: &dyn Fn(&str) -> Option<String>,
    limit: Duration,
) -> Result<Key, String> {
    let until = Instant::now() + limit;
    let mut start = Start::new("/bin/sh");
    start.args = vec!["-c".into(), command.into()];
    let pass = |name: &str| Some((name.into(), env(name)?.into()));
    start.env = ["PATH", "HOME"].into_iter().filter_map(pass).collect();
    start.stdout = Stdio::piped();
    let mut child = start.spawn().map_err(|error| error.to_string())?;
    let output = child.take_stdout();
    let bytes = output.and_then(|output| read_until(output, until));
    let ended = bytes.is_some() && has_ended(&child, until);
    // What it has started goes with it; only then is it reaped, as a group is known by its leader.
    let killed = signal_group(child.identity(), Signal::KILL);
    let exit = child.wait().map_err(|error| error.to_string())?;
    let _delivered = killed.map_err(|error| error.to_string())?;
    let Some(bytes) = bytes.filter(|_| ended) else {
        return Err(format!("it was not done within {} s", limit.as_secs_f32()));
    };
    match exit {
        Exit::Code(0) => key_in(&bytes).map_err(str::to_owned),
        Exit::Code(code) => Err(format!("it ended with {code}")),
        Exit::Signal(signal) => Err(format!("signal {signal} ended it")),
    }
}

/// All of the output; none where it is not closed in time. A reader that is left behind ends when
/// the group is killed and its pipe closes.
fn read_until(output: ChildStdout, until: Instant) -> Option<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.take(MAX_BYTES + 1).read_to_end(&mut bytes);
        // Whoever waited may have given up.
        let _gone = send.send(read.map(|_| bytes));
    });
    let left = until.saturating_duration_since(Instant::now());
    receive.recv_timeout(left).ok()?.ok()
}

/// Whether it ends in time; it stays to be reaped.
fn has_ended(child: &Child, until: Instant) -> bool {
    while matches!(child.identity().is_alive(), Ok(true)) {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    true
}

#[cfg(test)]
mod tests;
