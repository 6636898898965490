//! What a program can read and write.

use crate::testbed::{ATTACK, SECRET, Testbed, can, testbeds, users};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

#[test]
fn the_work_tree_is_writable() {
    for testbed in testbeds() {
        let script = "echo new > new && mkdir d && mv new d/ && cat file d/new";
        testbed.shell(script).succeeds();
        let new = fs::read_to_string(testbed.tree().join("d/new")).unwrap();
        assert_eq!(new, "new\n");
    }
}

#[test]
fn a_write_outside_fails() {
    for testbed in testbeds() {
        for name in [
            "other/file",
            "home/private/file",
            "home/new",
            "home/.bashrc",
        ] {
            let before = fs::read(testbed.root.join(name)).ok();
            let path = testbed.path(name);
            let ran = testbed.shell(&format!("echo x > {path}"));
            // Of the home and of /tmp the agent has its own.
            if name.starts_with("other") && !testbed.root.starts_with("/tmp") {
                ran.fails();
            }
            assert_eq!(fs::read(testbed.root.join(name)).ok(), before, "{name}");
        }
        for path in [
            "/etc/new", "/usr/new", "/new", "/dev/new", "/run/new", "/var/new",
        ] {
            testbed.shell(&format!("echo x > {path}")).fails();
        }
    }
}

#[test]
fn the_state_directory_is_not_read_by_any_path() {
    for testbed in testbeds() {
        let secret = testbed.path("state/secret");
        symlink(&secret, testbed.tree().join("link")).unwrap();
        symlink(testbed.path("state"), testbed.tree().join("dir")).unwrap();
        let control = testbed.plain_shell(&format!("cat {secret} link"));
        assert!(control.output().contains(SECRET), "{control:?}");
        for path in [
            secret.as_str(),
            "link",
            "dir/secret",
            "../state/secret",
            &format!("/proc/self/root{secret}"),
            &format!("/proc/1/root{secret}"),
            &format!("/proc/1/cwd/{secret}"),
            &format!("/proc/thread-self/root{secret}"),
        ] {
            testbed
                .shell(&format!("cat {path}"))
                .fails()
                .has_no_secret();
        }
        let script = format!(
            "ls {0}; find / -name secret; grep -rs canary {0} .",
            testbed.path("state")
        );
        let ran = testbed.shell(&script);
        ran.has_no_secret();
        assert!(!ran.output().contains("state/secret"), "{ran:?}");
    }
}

#[test]
fn a_closed_directory_in_a_readable_or_writable_one_is_closed() {
    for mut testbed in testbeds() {
        if testbed.root.starts_with("/tmp") {
            continue;
        }
        testbed.policy.readable.push(testbed.root.clone());
        let state = testbed.path("state");
        testbed
            .shell(&format!("cat {state}/secret"))
            .fails()
            .has_no_secret();
        testbed.policy.writable = vec![testbed.root.clone()];
        for script in [
            format!("cat {state}/secret"),
            format!("mv {state} {state}.2"),
            format!("echo x > {state}/new"),
            format!("mv {0} {0}.2 && cat {0}.2/state/secret", testbed.path("")),
            format!("chmod 700 {state} && cat {state}/secret"),
            format!("ln {state}/secret stolen"),
        ] {
            testbed.shell(&script).fails().has_no_secret();
        }
        // What is the agent's own in there is shown all the same.
        let kept = testbed.shell(&format!("cat {state}/kept/output"));
        assert_eq!(kept.succeeds().output(), "kept output");
    }
}

#[test]
fn a_hard_link_to_what_is_closed_cannot_be_made() {
    for testbed in testbeds() {
        let secret = testbed.path("state/secret");
        testbed.shell(&format!("ln {secret} stolen")).fails();
        testbed
            .shell(&format!("ln {} stolen", testbed.path("other/file")))
            .fails();
        assert!(!testbed.tree().join("stolen").exists());
    }
}

#[test]
fn the_home_is_closed_except_for_tool_chains_and_git() {
    for testbed in testbeds() {
        let home = testbed.path("home");
        for name in [".ssh/id", "private/file", ".config/git/credentials"] {
            let ran = testbed.shell(&format!("cat {home}/{name}"));
            ran.fails().has_no_secret();
        }
        let ran = testbed.shell("cat ~/.gitconfig ~/.cargo/bin/tool");
        assert!(ran.succeeds().output().contains("a tool"));
        testbed.shell("echo x >> ~/.gitconfig").fails();
        testbed.shell("echo x >> ~/.cargo/bin/tool").fails();
    }
}

