//! Git works in a sandbox, and nothing that a tool does there makes the user's git run a program.

use crate::testbed::{Ran, SECRET, Testbed, testbeds};
use agentd_sandbox::{GitConfig, OutsideGitDir};
use std::fs;

/// A repository in the work tree with one commit and a hook.
fn repository(testbed: &Testbed) {
    let script = "git init -q && git add file && git commit -qm first && mkdir -p .git/info .git/hooks \
                  && echo '# none' > .git/info/attributes && echo '#!/bin/sh' > .git/hooks/sample";
    testbed.plain_shell(script).succeeds();
}

#[track_caller]
fn refused(testbed: &Testbed, script: &str) -> Ran {
    let ran = testbed.shell(script);
    ran.fails();
    ran
}

#[test]
fn commit_branch_and_stash_work() {
    for testbed in testbeds() {
        repository(&testbed);
        let script = "set -e; echo 2 > file; git commit -qam second; git branch topic; git checkout -q topic; \
                      echo 3 > file; git stash -q; git stash pop -q; git commit -qam third; git checkout -q -; \
                      git merge -q topic; git tag v1; git gc -q; git log --oneline | wc -l; git status --short";
        let ran = testbed.shell(script);
        assert_eq!(ran.succeeds().output(), "3\n");
        testbed
            .plain_shell("git fsck && git status && git log v1")
            .succeeds();
    }
}

#[test]
fn the_git_directory_cannot_be_replaced() {
    for testbed in testbeds() {
        repository(&testbed);
        refused(&testbed, "mv .git .git2");
        refused(&testbed, "rm -rf .git");
        assert!(testbed.tree().join(".git/config").exists());
    }
}

#[test]
fn nothing_in_a_sealed_git_directory_can_be_written() {
    for mut testbed in testbeds() {
        repository(&testbed);
        testbed.policy.git_config = GitConfig::Sealed;
        refused(&testbed, "echo x > .git/new");
        refused(&testbed, "echo x >> .git/config");
        refused(&testbed, "git config user.name x");
        refused(&testbed, "touch .git/objects/x");
        refused(&testbed, "mv .git .git2");
        let ran = testbed.shell("set -e; cat .git/HEAD; echo 2 > file; git status --short");
        assert!(ran.succeeds().output().contains(" M file"));
    }
}

#[test]
fn hooks_and_configuration_are_read_only() {
    for testbed in testbeds() {
        repository(&testbed);
        refused(&testbed, "echo x > .git/hooks/pre-commit");
        refused(&testbed, "mv .git/hooks .git/hooks2");
        refused(&testbed, "rm -rf .git/hooks");
        refused(&testbed, "mv .git/config .git/config2");
        refused(&testbed, "cp .git/config c && mv c .git/config");
        refused(&testbed, "rm -f .git/config");
        // In the view, these change a copy.
        let before = fs::read(testbed.tree().join(".git/config")).unwrap();
        for script in [
            "git config core.fsmonitor 'touch pwned'",
            "echo x >> .git/config",
            "sed -i s/core/x/ .git/config",
        ] {
            testbed.shell(script);
            let after = fs::read(testbed.tree().join(".git/config")).unwrap();
            assert_eq!(before, after, "{script}");
        }
        refused(&testbed, "echo x > .git/info/attributes");
        refused(
            &testbed,
            "mv .git/info .git/info2 && mkdir .git/info && echo '* filter=x' > .git/info/attributes",
        );
        refused(&testbed, "ln -f file .git/config");
    }
}

#[test]
fn nothing_is_created_for_what_is_not_there() {
    for testbed in testbeds() {
        repository(&testbed);
        let git = testbed.tree().join(".git");
        fs::remove_dir_all(git.join("hooks")).unwrap();
        testbed.shell("git status").succeeds();
        assert!(!git.join("hooks").exists());
        assert!(!git.join("config.worktree").exists());
        let plain = Testbed::in_tmp(testbed.user);
        plain.shell("true").succeeds();
        assert!(!plain.tree().join(".git").exists());
    }
}

