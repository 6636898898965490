//! What an approved call gets: its ordinary sandbox and exactly what the user approved in addition.

use super::failure::Failure;
use agentd_core::needs::Need;
use agentd_core::spec::Pass;
use agentd_failpoint as failpoint;
use agentd_process::task::Confined;
use agentd_sandbox::{
    CREDENTIALS, Extent, GitConfig, Network, PROFILES, is_in_git_dir, is_protected,
};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A service of the user, for calls that the user approves to use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Its sockets and files.
    pub paths: Vec<PathBuf>,
    /// The variables by which programs find it.
    pub env: BTreeMap<String, String>,
    /// Why it is not available.
    pub missing: Option<String>,
}

/// All services that there are, by name.
pub type Services = BTreeMap<Pass, Service>;

/// Whether a path that is to be written must exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paths {
    /// For a command: only what exists can be opened.
    Exist,
    /// For a file tool, which creates the file itself.
    MayBeNew,
}

/// The sandbox of a call with these needs. An error says which need cannot be met, and nothing was run.
pub(super) fn granted(
    ordinary: &Confined,
    needs: &[Need],
    services: &Services,
    paths: Paths,
) -> Result<Confined, Failure> {
    let mut granted = ordinary.clone();
    let policy = &mut granted.policy;
    for need in needs {
        check(ordinary, need, paths)?;
        match need {
            Need::Write(path) => {
                let opened = opened(path, paths);
                if !failpoint::injected_bug("needs_unchecked") {
                    policy.without_links.extend(opened.iter().cloned());
                }
                policy.writable.extend(opened);
            }
            Need::Read(path) => {
                if !failpoint::injected_bug("needs_unchecked") {
                    policy.without_links.push(path.clone());
                }
                policy.readable.push(path.clone());
            }
            Need::Service(pass) => policy.passed.extend(found(services, *pass)?.paths.clone()),
            Need::Host(host) => {
                if policy.network == Network::Off {
                    policy.network = Network::GATE;
                }
                if policy.network != Network::On {
                    granted.hosts.push(host.to_string());
                }
            }
            Need::GitConfig => policy.git_config = GitConfig::Open,
            Need::Everything => policy.extent = Extent::Everything,
        }
    }
    if policy.extent == Extent::Everything {
        policy.network = Network::On;
        granted.hosts.clear();
    }
    // A sandbox without namespaces can only give more to read.
    let only_reads = |need: &Need| matches!(need, Need::Read(_));
    granted.is_read_only &= needs.iter().all(only_reads);
    Ok(granted)
}

/// The variables of the services that a call may use.
pub(super) fn variables<'a>(
    needs: &'a [Need],
    services: &'a Services,
) -> impl Iterator<Item = (String, String)> + 'a {
    let passed = needs.iter().filter_map(|need| match need {
        Need::Service(pass) => services.get(pass),
        _ => None,
    });
    passed.flat_map(|service| service.env.clone())
}

fn found(services: &Services, pass: Pass) -> Result<&Service, Failure> {
    let name = pass.name();
    let Some(service) = services.get(&pass) else {
        return Err(refused(&format!("there is no service {name}")));
    };
    match &service.missing {
        None => Ok(service),
        Some(why) => Err(refused(&format!("service:{name} is not available: {why}"))),
    }
}

/// What a sandbox opens so that the path can be written. A file tool replaces a file by another one, which needs the
/// directory; it writes no other file there.
fn opened(path: &Path, paths: Paths) -> Vec<PathBuf> {
    let mut opened = vec![path.to_owned()];
    if paths == Paths::MayBeNew && !path.is_dir() {
        let mut above = path.ancestors().skip(1);
        opened.extend(above.find(|dir| dir.is_dir()).map(Path::to_owned));
        opened.retain(|path| path.exists());
    }
    opened
}

