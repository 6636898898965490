//! The note that the model gets when the sandbox denied a tool an access: what was denied, and how to ask for more.

mod more;
mod services;

use super::escalate::Escalation;
use super::paths;
use agentd_core::spec::Pass;
use agentd_process::task::Confined;
use agentd_sandbox::{Network, Policy, Reach, is_protected, reach};
use std::path::{Path, PathBuf};

/// What was denied access: commands and file tools do not see the same paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Actor {
    Command,
    /// In a view of its own, with the policy of [`FileProcesses::policy`](super::file_process::FileProcesses::policy).
    FileTool,
    /// On a kernel without namespaces.
    FileThread,
}

/// The number of paths that are listed; the rest is counted.
const NAMED: usize = 3;
/// The number of lines that are searched, from the end: errors are usually there.
const LINES: usize = 400;
/// The number of paths that are looked up in the sandbox's view.
const LOOKED_AT: usize = 64;

const REFUSED: &[&str] = &[
    "permission denied",
    "read-only file system",
    "operation not permitted",
    "eacces",
    "eperm",
    "erofs",
];
/// The errors that a system call filter returns.
const NOT_PERMITTED: &[&str] = &["operation not permitted", "eperm"];
/// Most of what a command may not read does not exist in its sandbox.
const MISSING: &[&str] = &[
    "no such file or directory",
    "enoent",
    "does not appear to be a git repository",
    "cannot connect to the docker daemon",
];
/// A mount point cannot be replaced: git's configuration is one.
const BUSY: &[&str] = &["device or resource busy", "ebusy"];
const NO_NETWORK: &[&str] = &[
    "network is unreachable",
    "could not resolve",
    "couldn't resolve",
    "unable to resolve",
    "couldn't connect",
    "failed to connect",
    "unable to connect",
    "connection refused",
    "name or service not known",
    "name resolution",
    "temporary failure resolving",
    "no such host",
    "dial tcp",
    "failed to establish a new connection",
    "no matching distribution found",
    "spurious network error",
    "enetunreach",
    "econnrefused",
    "enotfound",
    "eai_again",
];

/// A note for the result of a failed tool, if its text shows that the sandbox is the reason.
pub(super) fn note(
    confined: &Confined,
    cwd: &Path,
    actor: Actor,
    escalation: &Escalation,
    text: &str,
) -> Option<String> {
    // Nothing was closed to it that could have been the reason.
    if escalation.is_everything() {
        return None;
    }
    let found = Found::in_text(confined, cwd, actor, text)?;
    Some(found.sentence(confined, actor, escalation))
}

/// The kind of error that a line of output reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Complaint {
    Refused,
    Missing,
    Busy,
}

impl Complaint {
    fn of(lower: &str) -> Option<Self> {
        [
            (REFUSED, Self::Refused),
            (BUSY, Self::Busy),
            (MISSING, Self::Missing),
        ]
        .into_iter()
        .find_map(|(phrases, complaint)| has(lower, phrases).then_some(complaint))
    }
}

fn has(lower: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| lower.contains(phrase))
}

/// How programs report that the proxy refused a host that is not in the agent's list.
const NOT_LISTED: &[&str] = &[
    "host not listed",
    "tunnel failed",
    "tunnel connection failed",
    "response 403",
    "http code 403",
    "proxy",
];

/// What was denied, according to a text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    hidden: Vec<PathBuf>,
    read_only: Vec<PathBuf>,
    /// A directory that may be written, but not by file tools on a thread, because it contains a closed one.
    around_closed: bool,
    network: bool,
    /// The text reports a refused operation and names no file: probably a system call.
    call: bool,
    /// Services of the user that the text misses.
    services: Vec<Pass>,
}

