//! Repositories of every layout: a tool gains nothing by what it writes in its tree, and what it plants never runs.

use crate::testbed::{Ran, Testbed, testbeds};
use agentd_sandbox::OutsideGitDir;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Decides anew, after everything that a tool did before: the worst case.
pub fn decided(testbed: &mut Testbed, tree: &str) {
    let tree = testbed.root.join(tree);
    testbed.policy.writable = vec![tree.clone()];
    testbed.policy.git_dirs = OutsideGitDir::of(&tree).into_iter().collect();
}

pub fn shell_in(testbed: &Testbed, dir: &str, script: &str) -> Ran {
    let mut job = testbed.job("/bin/sh", &["-c", script]);
    job["cwd"] = testbed.root.join(dir).to_str().into();
    testbed.run(job)
}

/// Undoes what a tool did to the modes.
fn make_accessible(testbed: &Testbed) {
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(testbed.tree(), mode).unwrap();
    testbed
        .plain_shell("test ! -e .git || chmod -R u+rwx .git")
        .succeeds();
}

/// Git as the user runs it, which must not run what was planted.
#[track_caller]
pub fn runs_nothing(testbed: &Testbed, dir: &str) {
    runs_nothing_after(testbed, dir, "");
}

#[track_caller]
pub fn runs_nothing_after(testbed: &Testbed, dir: &str, what: &str) {
    let canary = testbed.root.join("canary");
    let dir = testbed.path(dir);
    let script = format!(
        "cd {dir}; git status; git add -A; git commit -qm two --allow-empty; git log -1; git diff HEAD"
    );
    testbed.plain_shell(&script);
    assert!(!canary.exists(), "planted code ran in {dir} {what}");
}

pub const COMMIT: &str = "git add -A; git commit -qm first --allow-empty";

#[test]
fn files_in_a_tree_open_no_directory_above_it() {
    for (git, own, common) in [
        ("gitdir: g", "g", "../.."),
        ("gitdir: g", "g", ".."),
        ("gitdir: g/worktrees/w", "g/worktrees/w", "../../../.."),
        ("gitdir: worktrees/w", "worktrees/w", "../.."),
    ] {
        for mut testbed in testbeds() {
            let tree = testbed.path("tree");
            let script = format!(
                "mkdir -p {own}; echo '{git}' > .git; echo {tree}/.git > {own}/gitdir; \
                 echo {common} > {own}/commondir; touch {own}/HEAD; mkdir {own}/objects {own}/refs"
            );
            testbed.shell(&script).succeeds();
            decided(&mut testbed, "tree");
            assert_eq!(testbed.policy.git_dirs, []);
            let other = testbed.path("other");
            let climbs = format!("echo x > ../canary; echo x > {other}/canary; ls {other}");
            testbed.shell(&climbs).fails();
            assert!(!testbed.root.join("canary").exists(), "{git}");
            assert!(!testbed.root.join("other/canary").exists(), "{git}");
        }
    }
}

/// A link in the tree leads to a real git directory of the user, which names another tree.
#[test]
fn a_link_to_a_git_directory_opens_nothing() {
    for mut testbed in testbeds() {
        let other = testbed.path("other");
        let make = format!("cd {other}; git init -q; {COMMIT}; git worktree add -q ../linked");
        testbed.plain_shell(&make).succeeds();
        let forge = format!("ln -s {other} way; echo 'gitdir: way/.git/worktrees/linked' > .git");
        testbed.shell(&forge).succeeds();
        decided(&mut testbed, "tree");
        assert_eq!(testbed.policy.git_dirs, []);
        testbed.shell(&format!("ls {other}/.git")).fails();
    }
}

/// What makes git run the canary, each by a name that does not exist before.
const PLANTS: &[(&str, &str)] = &[
    (
        "commondir",
        "cp -rL .git evil; rm evil/commondir; git config -f evil/config core.fsmonitor \"$RUN\"; mv evil evil2; echo ../evil2 > .git/commondir",
    ),
    (
        "hooks",
        "mkdir .git/hooks; printf '#!/bin/sh\\n%s\\n' \"$RUN\" > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
    ),
    (
        "config.worktree",
        "git config -f .git/config.worktree core.fsmonitor \"$RUN\"",
    ),
    (
        "info/attributes",
        "mkdir -p .git/info; echo '* filter=f' > .git/info/attributes",
    ),
    (
        "info",
        "rm -rf .git/info; mkdir in; echo '* filter=f' > in/attributes; ln -s ../in .git/info",
    ),
    (
        "objects/info/alternates",
        "mkdir -p .git/objects/info; echo /tmp > .git/objects/info/alternates",
    ),
];