/// Whether the need can be met: its path exists, no link is on the way, and agentd itself does not keep it closed.
fn check(ordinary: &Confined, need: &Need, paths: Paths) -> Result<(), Failure> {
    let (path, is_written) = match need {
        Need::Write(path) => (path, true),
        Need::Read(path) => (path, false),
        Need::GitConfig if ordinary.is_read_only => {
            let what =
                "git-config needs a working directory that can be written: add it with write:";
            return Err(refused(what));
        }
        _ => return Ok(()),
    };
    if failpoint::injected_bug("needs_unchecked") {
        return Ok(());
    }
    if is_state(ordinary, path) {
        return Err(refused(&format!(
            "{need} is agentd's own state, which no call can have"
        )));
    }
    if is_written && (is_protected(path) || is_in_git_dir(path)) {
        return Err(refused(&format!(
            "{need} is in a git directory: name git-config, which opens .git/config only, or everything"
        )));
    }
    let may_be_new = is_written && paths == Paths::MayBeNew;
    let mut at = path.as_path();
    loop {
        match fs::canonicalize(at) {
            Ok(real) if real == at => return Ok(()),
            Ok(real) => {
                return Err(refused(&format!(
                    "{need} is reached through a link; name the path that it leads to, {}",
                    real.join(path.strip_prefix(at).unwrap_or(Path::new("")))
                        .display()
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let is_link = fs::symlink_metadata(at).is_ok();
                match at.parent().filter(|_| may_be_new && !is_link) {
                    Some(parent) => at = parent,
                    None => return Err(refused(&missing(need, path))),
                }
            }
            Err(error) => return Err(refused(&format!("{need} cannot be opened: {error}"))),
        }
    }
}

fn missing(need: &Need, path: &Path) -> String {
    let mut above = path.ancestors().skip(1);
    match above.find(|dir| dir.is_dir()) {
        Some(dir) => format!(
            "{need} does not exist, and only what exists can be opened: name the directory in which it is to be made, \
             {}, or one that is made first",
            dir.display()
        ),
        None => format!("{need} does not exist"),
    }
}

/// Whether it is in a directory that agentd keeps closed to every call.
fn is_state(ordinary: &Confined, path: &Path) -> bool {
    let closed = ordinary.policy.closed.iter();
    let mut closed =
        closed.flat_map(|closed| [Some(closed.clone()), fs::canonicalize(closed).ok()]);
    closed.any(|closed| closed.is_some_and(|closed| path.starts_with(closed)))
}

/// Whether a file tool may change a file with these needs, besides those that it may change without any. The path
/// contains no link. Credentials and shell profiles in a directory must be named themselves, as for commands.
pub(super) fn covers(ordinary: &Confined, needs: &[Need], path: &Path) -> bool {
    let policy = &ordinary.policy;
    if is_state(ordinary, path)
        || ["/proc", "/dev", "/sys"]
            .iter()
            .any(|own| path.starts_with(own))
    {
        return false;
    }
    let home = fs::canonicalize(&policy.home).unwrap_or_else(|_| policy.home.clone());
    let sealed = CREDENTIALS.iter().chain(PROFILES);
    let sealed: Vec<PathBuf> = sealed
        .map(|name| home.join(name))
        .map(|path| fs::canonicalize(&path).unwrap_or(path))
        .collect();
    let opens = |tree: &Path| {
        let mut sealed = sealed.iter();
        path.starts_with(tree)
            && !sealed.any(|sealed| path.starts_with(sealed) && !tree.starts_with(sealed))
    };
    let mut trees = policy.writable.iter();
    let in_tree = trees.any(|tree| fs::canonicalize(tree).is_ok_and(|tree| opens(&tree)));
    in_tree
        || needs.iter().any(|need| match need {
            Need::Write(tree) => opens(tree),
            Need::Everything => true,
            _ => false,
        })
}

fn refused(why: &str) -> Failure {
    Failure::new(format!("Nothing was run: {why}."))
}

#[cfg(test)]
mod tests;
