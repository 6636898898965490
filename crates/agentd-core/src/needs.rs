//! What an escalated call needs beyond its sandbox: the entries of the argument `needs`, in words for the user, and
//! whether a rule of the user covers them.
//!
//! The user approves these entries, and the call gets exactly them. Paths are resolved by their text only: the process
//! that runs the call checks that no link is on the way.

mod danger;

pub use danger::Danger;

use crate::hosts::Host;
use crate::lexical_path::normalised;
use crate::spec::{Pass, Rule};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// The name of the argument that lists what a call needs.
pub const NEEDS: &str = "needs";
/// The name of the argument with the reason.
pub const ESCALATE: &str = "escalate";

/// The entry for a call outside the sandbox.
pub const EVERYTHING: &str = "everything";

/// More entries than a user can judge.
pub const MOST: usize = 8;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Need {
    /// A file or a directory with all that is in it, except credentials and shell profiles in it that no entry names.
    Write(PathBuf),
    Read(PathBuf),
    Service(Pass),
    Host(Host),
    /// The `config` file of the repository in the working directory.
    GitConfig,
    /// No sandbox, except that agentd's own state and sockets stay hidden.
    Everything,
}

/// What is at the path of a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Dir,
    File,
    Socket,
    Missing,
}

/// The directories that a relative path and `~` begin with. Neither contains a link.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    pub cwd: &'a Path,
    pub home: Option<&'a Path>,
}

/// Why entries cannot be used; the text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("`{ESCALATE}` needs `{NEEDS}`, the list of what the call needs")]
    Missing,
    #[error("`{NEEDS}` needs `{ESCALATE}`, the reason")]
    NoReason,
    #[error("`{NEEDS}` is empty")]
    Empty,
    #[error("`{NEEDS}` has more than {MOST} entries")]
    TooMany,
    #[error("`{text}` is no entry of `{NEEDS}`{why}")]
    Entry { text: String, why: String },
}

/// The form of the entries, for a model whose call has none or wrong ones.
pub const FORM: &str = "`needs` is an array of strings: \"write:PATH\", \"read:PATH\", \"service:NAME\" (ssh-agent, \
     gpg-agent, docker, kube, gh), \"host:NAME\", \"git-config\", or \"everything\" (no sandbox). The call gets exactly \
     these, so name the narrowest that suffice.";

/// All entries of a call, each once.
pub fn parse<T: AsRef<str>>(entries: &[T], places: Places<'_>) -> Result<Vec<Need>, Invalid> {
    if entries.is_empty() {
        return Err(Invalid::Empty);
    }
    if entries.len() > MOST {
        return Err(Invalid::TooMany);
    }
    let mut needs = Vec::new();
    for entry in entries {
        let need = Need::parse(entry.as_ref(), places)?;
        if !needs.contains(&need) {
            needs.push(need);
        }
    }
    Ok(needs)
}

impl Need {
    pub fn parse(text: &str, places: Places<'_>) -> Result<Self, Invalid> {
        let refused = |why: &str| Invalid::Entry {
            text: text.to_owned(),
            why: format!(": {why}"),
        };
        match text {
            "git-config" => return Ok(Self::GitConfig),
            EVERYTHING => return Ok(Self::Everything),
            _ => {}
        }
        let Some((kind, value)) = text.split_once(':') else {
            let (text, why) = (text.to_owned(), String::new());
            return Err(Invalid::Entry { text, why });
        };
        match kind {
            "write" => path(value, places).map(Self::Write).map_err(refused),
            "read" => path(value, places).map(Self::Read).map_err(refused),
            "service" => {
                let mut known = Pass::ALL.into_iter();
                let service = known.find(|pass| pass.name() == value);
                service
                    .map(Self::Service)
                    .ok_or_else(|| refused("there is no such service"))
            }
            "host" => value
                .parse()
                .map(Self::Host)
                .map_err(|_| refused("write `example.com`, with `:PORT` for one port only")),
            _ => Err(refused("it begins with an unknown word")),
        }
    }

    /// What the user allows, in words. The path or host is the model's: a program that shows the text escapes it.
    pub fn words(&self, at: At) -> String {
        let below = match at {
            At::Dir => " and all that is in it",
            At::File | At::Socket | At::Missing => "",
        };
        match self {
            Self::Write(path) if at == At::Missing => format!("create {}", quoted(path)),
            Self::Write(path) => format!("write {}{below}", quoted(path)),
            Self::Read(path) => format!("read {}{below}", quoted(path)),
            Self::Service(pass) => format!("use your {}: {}", pass.name(), pass.gives_away()),
            Self::Host(host) => format!("reach {host} over the network"),
            Self::GitConfig => "write the repository's .git/config".to_owned(),
            Self::Everything => {
                "run outside the sandbox: everything that you can read, write and reach, except agentd's own state"
                    .to_owned()
            }
        }
    }
}

impl Need {
    /// Its path, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Write(path) | Self::Read(path) => Some(path),
            _ => None,
        }
    }
}

/// The entry with a whole path, as it would be written in a rule.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(path) => write!(f, "write:{}", path.display()),
            Self::Read(path) => write!(f, "read:{}", path.display()),
            Self::Service(pass) => write!(f, "service:{}", pass.name()),
            Self::Host(host) => write!(f, "host:{host}"),
            Self::GitConfig => f.write_str("git-config"),
            Self::Everything => f.write_str(EVERYTHING),
        }
    }
}

/// In quotes if a blank in it could be taken for its end, or would not be seen.
fn quoted(path: &Path) -> String {
    let shown = path.display().to_string();
    match shown.contains(char::is_whitespace) {
        true => format!("\"{shown}\""),
        false => shown,
    }
}

/// Where nothing of the host is ever shown: each call has its own.
const OWN: [&str; 2] = ["/proc", "/dev"];

fn path(value: &str, places: Places<'_>) -> Result<PathBuf, &'static str> {
    if value.is_empty() || value.contains('\0') {
        return Err("its path is empty, or contains a NUL byte");
    }
    let given = match (value.strip_prefix('~'), places.home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        (Some(rest), None) if rest.is_empty() || rest.starts_with('/') => {
            return Err("the home directory is not known; write an absolute path");
        }
        _ => places.cwd.join(value),
    };
    let path = normalised(&given);
    if path == Path::new("/") {
        return Err("name the directories, or `everything`");
    }
    if OWN.iter().any(|own| path.starts_with(own)) {
        return Err("a call has its own /proc and /dev");
    }
    Ok(path)
}

/// The rules that may let a call with these needs run without a question: an allow rule must name each of them. Rules
/// that ask and deny stay.
pub fn covering(rules: &[Rule], needs: &[Need], places: Places<'_>) -> Vec<Rule> {
    let names = |rule: &Rule| {
        let named = rule.needs.iter();
        let named: Vec<Need> = named
            .filter_map(|entry| Need::parse(entry, places).ok())
            .collect();
        needs.iter().all(|need| named.contains(need))
    };
    let is_kept = |rule: &&Rule| rule.decision != crate::spec::Decision::Allow || names(rule);
    rules.iter().filter(is_kept).cloned().collect()
}

#[cfg(test)]
mod tests;