/// How a tool keeps agentd from moving the name away.
const TRICKS: &[&str] = &[
    ":",
    "chmod 0555 .git",
    "chmod 0 .git",
    "chmod 0 . ",
    "touch .git/commondir.refused; mkdir -p .git/hooks.refused/x; chmod 0555 .git",
];

#[test]
fn what_is_planted_under_a_new_name_never_runs() {
    for (name, plant) in PLANTS {
        let tricks = if *name == "commondir" {
            TRICKS
        } else {
            &TRICKS[1..2]
        };
        for trick in tricks {
            for testbed in testbeds() {
                let run = format!("touch {}; false", testbed.path("canary"));
                let make = format!(
                    "git init -q; rm -rf .git/hooks .git/info; git config extensions.worktreeConfig true; \
                     git config filter.f.clean 'touch {}; cat'; git commit -qm first --allow-empty",
                    testbed.path("canary"),
                );
                testbed.plain_shell(&make).succeeds();
                // The last line keeps it from ending before it is noticed.
                let script = format!(
                    "export RUN='{run}'; {{ {}; }} 2>/dev/null; {trick}; while :; do sleep 0.02; done",
                    plant,
                );
                let ran = testbed.shell(&script);
                assert_eq!(
                    ran.signal(),
                    Some(libc::SIGSYS.into()),
                    "{name} {trick} {ran:?}"
                );
                make_accessible(&testbed);
                assert!(
                    fs::symlink_metadata(testbed.tree().join(".git").join(name)).is_err()
                        || *name == "info",
                    "{name} {trick}"
                );
                runs_nothing(&testbed, "tree");
            }
        }
    }
}

/// A kill of the sandbox leaves it to the process outside.
#[test]
fn what_is_planted_before_a_kill_is_moved_away_outside() {
    for testbed in testbeds() {
        testbed
            .plain_shell(&format!("git init -q; {COMMIT}"))
            .succeeds();
        let script = "touch ready; while ! test -e go; do sleep 0.02; done";
        let running = testbed.begin(testbed.job("/bin/sh", &["-c", script]));
        crate::life::until(|| testbed.tree().join("ready").exists());
        let init = rustix::process::Pid::from_raw(running.pid()).unwrap();
        rustix::process::kill_process(init, rustix::process::Signal::STOP).unwrap();
        let plant = "echo ../evil > .git/commondir; chmod 0 .git; chmod 0 .";
        testbed.plain_shell(plant).succeeds();
        rustix::process::kill_process(init, rustix::process::Signal::KILL).unwrap();
        running.finish();
        make_accessible(&testbed);
        assert!(!testbed.tree().join(".git/commondir").exists());
    }
}

#[test]
fn submodules_and_their_work_trees_keep_their_pointers() {
    for testbed in testbeds() {
        let other = testbed.path("other");
        let make = format!(
            "set -e; (cd {other}; git init -q; {COMMIT}); git init -q; {COMMIT}; \
             git -c protocol.file.allow=always submodule --quiet add {other} sub; git commit -qm sub"
        );
        testbed.plain_shell(&make).succeeds();
        let canary = testbed.path("canary");
        for plant in [
            "cp -rL .git/modules/sub evil; git config -f evil/config core.fsmonitor \"$RUN\"; echo 'gitdir: ../evil' > sub/.git",
            "cp -rL .git/modules/sub evil; git config -f evil/config core.fsmonitor \"$RUN\"; rm -rf sub; mkdir sub; echo 'gitdir: ../evil' > sub/.git",
            "mv sub sub2; mkdir sub; cp -rL .git/modules/sub sub/.git; git config -f sub/.git/config core.fsmonitor \"$RUN\"",
            "cp -rL .git/modules/sub evil; git config -f evil/config core.fsmonitor \"$RUN\"; echo ../../../evil > .git/modules/sub/commondir",
            "echo x > .git/modules/sub/hooks/post-commit",
        ] {
            testbed.shell(&format!("rm -rf evil; export RUN='touch {canary}; false'; {plant}; chmod 0555 .git/modules/sub"));
            testbed.plain_shell("chmod -R u+rwx .git").succeeds();
            runs_nothing(&testbed, "tree");
        }
        testbed
            .shell("cd sub && echo 2 > file && git commit -qam second")
            .succeeds();
    }
}