#[test]
fn a_linked_work_tree_commits_and_its_real_directory_is_protected() {
    for testbed in testbeds() {
        let main = testbed.path("other");
        let tree = testbed.path("tree");
        let script = format!(
            "set -e; rm -rf {tree}/* ; cd {main}; git init -q; git add file; git commit -qm first; \
             git worktree add -q {tree}/linked"
        );
        testbed.plain_shell(&script).succeeds();
        let mut linked = testbed;
        linked.policy.writable = vec![linked.root.join("tree/linked")];
        let git_dir = OutsideGitDir::of(&linked.root.join("tree/linked"));
        linked.policy.git_dirs = git_dir.into_iter().collect();
        let mut job = linked.job(
            "/bin/sh",
            &[
                "-c",
                "set -e; echo 2 > file; git commit -qam second; git branch topic",
            ],
        );
        job["cwd"] = linked.root.join("tree/linked").to_str().into();
        linked.run(job).succeeds();
        for script in [
            format!("echo x > {main}/.git/hooks/pre-commit"),
            format!("rm {main}/.git/config"),
            format!("mv {main}/.git {main}/.git2"),
            format!("echo /etc > {main}/.git/worktrees/linked/commondir"),
            format!("echo 'gitdir: /tmp' > {tree}/linked/.git"),
        ] {
            let mut job = linked.job("/bin/sh", &["-c", &script]);
            job["cwd"] = linked.root.join("tree/linked").to_str().into();
            let ran = linked.run(job);
            assert_ne!(ran.code(), Some(0), "{script}");
        }
    }
}

/// A tool writes a `.git` file; its next call must not get what that names.
#[test]
fn a_forged_git_file_opens_nothing() {
    for testbed in testbeds() {
        let other = testbed.path("other");
        testbed
            .shell(&format!("echo 'gitdir: {other}' > .git"))
            .succeeds();
        let ran = testbed.shell(&format!("cat {other}/file; echo x > {other}/file"));
        ran.fails().has_no_secret();
        assert_eq!(
            fs::read_to_string(testbed.root.join("other/file")).unwrap(),
            SECRET
        );
    }
}

#[test]
fn submodules_are_protected_too() {
    for testbed in testbeds() {
        repository(&testbed);
        let other = testbed.path("other");
        let script = format!(
            "set -e; (cd {other}; git init -q; git add file; git commit -qm first); \
             git -c protocol.file.allow=always submodule --quiet add {other} sub; git commit -qm sub"
        );
        testbed.plain_shell(&script).succeeds();
        testbed.shell("git -C sub config core.fsmonitor 'touch pwned'");
        let config = fs::read_to_string(testbed.tree().join(".git/modules/sub/config")).unwrap();
        assert!(!config.contains("pwned"));
        refused(&testbed, "echo x > .git/modules/sub/hooks/post-checkout");
        refused(&testbed, "mv .git/modules/sub .git/modules/sub2");
        refused(&testbed, "mv .git/modules .git/modules2");
        testbed
            .shell("cd sub && echo 2 > file && git commit -qam second")
            .succeeds();
    }
}

/// `commondir` in a main git directory names another one whose configuration git reads.
#[test]
fn a_git_directory_cannot_be_turned_around() {
    let plant = "mkdir evil && cp -rL .git/objects .git/refs .git/config evil/ \
                 && git config -f evil/config core.fsmonitor 'touch pwned; false' && ";
    for testbed in testbeds() {
        repository(&testbed);
        let pwned = testbed.tree().join("pwned");
        for (at, make) in [
            "echo ../evil > .git/commondir",
            "echo ../evil > c && mv c .git/commondir",
        ]
        .into_iter()
        .enumerate()
        {
            let ran = testbed.shell(&format!(
                "rm -rf evil; {plant} {make}; while :; do sleep 0.02; done"
            ));
            assert_eq!(ran.signal(), Some(libc::SIGSYS.into()), "{at} {ran:?}");
            testbed.plain_shell("git status").succeeds();
            assert!(!pwned.exists());
        }
        // The control: without the sandbox it works.
        testbed
            .plain_shell("echo ../evil > .git/commondir; git status")
            .succeeds();
        assert!(pwned.exists());
        fs::remove_file(&pwned).unwrap();
        // What is there already is moved aside before the next start.
        testbed.shell("true").succeeds();
        testbed.plain_shell("git status").succeeds();
        assert!(!pwned.exists());
    }
}

#[test]
fn a_git_directory_that_was_turned_around_before_a_kill_is_repaired() {
    for testbed in testbeds() {
        repository(&testbed);
        let script = "touch ready; while ! test -e go; do sleep 0.02; done";
        let running = testbed.begin(testbed.job("/bin/sh", &["-c", script]));
        crate::life::until(|| testbed.tree().join("ready").exists());
        let init = rustix::process::Pid::from_raw(running.pid()).unwrap();
        // Stopped, because an init that runs may notice the file and end before the kill. The file is written before the
        // kill, because what is written after it may come after the repair.
        rustix::process::kill_process(init, rustix::process::Signal::STOP).unwrap();
        fs::write(testbed.tree().join(".git/commondir"), "../evil").unwrap();
        rustix::process::kill_process(init, rustix::process::Signal::KILL).unwrap();
        running.finish();
        assert!(!testbed.tree().join(".git/commondir").exists());
    }
}