impl Found {
    fn in_text(confined: &Confined, cwd: &Path, actor: Actor, text: &str) -> Option<Self> {
        let is_command = actor == Actor::Command;
        let may_lack_network = is_command && confined.policy.network != Network::On;
        let has_list = is_command && !confined.hosts.is_empty();
        let mut found = Self::default();
        let mut named = Vec::new();
        let mut refused_without_path = false;
        for line in text.lines().rev().take(LINES) {
            let lower = line.to_lowercase();
            found.network |= may_lack_network && has(&lower, NO_NETWORK);
            found.network |= has_list && has(&lower, NOT_LISTED);
            let missed = services::missed(&lower, confined).filter(|_| is_command);
            if let Some(pass) = missed.filter(|pass| !found.services.contains(pass)) {
                found.services.push(pass);
            }
            let Some(complaint) = Complaint::of(&lower) else {
                continue;
            };
            // A thread sees the host's paths: a file that is missing for it does not exist.
            if complaint != Complaint::Refused && actor == Actor::FileThread {
                continue;
            }
            let paths = named_in(cwd, line);
            found.call |= paths.is_empty() && has(&lower, NOT_PERMITTED);
            refused_without_path |= complaint == Complaint::Refused && paths.is_empty();
            named.extend(paths.into_iter().map(|path| (path, complaint)));
        }
        named.truncate(LOOKED_AT);
        // Lines were read from the end; list the first denial first.
        named.reverse();
        found.sort(confined, actor, named);
        let names_any =
            !found.hidden.is_empty() || !found.read_only.is_empty() || found.around_closed;
        let misses = found.network || !found.services.is_empty();
        (refused_without_path || names_any || misses).then_some(found)
    }

    /// Ignores a path that the tool can write: it was refused for another reason.
    fn sort(&mut self, confined: &Confined, actor: Actor, named: Vec<(PathBuf, Complaint)>) {
        let policy = &confined.policy;
        let paths: Vec<PathBuf> = named.iter().map(|(path, _)| path.clone()).collect();
        let reached = reach(policy, &paths).unwrap_or_default();
        for ((path, complaint), reach) in named.into_iter().zip(reached) {
            if actor == Actor::FileThread && complaint == Complaint::Refused {
                self.around_closed |= closed_near(&policy.closed, &path);
            }
            let list = match (reach, complaint) {
                (Reach::Hidden, _) => &mut self.hidden,
                (Reach::Own | Reach::OwnRead, _) if actor == Actor::FileThread => &mut self.hidden,
                // Except in /tmp: most files that are missing there never existed.
                (Reach::Own | Reach::OwnRead, Complaint::Missing)
                    if path.starts_with(&policy.home) =>
                {
                    &mut self.hidden
                }
                (Reach::Read | Reach::OwnRead, Complaint::Refused) => &mut self.read_only,
                (Reach::Read, Complaint::Busy) if is_protected(&path) => &mut self.read_only,
                _ => continue,
            };
            if !list.contains(&path) {
                list.push(path);
            }
        }
    }

    fn sentence(&self, confined: &Confined, actor: Actor, escalation: &Escalation) -> String {
        let mut denied = Vec::new();
        denied.extend(listed(&self.read_only, "read-only"));
        denied.extend(listed(&self.hidden, "not visible"));
        if self.network {
            denied.push(match confined.hosts.is_empty() {
                true => "the network (off)".to_owned(),
                false => "a host that is not in the agent's `network` list".to_owned(),
            });
        }
        if self.call {
            let what = "a system call (such as tracing, mounting, or acting as another user)";
            denied.push(what.to_owned());
        }
        let services = self.services.iter();
        denied.extend(services.map(|pass| format!("the user's {}", pass.name())));
        let denied = match denied.is_empty() {
            true => String::new(),
            false => format!(" Denied: {}.", denied.join("; ")),
        };
        let git = match self.read_only.iter().any(|path| is_protected(path)) {
            true => " Git's configuration and hooks are write-protected.",
            false => "",
        };
        let around = match actor {
            Actor::Command | Actor::FileTool => None,
            Actor::FileThread => around_closed(&confined.policy),
        };
        let may = may(confined, actor) + &around.unwrap_or_default();
        let ask = match escalation {
            Escalation::None => self.how_to_ask(confined, actor),
            Escalation::Needs(needs) => self.not_included(needs, actor),
            Escalation::Unnamed => "The approval did not include that.".to_owned(),
        };
        format!("[sandbox]{denied} {may}{git} {ask}")
    }
}