#[test]
fn a_bare_repository_beside_or_around_its_work_trees_is_protected() {
    for (bare, tree) in [("proj.git", "work"), ("around", "around/work")] {
        for mut testbed in testbeds() {
            let (other, bare, at) = (
                testbed.path("other"),
                testbed.path(bare),
                testbed.path(tree),
            );
            let make = format!(
                "set -e; cd {other}; git init -q; {COMMIT}; git clone -q --bare {other} {bare}; \
                 cd {bare}; git worktree add -q {at}; echo secret > {bare}/beside"
            );
            testbed.plain_shell(&make).succeeds();
            decided(&mut testbed, tree);
            assert_eq!(testbed.policy.git_dirs.len(), 1);
            let work = "set -e; echo 2 > file; git add -A; git commit -qm second; git branch topic; git log --oneline | wc -l";
            let ran = shell_in(&testbed, tree, work);
            assert!(ran.succeeds().output().ends_with("2\n"), "{ran:?}");
            let name = Path::new(tree).file_name().unwrap().to_str().unwrap();
            for script in [
                format!("rm {bare}/config"),
                format!("echo x > {bare}/hooks/post-commit"),
                format!("echo x > {bare}/worktrees/{name}/commondir"),
                format!("echo x > {bare}/worktrees/{name}/gitdir"),
                "echo 'gitdir: /tmp' > .git".to_owned(),
                "mv .git git2".to_owned(),
            ] {
                assert_ne!(
                    shell_in(&testbed, tree, &script).code(),
                    Some(0),
                    "{script}"
                );
            }
            let config = format!(
                "git config -f {bare}/worktrees/{name}/config.worktree core.fsmonitor 'touch {}'",
                testbed.path("canary")
            );
            shell_in(&testbed, tree, &config);
            runs_nothing(&testbed, tree);
        }
    }
}

#[test]
fn beside_the_work_trees_of_a_bare_repository_nothing_is_visible() {
    for mut testbed in testbeds() {
        let make = "set -e; git init -q; git add -A; git commit -qm first; git clone -q --bare . ../around; cd ../around; \
                    git worktree add -q work; mkdir other; echo secret > other/file; echo secret > beside";
        testbed.plain_shell(make).succeeds();
        decided(&mut testbed, "around/work");
        let ran = shell_in(
            &testbed,
            "around/work",
            "cat ../other/file ../beside; echo x > ../new; git status",
        );
        assert!(!ran.output().contains("secret"), "{ran:?}");
        assert!(!testbed.root.join("around/new").exists());
    }
}

#[test]
fn a_link_in_place_of_the_git_directory_stays() {
    for testbed in testbeds() {
        testbed
            .plain_shell(&format!(
                "git init -q; {COMMIT}; mv .git ../other/g; ln -s ../other/g .git"
            ))
            .succeeds();
        testbed.shell("mv .git g").fails();
        testbed.shell("rm .git").fails();
        testbed.shell("ln -sfn evil .git").fails();
        testbed.plain_shell("git status").succeeds();
    }
}

/// Regression: a link whose name leaves no room for an ending stayed, and kept every tool from starting.
#[test]
fn a_link_with_the_longest_name_is_moved_away() {
    for testbed in testbeds() {
        let make = format!("git init -q; {COMMIT}");
        testbed.plain_shell(&make).succeeds();
        let name = "x".repeat(255);
        let ran = testbed.shell(&format!("ln -s /etc/hostname .git/refs/heads/{name}"));
        assert_eq!(
            ran.refused()["stays"].as_array().map(Vec::len),
            Some(0),
            "{ran:?}"
        );
        assert!(!testbed.tree().join(".git/refs/heads").join(name).exists());
        testbed.shell("true").succeeds();
    }
}

