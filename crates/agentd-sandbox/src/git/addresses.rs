//! Addresses of other repositories that a tool puts into a configuration. To push to one on this machine, git runs the hooks
//! that are there: it must not lie where a tool can write.

use super::config::Entry;
use super::outside::plain;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Where tools can write.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub trees: Vec<PathBuf>,
    /// Directories of agentd.
    pub own: Vec<PathBuf>,
    /// Git directories whose hooks and configuration no tool can write.
    pub guarded: Vec<PathBuf>,
}

/// What the addresses of one configuration may be.
pub struct Addresses<'a> {
    /// The git directory that the configuration belongs to.
    pub git: &'a Path,
    /// A tool made the repository: its addresses may be in the trees.
    pub is_made: bool,
    pub places: &'a Places,
    /// Where the names of remotes are looked up.
    pub entries: &'a [Entry],
}

/// Ways to another machine. `ext`, and helpers that git would look for by the name of the scheme, are none.
const NETWORK: [&str; 8] = [
    "ftp", "ftps", "git", "git+ssh", "http", "https", "ssh", "ssh+git",
];
/// What is there depends on the process that looks.
const OF_PROCESS: [&str; 2] = ["/proc", "/dev"];

impl Addresses<'_> {
    /// Whether the value leads to no repository that a tool can write. True for what is no address.
    pub fn allow(&self, entry: &Entry) -> bool {
        let value = entry.value.as_deref().unwrap_or_default();
        match (entry.section.as_str(), entry.key.as_str()) {
            ("remote", "url" | "pushurl") => self.is_safe(value),
            ("branch", "remote" | "pushremote") => {
                // This repository, a remote by its name, or an address.
                value == "."
                    || self.is_remote(value)
                    || is_elsewhere(value) == Some(true)
                    || self.is_made
            }
            // Git takes submodules from this machine only if the user allows it.
            _ => true,
        }
    }

    fn is_remote(&self, name: &str) -> bool {
        let mut remotes = self.entries.iter().filter(|it| it.section == "remote");
        remotes.any(|it| it.subsection.as_deref() == Some(name) && it.key == "url")
    }

    fn is_safe(&self, value: &str) -> bool {
        match is_elsewhere(value) {
            Some(is_elsewhere) => is_elsewhere,
            None => self.is_safe_path(value.strip_prefix("file://").unwrap_or(value)),
        }
    }

    /// A path, as it is written and without links: a tool can change what a link in its tree leads to.
    fn is_safe_path(&self, value: &str) -> bool {
        let is_in_git = self.git.file_name() == Some(OsStr::new(".git"));
        let top = match (is_in_git, self.git.parent()) {
            (true, Some(top)) => top,
            _ => self.git,
        };
        let Some(path) = plain(top, value) else {
            return false;
        };
        let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        [path, real].iter().all(|path| {
            let trees = self.places.trees.iter().filter(|_| !self.is_made);
            let mut writable = self.places.own.iter().chain(trees);
            let is_writable = writable.any(|dir| path.starts_with(dir));
            let is_odd = OF_PROCESS.iter().any(|dir| path.starts_with(dir));
            let guarded = &self.places.guarded;
            let is_guarded = guarded.contains(path) || guarded.contains(&path.join(".git"));
            !is_odd && (!is_writable || is_guarded)
        })
    }
}

/// Whether git would ask another machine: by a scheme, or by `host:path`. `None` for a path.
fn is_elsewhere(value: &str) -> Option<bool> {
    if let Some((scheme, _)) = value.split_once("://") {
        return match scheme {
            "file" => None,
            scheme => Some(NETWORK.contains(&scheme)),
        };
    }
    let colon = value.find(':')?;
    let is_path = value.find('/').is_some_and(|slash| slash < colon);
    (!is_path).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::config::parse;

    #[test]
    fn an_address_leads_to_no_place_where_a_tool_can_write() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for name in [
            "tree/.git",
            "tree/evil",
            "own/tmp/evil",
            "user/r.git",
            "bare",
        ] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("user/r.git"), root.join("tree/link")).unwrap();
        std::os::unix::fs::symlink(root.join("tree/evil"), root.join("user/link")).unwrap();
        let places = Places {
            trees: vec![root.join("tree"), root.join("bare")],
            own: vec![root.join("own")],
            guarded: vec![root.join("tree/.git"), root.join("bare")],
        };
        let at = |path: &str| root.join(path).display().to_string();
        let git = root.join("tree/.git");
        let allows = |key: &str, value: &str| {
            let text = format!("[remote \"origin\"]\nurl = https://a/b\n{key} = \"{value}\"\n");
            let entries = parse(&text).unwrap();
            let addresses = Addresses {
                git: &git,
                is_made: false,
                places: &places,
                entries: &entries,
            };
            addresses.allow(entries.last().unwrap())
        };
        for (value, is_allowed) in [
            ("https://example.com/a", true),
            ("git@example.com:a/b", true),
            ("ssh://example.com/a", true),
            ("ext://x", false),
            ("../user/r.git", true),
            ("../bare", true),
            (".", true),
            ("evil", false),
            ("./evil", false),
            ("~/evil", false),
            ("link", false),
            ("/proc/self/cwd/evil", false),
            (&at("user/r.git"), true),
            (&at("user/link"), false),
            (&at("own/tmp/evil"), false),
            (&format!("file://{}", at("own/tmp/evil")), false),
            (&format!("file://{}", at("user/r.git")), true),
        ] {
            let key = "[remote \"new\"]\nurl";
            assert_eq!(allows(key, value), is_allowed, "{value}");
        }
        for (value, is_allowed) in [
            (".", true),
            ("origin", true),
            ("evil", false),
            (&at("user/r.git"), false),
            (&at("own/tmp/evil"), false),
            ("https://example.com/a", true),
        ] {
            let key = "[branch \"b\"]\nremote";
            assert_eq!(allows(key, value), is_allowed, "{value}");
        }
    }
}
