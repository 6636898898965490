//! New entries of the agent's own home. A program that writes there means the user's home, where the user does not find the file.

use crate::policy::Policy;
use crate::view::{User, View};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// A home with more entries is not compared.
const MAX_ENTRIES: usize = 10_000;
/// How many new entries are named.
const MAX_NEW: usize = 50;

/// The names of the entries of an agent's own home, except for hidden ones: settings and histories of programs.
#[derive(Debug, PartialEq, Eq)]
pub struct OwnHome(BTreeSet<OsString>);

impl OwnHome {
    /// What is there now. `None` if the policy has no own home, or if it cannot be listed.
    pub fn now(policy: &Policy) -> Option<Self> {
        if policy.own_home.as_os_str().is_empty() {
            return None;
        }
        let mut names = BTreeSet::new();
        for (read, entry) in fs::read_dir(&policy.own_home).ok()?.enumerate() {
            let name = entry.ok()?.file_name();
            if read >= MAX_ENTRIES {
                return None;
            }
            if !name.as_encoded_bytes().starts_with(b".") {
                names.insert(name);
            }
        }
        Some(Self(names))
    }

    /// The entries that a program has made since. Those that the view itself needs are not among them: mount points and
    /// the directories above them.
    pub fn new_entries(&self, policy: &Policy) -> Vec<String> {
        let now = Self::now(policy).map(|now| now.0).unwrap_or_default();
        let mut new = now.difference(&self.0).peekable();
        if new.peek().is_none() {
            return Vec::new();
        }
        let Ok(view) = View::plan(policy, User::current()) else {
            return Vec::new();
        };
        let home = fs::canonicalize(&policy.home).unwrap_or_else(|_| policy.home.clone());
        let new = new.filter(|name| !view.has_in(&home.join(name)));
        let new = new.map(|name| Path::new(name).display().to_string());
        new.take(MAX_NEW).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_program_made_is_new() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for name in ["home/x/tree", "home/go/bin", "home/data", "own/old"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let policy = Policy {
            home: root.join("home"),
            own_home: root.join("own"),
            writable: vec![root.join("home/x/tree")],
            ..Policy::default()
        };
        let before = OwnHome::now(&policy).unwrap();
        assert_eq!(before.new_entries(&policy), Vec::<String>::new());
        // The first two are made for mounts.
        for name in ["x", "go", "data", ".config"] {
            fs::create_dir(root.join("own").join(name)).unwrap();
        }
        fs::write(root.join("own/notes.md"), "").unwrap();
        assert_eq!(before.new_entries(&policy), ["data", "notes.md"]);
        let without = Policy::default();
        assert_eq!(OwnHome::now(&without), None);
    }
}