/// What could not be moved away is remembered: no tool starts until the user has removed it.
#[test]
fn no_tool_starts_while_a_recorded_name_is_there() {
    for mut testbed in testbeds() {
        let (record, name) = (testbed.root.join("planted"), testbed.root.join("stays"));
        testbed.policy.planted.clone_from(&record);
        fs::write(&name, "").unwrap();
        fs::write(&record, format!("{}\0", name.display())).unwrap();
        let refused = testbed.shell("true");
        let text = format!("{refused:?}");
        assert!(
            text.contains("it cannot be moved away; remove it"),
            "{text}"
        );
        fs::remove_file(&name).unwrap();
        testbed.shell("true").succeeds();
        testbed.shell("true").succeeds();
    }
}

#[test]
fn a_tree_that_is_a_git_directory_is_protected() {
    for testbed in testbeds() {
        testbed.plain_shell("git init -q --bare .").succeeds();
        testbed.shell("git config core.fsmonitor x").succeeds();
        let config = fs::read_to_string(testbed.tree().join("config")).unwrap();
        assert!(!config.contains("fsmonitor"));
        testbed.shell("echo x > hooks/post-update").fails();
        testbed.shell("git update-ref refs/heads/x $(git hash-object -w -t commit --stdin --literally < /dev/null || echo 0) || true").succeeds();
    }
}

pub fn config(testbed: &Testbed, key: &str) -> String {
    let ran = testbed.plain_shell(&format!("git config --local --get-all {key} || true"));
    ran.output().trim().to_owned()
}

#[test]
fn a_tool_adds_a_remote_and_an_upstream_and_changes_no_setting() {
    for testbed in testbeds() {
        let make = format!(
            "git init -q -b main; git config user.name Me; {COMMIT}; git init -q --bare ../other/r.git"
        );
        testbed.plain_shell(&make).succeeds();
        let ran = testbed.shell(
            "set -e; git remote add origin https://example.com/a; git remote add evil 'ext::sh -c x'; \
             git config branch.main.remote origin; git config branch.main.merge refs/heads/main; \
             git config user.name Other; git config user.email a@b; git config core.pager x; \
             git config --get remote.origin.url; git config user.name",
        );
        assert_eq!(ran.succeeds().output(), "https://example.com/a\nOther\n");
        assert_eq!(
            config(&testbed, "remote.origin.url"),
            "https://example.com/a"
        );
        assert_eq!(config(&testbed, "remote.evil.url"), "");
        assert_eq!(config(&testbed, "branch.main.merge"), "refs/heads/main");
        assert_eq!(config(&testbed, "user.name"), "Me");
        assert_eq!(config(&testbed, "core.pager"), "");
        let refused = ran.refused();
        for name in ["user.name", "core.pager", "remote.evil.url"] {
            assert!(
                refused["settings"]
                    .as_array()
                    .unwrap()
                    .contains(&name.into()),
                "{refused}"
            );
        }
        // What exists now is the user's.
        testbed.shell("git remote set-url origin https://evil.example; git remote remove origin");
        assert_eq!(
            config(&testbed, "remote.origin.url"),
            "https://example.com/a"
        );
        let left = fs::read_dir(testbed.root.join("tmp")).unwrap().flatten();
        let left = left.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b".git"));
        let left: Vec<_> = left.collect();
        assert!(left.is_empty(), "{left:?}");
        assert!(!testbed.tree().join(".git/config.lock").exists());
    }
}

