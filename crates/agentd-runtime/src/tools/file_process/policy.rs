//! What file tools see and write: the trees and `/tmp` of commands.

use agentd_sandbox::{GitConfig, Network, Policy};
use std::fs;
use std::path::{Path, PathBuf};

/// The policy of commands without the agent's own home, services, sockets and layers of caches. A layer is locked by the view
/// that has it, and this view lasts; so the user's own caches are shown instead, which tools cannot change.
pub fn of_files(of_commands: &Policy, network: Network) -> Policy {
    let mut policy = Policy {
        own_home: PathBuf::new(),
        caches: Vec::new(),
        socket_dir: None,
        passed: Vec::new(),
        network,
        // No file tool changes what is in a git directory, and the user works there while this view lasts.
        git_config: GitConfig::Sealed,
        is_own_program: true,
        foreground: true,
        ..of_commands.clone()
    };
    let lower = of_commands.caches.iter().flat_map(|caches| {
        let names = caches.names.iter();
        names.map(|name| caches.lower.join(name))
    });
    let shown: Vec<PathBuf> = lower.filter(|dir| is_plain(dir, of_commands)).collect();
    policy.readable.extend(shown);
    policy
}

/// Whether a directory can be shown as it is. One that is reached through a symlink would be refused if the tool can change
/// the symlink.
fn is_plain(dir: &Path, policy: &Policy) -> bool {
    let is_closed = policy.closed.iter().any(|closed| dir.starts_with(closed));
    // In a tree it is shown with the tree.
    let is_in_tree = policy.writable.iter().any(|tree| dir.starts_with(tree));
    let is_real = fs::canonicalize(dir).is_ok_and(|real| real == dir && real.is_dir());
    is_real && !is_closed && !is_in_tree
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_sandbox::Caches;

    #[test]
    fn file_tools_have_the_trees_of_commands_and_no_layer_of_a_cache() {
        let dir = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(dir.path()).unwrap();
        for name in [".cache", ".npm", "real"] {
            fs::create_dir(home.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("real", home.join("link")).unwrap();
        let names = [".cache", ".npm", "link", "missing"];
        let of_commands = Policy {
            writable: vec![home.join("work")],
            readable: vec![home.join("docs")],
            home: home.clone(),
            own_home: home.join("own"),
            tmp: home.join("tmp"),
            closed: vec![home.join(".npm")],
            caches: vec![Caches {
                lower: home.clone(),
                names: names.map(PathBuf::from).into(),
                ..Caches::default()
            }],
            socket_dir: Some(home.join("socket")),
            passed: vec![home.join("service")],
            ..Policy::default()
        };
        let policy = of_files(&of_commands, Network::Off);
        let expected = Policy {
            readable: vec![home.join("docs"), home.join(".cache")],
            own_home: PathBuf::new(),
            caches: Vec::new(),
            socket_dir: None,
            passed: Vec::new(),
            network: Network::Off,
            git_config: GitConfig::Sealed,
            is_own_program: true,
            foreground: true,
            ..of_commands
        };
        assert_eq!(policy, expected);
    }
}
