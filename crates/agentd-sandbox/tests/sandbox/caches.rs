//! Tool caches: layers of the agent's own over the user's.

use crate::testbed::{can, testbeds};
use std::fs;

#[test]
fn a_cache_shows_the_users_and_keeps_writes_apart() {
    for testbed in testbeds().into_iter().filter(|_| can("overlay")) {
        let ran = testbed.shell("cat ~/.cache/tool/users && echo mine > ~/.cache/tool/mine && echo x > ~/.cache/tool/users");
        ran.succeeds();
        let users = fs::read_to_string(testbed.root.join("home/.cache/tool/users")).unwrap();
        assert_eq!(users, "of the user");
        assert!(!testbed.root.join("home/.cache/tool/mine").exists());
        let again = testbed.shell("cat ~/.cache/tool/mine ~/.cache/tool/users");
        assert_eq!(again.succeeds().output(), "mine\nx\n");
    }
}

/// Overlayfs does not allow one upper layer in two mounts at the same time.
#[test]
fn a_cache_that_is_in_use_is_read_and_its_writes_are_dropped() {
    for testbed in testbeds().into_iter().filter(|_| can("overlay")) {
        testbed.shell("echo first > ~/.cache/tool/first").succeeds();
        let script =
            "touch ready; while ! test -e go; do sleep 0.02; done; cat ~/.cache/tool/second";
        let running = testbed.begin(testbed.job("/bin/sh", &["-c", script]));
        crate::life::until(|| testbed.tree().join("ready").exists());
        let ran = testbed.shell("cat ~/.cache/tool/users ~/.cache/tool/first; echo x > ~/.cache/tool/second && cat ~/.cache/tool/second; ls -A /");
        assert!(
            ran.succeeds().output().starts_with("of the userfirst\nx\n"),
            "{ran:?}"
        );
        assert!(!ran.output().contains(".layer"), "{ran:?}");
        fs::write(testbed.tree().join("go"), "").unwrap();
        running.finish().fails();
        let upper = testbed.root.join("state/upper/.cache/tool");
        assert!(upper.join("first").exists());
        assert!(!upper.join("second").exists());
    }
}

#[test]
fn a_cache_of_which_the_user_has_none_is_the_agents_own() {
    for mut testbed in testbeds() {
        let beside_one_that_the_user_has = testbed.policy.caches[0].names.clone();
        for names in [vec![".npm".into()], beside_one_that_the_user_has] {
            testbed.policy.caches[0].names = names;
            testbed
                .shell("echo mine > ~/.npm/mine && cat ~/.npm/mine")
                .succeeds();
            assert!(testbed.root.join("state/upper/.npm/mine").exists());
            assert!(!testbed.root.join("home/.npm").exists());
        }
    }
}

#[test]
fn in_a_home_that_is_given_a_cache_that_is_not_there_is_not_made() {
    for mut testbed in testbeds() {
        let home = testbed.root.join("home");
        testbed.policy.readable.push(home.clone());
        testbed.shell("test ! -e ~/.npm").succeeds();
        testbed.policy.readable.pop();
        testbed.policy.writable.push(home.clone());
        testbed.shell("test ! -e ~/.npm").succeeds();
        assert!(!home.join(".npm").exists());
    }
}

/// The overlay has all of the user's home below it.
#[test]
fn caches_show_nothing_of_what_lies_beside_them() {
    for testbed in testbeds() {
        let script = "ls -A ~ ~/.cache; ls ~/.cache/tool/../../private ~/.npm/../private; find / -xdev -name id";
        let ran = testbed.shell(script);
        assert!(!ran.output().contains("private\n"), "{ran:?}");
        assert!(!ran.output().contains("id\n"), "{ran:?}");
        let mounts = testbed.shell("grep -c ' overlay ' /proc/self/mountinfo");
        let expected = if can("overlay") { "2" } else { "0" };
        assert_eq!(mounts.output().trim(), expected);
    }
}

/// While the user has no cache, the agent's layer is bound by itself, and the agent may set any attribute on it.
#[test]
fn an_attribute_of_overlayfs_that_the_agent_has_set_leads_nowhere() {
    const REDIRECT: &str = "import os; os.mkdir('/proc/self/cwd/stolen')
for name in ['redirect', 'metacopy', 'opaque']: os.setxattr('stolen', 'user.overlay.' + name, b'/private')";
    for mut testbed in testbeds().into_iter().filter(|_| can("overlay")) {
        let all = std::mem::replace(&mut testbed.policy.caches[0].names, vec![".npm".into()]);
        testbed
            .shell(&format!("cd ~/.npm && python3 -c \"{REDIRECT}\""))
            .succeeds();
        testbed.policy.caches[0].names = all;
        testbed.shell("cat ~/.npm/stolen/file").fails();
        // The second directory shows that there is an overlay.
        let ran = testbed.shell("ls -A ~/.npm/stolen && ls ~/.cache/tool");
        assert_eq!(ran.succeeds().output(), "users\n");
    }
}

#[test]
fn a_cache_behind_a_symlink_has_layers_of_its_own() {
    for mut testbed in testbeds() {
        let elsewhere = testbed.root.join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("users"), "of the user").unwrap();
        std::os::unix::fs::symlink(&elsewhere, testbed.root.join("home/.m2")).unwrap();
        // Among others it is not resolved, and begins empty.
        fs::create_dir(testbed.root.join("state/upper/.m2")).unwrap();
        testbed.policy.caches[0].names.push(".m2".into());
        testbed.give_away();
        testbed.shell("ls ~/.m2/users").fails();
        testbed.shell("echo mine > ~/.m2/mine").succeeds();
        testbed.policy.caches[0].names.pop();
        let mut own = testbed.policy.caches[0].clone();
        own.lower = testbed.root.join("home/.m2");
        own.names = vec!["".into()];
        for (name, dir) in [("upper-m2", &mut own.upper), ("work-m2", &mut own.work)] {
            *dir = testbed.root.join("state").join(name);
            fs::create_dir(&*dir).unwrap();
        }
        testbed.policy.caches.push(own);
        testbed.give_away();
        if can("overlay") {
            testbed
                .shell("cat ~/.m2/users && echo mine > ~/.m2/mine")
                .succeeds();
            assert!(testbed.root.join("state/upper-m2/mine").exists());
        }
        assert!(!elsewhere.join("mine").exists());
    }
}