#[test]
fn a_repository_that_a_tool_made_runs_nothing() {
    for make in [
        "git init -q; git config core.fsmonitor \"$RUN\"",
        "git init -q; git config core.hooksPath h; mkdir h; printf '#!/bin/sh\\n%s\\n' \"$RUN\" > h/post-commit; chmod +x h/post-commit",
        "git init -q; printf '#!/bin/sh\\n%s\\n' \"$RUN\" > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
        "git init -q; rm -rf .git/hooks; mkdir h; printf '#!/bin/sh\\n%s\\n' \"$RUN\" > h/post-commit; chmod +x h/post-commit; ln -s ../h .git/hooks",
        "git init -q; mv .git g; git config -f g/config core.fsmonitor \"$RUN\"; echo 'gitdir: g' > .git",
        "git init -q; mv .git g; git config -f g/config core.fsmonitor \"$RUN\"; ln -s g .git",
        "git init -q; git init -q --bare e; git config -f e/config core.fsmonitor \"$RUN\"; echo ../e > .git/commondir",
        "git init -q; git config extensions.worktreeConfig true; git config --worktree core.fsmonitor \"$RUN\"",
        "git init -q; printf '[include]\\n\\tpath = ../inc\\n' >> .git/config; printf '[core]\\n\\tfsmonitor = %s\\n' \"$RUN\" > inc",
        "git init -q; git init -q sub; git -C sub commit -q --allow-empty -m x; git -C sub config core.fsmonitor \"$RUN\"; git add sub",
    ] {
        for testbed in testbeds() {
            let canary = testbed.path("canary");
            let run = format!("touch {canary}; false");
            testbed
                .shell(&format!("export RUN='{run}'; {make}; git commit -qm x --allow-empty; rm -f {canary}; chmod 0555 .git"))
                .code();
            runs_nothing_after(&testbed, "tree", make);
            make_accessible(&testbed);
            runs_nothing_after(&testbed, "tree", make);
        }
    }
}

/// The modes let git in, and keep others from listing the directories.
#[test]
fn a_submodule_that_a_tool_made_runs_nothing() {
    let make = "git init -q e; git -C e commit -qm x --allow-empty; git config -f e/.git/config core.fsmonitor \"$RUN\"; \
                git config -f e/.git/config core.worktree \"$PWD/sub\"; mkdir sub m; echo 'gitdir: ../.git/modules/sub' > sub/.git; ";
    for place in [
        "mkdir .git/modules; mv e/.git .git/modules/sub; git add sub; chmod 0111 .git/modules/sub",
        "mkdir .git/modules; mv e/.git .git/modules/sub; git add sub; chmod 0111 .git/modules",
        "mv e/.git m/sub; ln -s ../m .git/modules; git add sub",
        "mkdir .git/modules; mv e/.git m/sub; ln -s ../../m/sub .git/modules/sub; git add sub",
    ] {
        for testbed in testbeds() {
            testbed
                .plain_shell(&format!("git init -q; {COMMIT}"))
                .succeeds();
            let run = format!("touch {}; false", testbed.path("canary"));
            testbed.shell(&format!("export RUN='{run}'; {make} {place}"));
            runs_nothing_after(&testbed, "tree", place);
        }
    }
}

#[test]
fn a_repository_that_a_tool_made_works() {
    for testbed in testbeds() {
        let other = testbed.path("other");
        testbed
            .plain_shell(&format!("cd {other}; git init -q; {COMMIT}"))
            .succeeds();
        let mut testbed = testbed;
        testbed.policy.readable.push(testbed.root.join("other"));
        let clone = format!(
            "rm -rf * && git clone -q {other} . && git checkout -qb topic && git worktree add -q wt"
        );
        let ran = testbed.shell(&clone);
        ran.succeeds();
        assert_eq!(ran.refused()["moved"], serde_json::json!([]), "{ran:?}");
        testbed.shell("echo 2 > more; git add -A .; git commit -qm second; cd wt; git commit -qm third --allow-empty; git log --oneline | wc -l").succeeds();
        assert_eq!(config(&testbed, "remote.origin.url"), other);
        assert!(testbed.tree().join(".git/hooks").exists());
    }
}

/// A repository in the tree that the index lists: `git status` of the tree looks into it.
#[test]
fn a_listed_repository_inside_the_tree_is_protected() {
    for testbed in testbeds() {
        let make = format!(
            "git init -q; git init -q sub; (cd sub; git commit -qm x --allow-empty); {COMMIT}"
        );
        testbed.plain_shell(&make).succeeds();
        let run = format!("touch {}; false", testbed.path("canary"));
        for script in [
            format!("git -C sub config core.fsmonitor '{run}'"),
            format!("mv sub/.git sub/g; git init -q sub; git -C sub config core.fsmonitor '{run}'"),
            format!(
                "mv sub s; git init -q sub; git -C sub commit -qm x --allow-empty; git -C sub config core.fsmonitor '{run}'"
            ),
        ] {
            testbed.shell(&script);
            runs_nothing(&testbed, "tree");
        }
    }
}

