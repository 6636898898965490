use super::*;
use agentd_core::needs::{Places, parse};
use agentd_sandbox::{Policy, Reach, reach};
use std::os::unix::fs::symlink;
use tempfile::TempDir;

struct Host {
    _dir: TempDir,
    root: PathBuf,
    confined: Confined,
}

fn host() -> Host {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    for name in [
        "user/a",
        "user/b",
        "user/.ssh",
        "user/work",
        "own",
        "tmp",
        "state/agent",
    ] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::write(root.join("user/.bashrc"), "").unwrap();
    fs::write(root.join("user/.ssh/id"), "").unwrap();
    let policy = Policy {
        writable: vec![root.join("user/work")],
        home: root.join("user"),
        own_home: root.join("own"),
        tmp: root.join("tmp"),
        closed: vec![root.join("state")],
        ..Policy::default()
    };
    let confined = Confined {
        policy,
        is_read_only: false,
        hosts: Vec::new(),
    };
    Host {
        _dir: dir,
        root,
        confined,
    }
}

impl Host {
    fn needs(&self, entries: &[&str]) -> Vec<Need> {
        let home = self.root.join("user");
        let places = Places {
            cwd: &home.join("work"),
            home: Some(&home),
        };
        parse(entries, places).unwrap()
    }

    fn granted(&self, entries: &[&str]) -> Result<Confined, String> {
        let services = Services::new();
        let granted = granted(
            &self.confined,
            &self.needs(entries),
            &services,
            Paths::Exist,
        );
        granted.map_err(|failure| failure.text().to_owned())
    }
}

/// Over all sets of needs: what a call reaches with them and not without them lies in a path that one of them names.
#[test]
fn no_call_reaches_more_than_its_needs_name() {
    let host = host();
    let entries = [
        "write:~/a",
        "read:~/b",
        "write:~/.ssh",
        "write:~/.bashrc",
        "git-config",
    ];
    let user = host.root.join("user");
    let paths: Vec<PathBuf> = [
        "a/x",
        "b/x",
        ".ssh/id",
        ".bashrc",
        ".profile",
        "c",
        "work/x",
        ".gitconfig",
    ]
    .iter()
    .map(|name| user.join(name))
    .chain(["/etc/passwd", "/run/x"].map(PathBuf::from))
    .chain([host.root.join("state/journal.db")])
    .collect();
    let before = reach(&host.confined.policy, &paths).unwrap();
    for bits in 1..1_usize << entries.len() {
        let chosen = entries.iter().enumerate();
        let chosen = chosen.filter(|(at, _)| bits & (1 << at) != 0);
        let chosen: Vec<&str> = chosen.map(|(_, entry)| *entry).collect();
        let needs = host.needs(&chosen);
        let granted = host.granted(&chosen).unwrap();
        let after = reach(&granted.policy, &paths).unwrap();
        for ((path, before), after) in paths.iter().zip(&before).zip(after) {
            let named = |is: fn(&Need) -> bool| {
                let mut needs = needs.iter().filter(|need| is(need));
                needs.any(|need| need.path().is_some_and(|named| path.starts_with(named)))
            };
            let expected = if named(|need| matches!(need, Need::Write(_))) {
                Reach::Write
            } else if named(|need| matches!(need, Need::Read(_))) {
                Reach::Read
            } else {
                *before
            };
            assert_eq!(after, expected, "{chosen:?} {}", path.display());
        }
    }
}

#[test]
fn what_cannot_be_had_is_refused_with_the_reason() {
    let host = host();
    let user = host.root.join("user");
    symlink(user.join(".ssh"), user.join("work/link")).unwrap();
    symlink("nowhere", user.join("work/dangling")).unwrap();
    let state = format!("write:{}", host.root.join("state/agent").display());
    for (entry, why) in [
        ("write:~/new", "does not exist"),
        ("read:~/new", "does not exist"),
        ("write:link", "through a link"),
        ("write:link/id", "through a link"),
        ("write:dangling", "does not exist"),
        ("write:.git/config", "git-config"),
        ("service:docker", "no service docker"),
        (state.as_str(), "agentd's own state"),
    ] {
        let error = host.granted(&[entry]).unwrap_err();
        assert!(error.contains(why), "{entry}: {error}");
    }
}

#[test]
fn a_host_is_added_to_the_list_of_the_network() {
    let mut host = host();
    let granted = host.granted(&["host:example.com"]).unwrap();
    assert_eq!(granted.policy.network, Network::On);
    assert!(granted.hosts.is_empty());
    host.confined.policy.network = Network::Off;
    let granted = host.granted(&["host:example.com"]).unwrap();
    assert_eq!(granted.policy.network, Network::GATE);
    assert_eq!(granted.hosts, ["example.com"]);
    host.confined.policy.network = Network::GATE;
    host.confined.hosts = vec!["a.org".to_owned()];
    let granted = host.granted(&["host:example.com:443"]).unwrap();
    assert_eq!(granted.hosts, ["a.org", "example.com:443"]);
    let granted = host.granted(&["everything"]).unwrap();
    assert_eq!(granted.policy.network, Network::On);
    assert_eq!(granted.policy.extent, Extent::Everything);
}

#[test]
fn a_file_tool_changes_only_files_that_are_named() {
    let host = host();
    let user = host.root.join("user");
    let covers = |entry: &str, path: &Path| covers(&host.confined, &host.needs(&[entry]), path);
    assert!(covers("write:~/a", &user.join("a/new")));
    assert!(covers("write:~/a", &user.join("work/x")));
    assert!(!covers("write:~/a", &user.join("b/x")));
    assert!(!covers("read:~/b", &user.join("b/x")));
    // Credentials and profiles are named themselves.
    assert!(!covers("write:~", &user.join(".ssh/config")));
    assert!(!covers("write:~", &user.join(".bashrc")));
    assert!(covers("write:~", &user.join("note")));
    assert!(covers("write:~/.ssh", &user.join(".ssh/config")));
    assert!(covers("everything", &user.join(".bashrc")));
    assert!(!covers("everything", &host.root.join("state/journal.db")));
    assert!(!covers("everything", Path::new("/proc/1/environ")));
}