/// Tools write to their user's home: settings, histories, packages.
#[test]
fn the_home_is_the_agents_own_and_keeps_what_is_written() {
    for testbed in testbeds() {
        fs::write(testbed.root.join("home/.npmrc"), SECRET).unwrap();
        testbed.give_away();
        let script = "mkdir -p ~/.local/share/tool ~/.cargo ~/.ssh && echo mine > ~/.local/share/tool/mine \
                      && echo mine > ~/.cargo/mine && echo mine > ~/.npmrc && echo mine > ~/.ssh/mine";
        testbed.shell(script).succeeds();
        let script =
            "cat ~/.local/share/tool/mine ~/.cargo/mine ~/.npmrc ~/.ssh/mine ~/.cargo/bin/tool";
        let ran = testbed.shell(script);
        assert_eq!(
            ran.succeeds().output(),
            "mine\nmine\nmine\nmine\na tool",
            "{ran:?}"
        );
        for name in ["home/.local", "home/.cargo/mine", "home/.ssh/mine"] {
            assert!(!testbed.root.join(name).exists(), "{name}");
        }
        let users = fs::read_to_string(testbed.root.join("home/.npmrc")).unwrap();
        assert_eq!(users, SECRET);
    }
}

/// With a symlink on the way to a mount the next sandbox could not be built.
#[test]
fn a_tool_cannot_replace_the_way_to_its_tool_chains_and_its_work_tree() {
    for mut testbed in testbeds() {
        let tree = testbed.root.join("home/src/tree");
        fs::create_dir_all(&tree).unwrap();
        testbed.policy.writable.push(tree.clone());
        testbed.give_away();
        for way in [".cargo", ".config", ".cache", "src"] {
            let script = format!("mv ~/{way} ~/moved || rm -rf ~/{way}");
            testbed.shell(&script).fails();
            testbed.shell(&format!("ln -sfn /usr ~/{way}; true"));
        }
        if testbed.root.starts_with("/tmp") {
            testbed
                .shell(&format!("mv {0} {0}.2", testbed.root.display()))
                .fails();
        }
        let script = "cat ~/.cargo/bin/tool ~/.gitconfig && touch ~/src/tree/new";
        testbed.shell(script).succeeds();
        assert!(tree.join("new").exists());
    }
}

#[test]
fn without_a_directory_of_its_own_the_home_is_empty_and_read_only() {
    for mut testbed in testbeds() {
        testbed.policy.own_home = std::path::PathBuf::new();
        testbed.shell("cat ~/.cargo/bin/tool").succeeds();
        let ran = testbed.shell("echo x > ~/new");
        // A home below /tmp is in the agent's own directory.
        if !testbed.root.starts_with("/tmp") {
            ran.fails();
        }
        assert!(!testbed.root.join("home/new").exists());
    }
}

#[test]
fn credentials_stay_closed_in_a_readable_home_unless_they_are_named() {
    for mut testbed in testbeds() {
        let home = testbed.root.join("home");
        testbed.policy.readable.push(home.clone());
        let ran = testbed.shell("cat ~/private/file");
        assert_eq!(ran.succeeds().output(), SECRET);
        testbed.shell("cat ~/.ssh/id").fails().has_no_secret();
        testbed.policy.readable.push(home.join(".ssh"));
        assert_eq!(testbed.shell("cat ~/.ssh/id").succeeds().output(), SECRET);
    }
}

#[test]
fn shell_profiles_of_a_writable_home_are_read_only() {
    for mut testbed in testbeds() {
        fs::write(testbed.root.join("home/.bashrc"), "# mine\n").unwrap();
        testbed.policy.writable = vec![testbed.root.join("home"), testbed.tree()];
        testbed.give_away();
        testbed.shell("echo x > ~/new").succeeds();
        testbed.shell("echo x >> ~/.bashrc").fails();
        testbed.shell("mv ~/.bashrc ~/.bashrc2").fails();
        testbed.shell("rm -f ~/.bashrc").fails();
        // The tool chain is not writable, and the way to it cannot be replaced.
        testbed.shell("echo x > ~/.cargo/bin/tool").fails();
        testbed.shell("mv ~/.cargo ~/.cargo2").fails();
    }
}

#[test]
fn no_descriptor_is_inherited() {
    for testbed in testbeds() {
        let ran =
            testbed.shell("for fd in /proc/self/fd/*; do echo ${fd##*/}; done | sort -n | tail -1");
        let last: u32 = ran.succeeds().output().trim().parse().unwrap();
        assert!(last <= 3, "{ran:?}");
        testbed.shell("ls -l /proc/1/fd").fails();
    }
}

#[test]
fn sockets_in_run_are_invisible() {
    for testbed in testbeds() {
        let ran = testbed
            .shell("find /run /var -type s; find /run -mindepth 1 -not -path '*resolv*' -type f");
        assert_eq!(ran.output().trim(), "");
        assert_ne!(
            testbed.attack(&["unix", "/run/dbus/system_bus_socket"]),
            "ok"
        );
    }
}