/// Git takes a directory with these names itself for a git directory.
#[test]
fn a_tree_that_a_tool_makes_a_git_directory_runs_nothing() {
    for make in [
        "mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = %s\\n' \"$RUN\" > config",
        "git init -q --bare .; git config core.bare false; git config core.worktree .; git config core.fsmonitor \"$RUN\"",
        "git init -q --bare ../tree/e; git config -f e/config core.bare false; git config -f e/config core.worktree ..; \
         git config -f e/config core.fsmonitor \"$RUN\"; echo e > commondir; cp e/HEAD HEAD",
        "mkdir .git; mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = %s\\n' \"$RUN\" > config",
        "ln -s nowhere .git; mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = %s\\n' \"$RUN\" > config",
        "mkdir -p .git/objects .git/refs; echo x > .git/HEAD; mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = %s\\n' \"$RUN\" > config",
        "echo x > .git; mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = %s\\n' \"$RUN\" > config",
        "git init -q; echo x > .git/HEAD; mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = %s\\n' \"$RUN\" > config",
    ] {
        for testbed in testbeds() {
            let run = format!("touch {}; false", testbed.path("canary"));
            testbed.shell(&format!("export RUN='{run}'; rm -rf *; {make}"));
            runs_nothing_after(&testbed, "tree", make);
        }
    }
}

#[test]
fn a_repository_that_a_tool_made_deeper_in_the_tree_runs_nothing() {
    for make in [
        "git init -q sub; git -C sub config core.fsmonitor \"$RUN\"",
        "mkdir -p a/b; git init -q a/b/sub; git -C a/b/sub config core.fsmonitor \"$RUN\"; ln -s a/b/sub sub",
        "git init -q sub; git -C sub config core.fsmonitor \"$RUN\"; chmod 0111 sub",
        "git init -q e; git -C e config core.fsmonitor \"$RUN\"; mkdir sub; mv e/.git sub/g; echo 'gitdir: g' > sub/.git",
        "git init -q e; git -C e config core.fsmonitor \"$RUN\"; mkdir sub; ln -s ../e/.git sub/.git",
        "git init -q sub; git -C sub commit -qm x --allow-empty; printf '#!/bin/sh\\n%s\\n' \"$RUN\" > sub/.git/hooks/post-commit; chmod +x sub/.git/hooks/post-commit",
        "git init -q --bare sub; git -C sub config core.bare false; git -C sub config core.worktree .; git -C sub config core.fsmonitor \"$RUN\"",
        "mkdir -p sub/.git; cd sub; mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = %s\\n' \"$RUN\" > config",
        "git init -q o; git init -q i; git -C i commit -qm x --allow-empty; cd o; git -c protocol.file.allow=always submodule add -q ../i s; \
         git config -f .git/modules/s/config core.fsmonitor \"$RUN\"; cd ..; ln -s o/s sub",
    ] {
        for testbed in testbeds() {
            testbed
                .plain_shell(&format!("git init -q; {COMMIT}"))
                .succeeds();
            let run = format!("touch {}; false", testbed.path("canary"));
            testbed.shell(&format!("export RUN='{run}'; {make}"));
            for dir in ["tree/sub", "tree"] {
                runs_nothing_after(&testbed, dir, make);
            }
        }
    }
}

/// What was there before the tool ran is the user's, and what git itself makes goes on working.
#[test]
fn repositories_deeper_in_the_tree_stay_and_work() {
    for testbed in testbeds() {
        let make = format!(
            "git init -q own; cd own; {COMMIT}; git config core.fsmonitor true; printf '#!/bin/sh\\n' > .git/hooks/pre-commit; \
             chmod +x .git/hooks/pre-commit; cd ..; git init -q i; cd i; {COMMIT}"
        );
        testbed.plain_shell(&make).succeeds();
        let ran = testbed.shell(
            "set -e; git -C own commit -qm second --allow-empty; mkdir deep; git clone -q i deep/clone; cd deep/clone; \
             git -c protocol.file.allow=always submodule add -q \"$PWD/../../i\" s; git commit -qm sub; git worktree add -q ../wt",
        );
        ran.succeeds();
        assert_eq!(ran.refused()["moved"], serde_json::json!([]), "{ran:?}");
        let ran = testbed.shell(
            "set -e; git -C own status; git -C deep/clone/s commit -qm more --allow-empty; git -C deep/wt log --oneline; \
             git -C own config core.fsmonitor; test -x own/.git/hooks/pre-commit; rm -rf deep",
        );
        ran.succeeds();
    }
}