/// Whether a path is a directory that contains a closed one, or directly in such a directory.
fn closed_near(closed: &[PathBuf], path: &Path) -> bool {
    let mut dirs = path.ancestors().take(2);
    dirs.any(|dir| closed.iter().any(|closed| closed.starts_with(dir)))
}

/// What a thread cannot do in a writable tree that contains a closed directory: the kernel's rules for it only add
/// rights, so a right for the tree would also hold in the closed directory.
fn around_closed(policy: &Policy) -> Option<String> {
    let mut trees = policy.writable.iter();
    let (tree, closed) = trees.find_map(|tree| {
        let mut closed = policy.closed.iter();
        let closed = closed.find(|closed| closed.starts_with(tree) && *closed != tree)?;
        Some((tree.display(), closed.display()))
    })?;
    Some(format!(
        " {tree} contains {closed}, which is closed to tools. So file tools cannot list or create files in a directory that \
         contains {closed}; they can in the other directories of {tree}, and shell can in all of them."
    ))
}

/// What a tool of this agent can write, and which hosts it can reach.
fn may(confined: &Confined, actor: Actor) -> String {
    let policy = &confined.policy;
    let trees = policy.writable.iter();
    let mut writes: Vec<String> = trees.map(|path| path.display().to_string()).collect();
    // The working directory is last in a policy; list it first.
    writes.reverse();
    let (who, network) = match (actor, policy.network) {
        (Actor::Command, Network::On) => ("Commands", String::new()),
        (Actor::Command, Network::Off) => ("Commands", ", and have no network access".to_owned()),
        (Actor::Command, Network::Gate { .. }) => {
            let hosts = confined.hosts.join(", ");
            (
                "Commands",
                format!(", and can reach only {hosts}, over HTTP and HTTPS"),
            )
        }
        (Actor::FileTool | Actor::FileThread, _) => ("File tools", String::new()),
    };
    let own: &[&str] = match actor {
        Actor::Command => &["/tmp", "a private home directory"],
        Actor::FileTool => &["/tmp"],
        Actor::FileThread => &[],
    };
    writes.extend(own.iter().map(|own| (*own).to_owned()));
    match and(&writes) {
        None => format!("{who} cannot write anywhere{network}."),
        Some(writes) => format!("{who} can write only to {writes}{network}."),
    }
}

fn and(words: &[String]) -> Option<String> {
    let (last, rest) = words.split_last()?;
    Some(match rest.is_empty() {
        true => last.clone(),
        false => format!("{} and {last}", rest.join(", ")),
    })
}

fn listed(paths: &[PathBuf], why: &str) -> Option<String> {
    let named = paths.iter().take(NAMED);
    let named: Vec<String> = named.map(|path| path.display().to_string()).collect();
    let more = match paths.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| format!("{}{more} ({why})", named.join(", ")))
}

/// The paths in a line of output. A name without a slash is not taken for a path.
fn named_in(cwd: &Path, line: &str) -> Vec<PathBuf> {
    let ends = |c: char| c.is_whitespace() || "'\"`:,;()[]{}<>=‘’“”".contains(c);
    let words = line.split(ends).enumerate();
    let words = words.filter(|(at, word)| *at > 0 || !is_program(word));
    let words = words.map(|(_, word)| word.trim_end_matches('.'));
    // `unix:///run/x.sock` contains a path, `http://host/x` does not.
    let words = words.map(|word| match word.strip_prefix("//") {
        Some(rest) if !rest.starts_with('/') => "",
        Some(rest) => rest,
        None => word,
    });
    words
        .filter(|word| word.contains('/') && *word != "/")
        .filter_map(|word| paths::locate(cwd, word).ok())
        .filter(|path| !["/proc", "/dev"].iter().any(|own| path.starts_with(own)))
        .collect()
}

/// An error message often begins with the path of the program that printed it.
fn is_program(word: &str) -> bool {
    let dir = Path::new(word).parent().and_then(Path::file_name);
    dir.is_some_and(|dir| dir == "bin" || dir == "sbin")
}

#[cfg(test)]
mod tests;
