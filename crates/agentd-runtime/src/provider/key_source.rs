//! Where a key comes from: a variable, a file or a command, in this order.
//!
//! No error here contains what was read, nor the command, which may contain a key.

use super::Key;
use agentd_core::catalog::ProviderEntry;
use agentd_process::{Child, Exit, Signal, Start, signal_group};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a command may take to print a key: the user may have to touch a security key.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// Longer than any key; a longer file is not a key file.
const MAX_BYTES: u64 = 64 * 1024;
/// How often a command that has closed its output is polled.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("`{provider}` needs a key: {advice}")]
    Missing { provider: String, advice: String },
    #[error("cannot use the key file {} of `{provider}`: {why}", .path.display())]
    File {
        provider: String,
        path: PathBuf,
        why: String,
    },
    #[error(
        "the key_command of `{provider}` returned no key: {why}; run it by hand, with only PATH \
         and HOME set, to see its output"
    )]
    Command { provider: String, why: String },
}

/// Looks up the key of a provider; `None` if it needs no key and has none. Blocks while a command runs.
pub fn find_key(
    provider: &ProviderEntry,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Key>, KeyError> {
    find(provider, env, COMMAND_LIMIT)
}

/// Whether the provider's key file or command yields a key, as an agent without any variable would find it. `None` if it
/// has neither. Blocks while a command runs.
pub fn check_own_source(
    provider: &ProviderEntry,
    env: &dyn Fn(&str) -> Option<String>,
    limit: Duration,
) -> Option<Result<(), KeyError>> {
    let own = ProviderEntry {
        key_env: Vec::new(),
        needs_key: false,
        ..provider.clone()
    };
    find(&own, env, limit).map(|key| key.map(drop)).transpose()
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
    if let Some(path) = key_file(provider, env) {
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

/// The provider's key file, with `~/` replaced by the user's home.
pub fn key_file(provider: &ProviderEntry, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let path = provider.key_file.as_ref()?;
    Some(match (path.strip_prefix("~/"), env("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    })
}

fn from_file(path: &Path) -> Result<Key, String> {
    let why = |error: std::io::Error| format!("{error}; check its path and its permissions");
    // Checked first: opening a pipe blocks until another process opens it for writing.
    let about = std::fs::metadata(path).map_err(why)?;
    if !about.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(why)?;
    let mut file = file.take(MAX_BYTES + 1);
    file.read_to_end(&mut bytes).map_err(why)?;
    key_in(&bytes).map_err(|why| format!("{why}; it must contain only the key"))
}

fn key_in(bytes: &[u8]) -> Result<Key, &'static str> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err("it is too long for a key");
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text")?;
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
    // The whole process group is killed before the leader is reaped: the leader's pid identifies the group.
    let killed = signal_group(child.identity(), Signal::KILL);
    let exit = child.wait().map_err(|error| error.to_string())?;
    let _delivered = killed.map_err(|error| error.to_string())?;
    let Some(bytes) = bytes.filter(|_| ended) else {
        return Err(format!(
            "it did not finish within {} s",
            limit.as_secs_f32()
        ));
    };
    match exit {
        Exit::Code(0) => key_in(&bytes).map_err(str::to_owned),
        Exit::Code(code) => Err(format!("it exited with code {code}")),
        Exit::Signal(signal) => Err(format!("it was ended by signal {signal}")),
    }
}

/// All of the output; `None` if the output is not closed in time. A reader that is still running then ends when the
/// group is killed and the pipe closes.
fn read_until(output: ChildStdout, until: Instant) -> Option<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.take(MAX_BYTES + 1).read_to_end(&mut bytes);
        // The receiver may have given up.
        let _gone = send.send(read.map(|_| bytes));
    });
    let left = until.saturating_duration_since(Instant::now());
    receive.recv_timeout(left).ok()?.ok()
}

/// Whether the process ends in time; it is not reaped here.
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