/// The tool makes a repository, which is cleaned, and changes it with its next command.
#[test]
fn a_repository_deeper_in_the_tree_that_a_second_command_changes_runs_nothing() {
    for (make, change) in [
        (
            "git init -q sub",
            "git -C sub config core.fsmonitor \"$RUN\"",
        ),
        (
            "git init -q sub; git -C sub commit -qm x --allow-empty",
            "printf '#!/bin/sh\\n%s\\n' \"$RUN\" > sub/.git/hooks/post-commit; chmod +x sub/.git/hooks/post-commit",
        ),
        (
            "git init -q sub",
            "mkdir h; printf '#!/bin/sh\\n%s\\n' \"$RUN\" > h/post-commit; chmod +x h/post-commit; rm -rf sub/.git/hooks; ln -s ../../h sub/.git/hooks",
        ),
        (
            "git init -q sub",
            "git init -q --bare e; git config -f e/config core.fsmonitor \"$RUN\"; echo ../../e > sub/.git/commondir",
        ),
        (
            "git init -q sub",
            "rm -rf sub/.git; git init -q g; git -C g config core.fsmonitor \"$RUN\"; mv g/.git sub/.git",
        ),
        (
            "git init -q --object-format=sha256 sub; git -C sub commit -qm x --allow-empty; git update-index --split-index",
            "git -C sub config core.fsmonitor \"$RUN\"; git add sub",
        ),
        (
            "mkdir sub; cd sub; git init -q --bare .",
            "cd sub; git config core.bare false; git config core.worktree .; git config core.fsmonitor \"$RUN\"",
        ),
        (
            "git init -q sub",
            "cd sub; mv .git g; mkdir .git; mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = %s\\n' \"$RUN\" > config",
        ),
        (
            "git init -q i; git -C i commit -qm x --allow-empty; git init -q sub; cd sub; git -c protocol.file.allow=always submodule add -q ../i s; git commit -qm s",
            "git config -f sub/.git/modules/s/config core.fsmonitor \"$RUN\"",
        ),
        (
            "git init -q sub; cd sub; git commit -qm x --allow-empty; git worktree add -q ../w",
            "git -C sub config extensions.worktreeConfig true; git config -f sub/.git/worktrees/w/config.worktree core.fsmonitor \"$RUN\"; rm -rf sub/x; ln -s ../w sub/x; git -C sub status; mv sub keep; ln -s w sub",
        ),
        (
            "git init -q sub; git -C sub commit -qm x --allow-empty; git add sub",
            "git -C sub config core.fsmonitor \"$RUN\"; git update-index --index-version 4",
        ),
    ] {
        for testbed in testbeds() {
            testbed
                .plain_shell(&format!("git init -q; {COMMIT}"))
                .succeeds();
            let run = format!("touch {}; false", testbed.path("canary"));
            testbed.shell(make);
            testbed.shell(&format!("export RUN='{run}'; {change}"));
            for dir in ["tree/sub", "tree"] {
                runs_nothing_after(&testbed, dir, change);
            }
        }
    }
}

/// Regression: all names under which it would have been moved aside were taken.
#[test]
fn what_is_planted_is_moved_aside_also_if_a_tool_took_the_names() {
    for testbed in testbeds() {
        let canary = testbed.path("canary");
        testbed
            .plain_shell(&format!("git init -q; {COMMIT}"))
            .succeeds();
        testbed.shell(
            "mkdir ev; cp -r .git/objects .git/refs ev; git config -f ev/config core.repositoryformatversion 0; \
             cd .git; touch commondir.refused; for n in $(seq 10000); do : > commondir.refused-$n; done",
        );
        testbed.shell(&format!(
            "git config -f ev/config core.fsmonitor 'touch {canary}; false'; echo ../ev > .git/commondir"
        ));
        assert!(!testbed.tree().join(".git/commondir").exists());
        runs_nothing_after(&testbed, "tree", "names");
    }
}