#[test]
fn a_unix_socket_outside_is_unreachable_and_the_agents_own_is_reached() {
    for testbed in testbeds() {
        for (name, expected) in [
            ("state/other", "errno"),
            ("other/socket", "errno"),
            ("state/socket/own", "ok"),
        ] {
            let path = testbed.path(name);
            let _listener = UnixListener::bind(&path).unwrap();
            testbed.give_away();
            assert_eq!(testbed.plain_attack(&["unix", &path]), "ok");
            let said = testbed.attack(&["unix", &path]);
            assert!(said.starts_with(expected), "{name}: {said}");
        }
        assert_eq!(testbed.attack(&["listen", "own"]), "ok");
    }
}

/// The directory is bound, not the socket: a daemon that restarts makes a new one.
#[test]
fn a_socket_that_is_made_later_is_reached() {
    for testbed in testbeds() {
        let path = testbed.path("state/socket/own");
        let script = format!(
            "echo ready > ready; while ! test -S {path}; do sleep 0.02; done; {ATTACK} unix {path}"
        );
        let running = testbed.begin(testbed.job("/bin/sh", &["-c", &script]));
        crate::life::until(|| testbed.tree().join("ready").exists());
        // The script connects as soon as it sees the socket, which must belong to its user by then.
        let new = testbed.path("state/socket/new");
        let _listener = UnixListener::bind(&new).unwrap();
        testbed.give_away();
        fs::rename(&new, &path).unwrap();
        assert_eq!(running.finish().output().trim(), "ok");
    }
}

#[test]
fn tmp_is_the_agents_own() {
    for testbed in testbeds() {
        testbed
            .shell("echo x > /tmp/mine && echo y > /var/tmp/mine2 || true")
            .succeeds();
        assert!(testbed.root.join("tmp/mine").exists());
        assert!(!std::path::Path::new("/tmp/mine").exists());
        testbed.shell("cat /tmp/mine").succeeds();
        let host = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        testbed
            .shell(&format!("ls {}", host.path().display()))
            .fails();
    }
}

#[test]
fn without_a_directory_of_its_own_tmp_is_new_each_time() {
    for mut testbed in testbeds() {
        testbed.policy.tmp = std::path::PathBuf::new();
        testbed
            .shell("echo x > /tmp/mine && cat /tmp/mine")
            .succeeds();
        testbed.shell("cat /tmp/mine").fails();
    }
}

#[test]
fn kept_output_is_readable_and_not_writable() {
    for testbed in testbeds() {
        let kept = testbed.path("state/kept/output");
        assert_eq!(
            testbed.shell(&format!("cat {kept}")).succeeds().output(),
            "kept output"
        );
        testbed.shell(&format!("echo x > {kept}")).fails();
        testbed.shell(&format!("rm -f {kept}")).fails();
    }
}

#[test]
fn read_only_writes_nothing_but_tmp() {
    for mut testbed in testbeds() {
        testbed.policy.readable.push(testbed.tree());
        testbed.policy.writable.clear();
        let ran = testbed.shell("cat file && echo x > /tmp/x && echo x > /dev/null");
        ran.succeeds();
        testbed.shell("echo x > file").fails();
        testbed.shell("touch new").fails();
    }
}

#[test]
fn devices_work_and_there_are_no_others() {
    for testbed in testbeds() {
        let script = "head -c 4 /dev/zero > /dev/null && head -c 4 /dev/urandom | wc -c && echo x > /dev/shm/x \
                      && test -c /dev/tty && test -e /dev/ptmx && ls /dev | tr '\\n' ' '";
        let ran = testbed.shell(script);
        let expected = "4\nfd full null ptmx pts random shm stderr stdin stdout tty urandom zero ";
        assert_eq!(ran.succeeds().output(), expected);
    }
}

#[test]
fn a_home_that_is_a_symlink_is_found_by_its_name() {
    for user in users() {
        if !can("namespaces") {
            return;
        }
        let mut testbed = Testbed::elsewhere(user);
        let link = testbed.root.join("linked-home");
        symlink(testbed.root.join("home"), &link).unwrap();
        testbed
            .env
            .insert("HOME".into(), link.display().to_string());
        testbed.policy.home = link;
        let ran = testbed.run(json!({
            "user": testbed.user, "policy": testbed.policy, "program": "/bin/sh",
            "args": ["-c", "cat ~/.gitconfig && cat ~/.ssh/id"], "env": testbed.env, "cwd": testbed.tree(),
        }));
        ran.fails().has_no_secret();
        assert!(ran.output().contains("email=a@b"), "{ran:?}");
    }
}