/// Regression: git ended the name at the NUL byte, and read the address as the program of another remote.
#[test]
fn a_name_with_a_nul_byte_becomes_no_setting() {
    for testbed in testbeds() {
        let make = format!("git init -q; {COMMIT}; git remote add origin .");
        testbed.plain_shell(&make).succeeds();
        testbed.shell(
            "printf '[remote \"origin.uploadpack\\0\"]\\n\\turl = x\\n[remote \"new\"]\\n\\turl = y\\n' >> .git/config",
        );
        assert_eq!(config(&testbed, "remote.origin.uploadpack"), "");
        let text = fs::read(testbed.tree().join(".git/config")).unwrap();
        assert!(!text.contains(&0), "{text:?}");
    }
}

/// Regression: `git reset --hard` wrote the files of the tool's commit into the directory that its repository named.
#[test]
fn a_repository_that_a_tool_made_has_no_work_tree_elsewhere() {
    for testbed in testbeds() {
        let other = testbed.path("other");
        testbed.plain_shell(&format!("echo mine > {other}/victim"));
        for worktree in [other.as_str(), "../../../other", "../../link"] {
            testbed.shell(&format!(
                "rm -rf sub link; git init -q sub; cd sub; echo evil > victim; git add victim; git commit -qm x; \
                 ln -s {other} ../link; git config core.worktree {worktree}"
            ));
            testbed.plain_shell("cd sub && git reset -q --hard");
            let victim = fs::read_to_string(testbed.root.join("other/victim")).unwrap();
            assert_eq!(victim, "mine\n", "{worktree}");
        }
    }
}

/// Git writes through links in its directory: the user's git must not be led to other files.
#[test]
fn links_that_a_tool_makes_in_a_git_directory_lead_nowhere() {
    for link in [
        "ln -s \"$O/victim\" .git/COMMIT_EDITMSG; echo evil > .git/SQUASH_MSG",
        "ln -s config .git/COMMIT_EDITMSG; printf '[core]\\n\\tfsmonitor = %s\\n' \"$RUN\" > .git/SQUASH_MSG",
        "rm .git/logs/HEAD; ln -s \"$O/victim\" .git/logs/HEAD",
        "rm -rf .git/logs; mkdir l; ln -s \"$O/victim\" l/HEAD; ln -s ../l .git/logs",
        "ln -s \"$O/new\" .git/FETCH_HEAD; rm .git/index; ln -s \"$O/new\" .git/index",
        // Behind more entries than one would like to look at.
        "cd .git; seq 30000 | xargs touch; ln -s \"$O/victim\" COMMIT_EDITMSG; echo evil > SQUASH_MSG",
        "cd .git; for n in $(seq 200); do ln -s \"$O/victim\" a$n; done; ln -s \"$O/victim\" COMMIT_EDITMSG; echo evil > SQUASH_MSG",
    ] {
        for testbed in testbeds() {
            let (other, canary) = (testbed.path("other"), testbed.path("canary"));
            let make = format!("git init -q; {COMMIT}; echo mine > {other}/victim");
            testbed.plain_shell(&make).succeeds();
            let script = format!("export O={other} RUN='touch {canary}; false'; {link}");
            testbed.shell(&script);
            testbed.plain_shell(
                "GIT_EDITOR=true git commit --allow-empty; git fetch .; git add -A; git status",
            );
            runs_nothing_after(&testbed, "tree", link);
            let victim = fs::read_to_string(testbed.root.join("other/victim")).unwrap();
            assert_eq!(victim, "mine\n", "{link}");
            assert!(!testbed.root.join("other/new").exists(), "{link}");
        }
    }
}

/// A second name of the configuration would be writable: no tool starts until it is gone.
#[test]
fn a_configuration_with_a_second_name_keeps_tools_from_starting() {
    for testbed in testbeds() {
        let make = format!("git init -q; {COMMIT}; ln .git/config second");
        testbed.plain_shell(&make).succeeds();
        let ran = testbed.shell("echo x >> second");
        assert!(format!("{ran:?}").contains("second name"), "{ran:?}");
        testbed
            .plain_shell("cp .git/config c; mv c .git/config; git status")
            .succeeds();
        testbed.shell("git status").succeeds();
    }
}
