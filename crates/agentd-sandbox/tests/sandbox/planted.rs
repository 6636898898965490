//! What an attack of fresh eyes planted in repositories: pointers, indexes, second names, links and addresses.

use crate::repositories::{COMMIT, config, decided, runs_nothing, runs_nothing_after, shell_in};
use crate::testbed::{Ran, Testbed, testbeds};

/// A git directory that runs a program, complete, made by a tool at `$1`.
const EVIL: &str = "evil() { mkdir -p $1/objects $1/refs; echo 'ref: refs/heads/main' > $1/HEAD; \
                    printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch %s/canary; false #\\n' \"$ROOT\" > $1/config; }";

/// Runs a script with `evil` in a repository with one commit, and looks whether the user's git runs anything.
#[track_caller]
fn plants(testbed: &Testbed, script: &str) -> Ran {
    let make = format!("git init -q; {COMMIT}");
    testbed.plain_shell(&make).succeeds();
    let root = testbed.root.display();
    let ran = testbed.shell(&format!(
        "ROOT={root}; ID=$(git rev-parse HEAD); {EVIL}\nlink() {{ git update-index --add --cacheinfo 160000,$ID,$1; }}\n{script}"
    ));
    runs_nothing_after(testbed, "tree", script);
    testbed.shell("true");
    runs_nothing_after(testbed, "tree", script);
    ran
}

/// Regression: a `.git` file led to a directory in the user's own git directory that was not looked at.
#[test]
fn a_pointer_leads_only_to_a_git_directory_that_was_looked_at() {
    for script in [
        "evil .git/worktrees/w; mkdir sub; echo 'gitdir: ../.git/worktrees/w' > sub/.git; link sub",
        "mkdir -p .git/modules/m; touch .git/modules/m/HEAD; evil .git/modules/m/foo; mkdir sub; \
         echo 'gitdir: ../.git/modules/m/foo' > sub/.git; link sub",
        "evil .git/odd; mkdir sub; echo 'gitdir: ../.git/odd' > sub/.git; link sub",
        "evil .git/objects/odd; mkdir sub; echo 'gitdir: ../.git/objects/odd' > sub/.git; link sub",
        "evil b/.git/worktrees/w/.git; mkdir -p b/.git/worktrees/w/.git/worktrees/z sub; \
         echo ../.. > b/.git/worktrees/w/.git/worktrees/z/commondir; cp b/.git/worktrees/w/.git/HEAD b/.git/worktrees/w/.git/worktrees/z/; \
         echo 'gitdir: ../b/.git/worktrees/w/.git/worktrees/z' > sub/.git; \
         echo $PWD/sub/.git > b/.git/worktrees/w/.git/worktrees/z/gitdir; link sub",
    ] {
        for testbed in testbeds() {
            plants(&testbed, script);
        }
    }
}

/// Regression: an index that agentd read otherwise than git, and one in two files.
#[test]
fn gitlinks_are_found_as_git_finds_them() {
    let junk = "seq 1 8000 | sed 's/^/junk/' | xargs mkdir; evil a/b/c/.git; link a/b/c;";
    let odd = r#"python3 - <<'END'
import hashlib
data = bytearray(open('.git/index', 'rb').read()[:-20])
at = data.index(b'a/b/c')
data[at + 1] = 0
open('.git/index', 'wb').write(data + hashlib.sha1(data).digest())
END"#;
    for script in ["git update-index --split-index", odd] {
        for testbed in testbeds().into_iter().take(1) {
            plants(&testbed, &format!("{junk} {script}"));
        }
    }
}

/// Regression: git looks into the repositories that the index of a listed repository lists, wherever they are.
#[test]
fn repositories_that_a_listed_one_lists_run_nothing_in_a_tree_of_any_size() {
    for testbed in testbeds().into_iter().take(1) {
        plants(
            &testbed,
            "seq 1 8000 | sed 's/^/junk/' | xargs mkdir; mkdir -p sub/a/b/c; git init -q sub; evil sub/a/b/c/.git; \
             (cd sub; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; link a/b/c); link sub",
        );
    }
}

/// Regression: an agent that works in a subdirectory replaced what the index of the repository around it lists.
#[test]
fn what_the_index_of_a_repository_around_a_tree_lists_runs_nothing() {
    for mut testbed in testbeds().into_iter().take(1) {
        let make = format!(
            "git init -q; mkdir -p pkg/deep/mod; git init -q pkg/deep/mod; (cd pkg/deep/mod; {COMMIT}); {COMMIT}"
        );
        testbed.plain_shell(&make).succeeds();
        decided(&mut testbed, "tree/pkg");
        let root = testbed.root.display().to_string();
        let script = format!(
            "ROOT={root}; {EVIL}\nseq 1 8000 | sed 's/^/junk/' | xargs mkdir; \
             rm -rf deep/mod/.git; mv deep/mod deep/old; mkdir deep/mod; evil deep/mod/.git"
        );
        shell_in(&testbed, "tree/pkg", &script);
        runs_nothing(&testbed, "tree");
    }
}

/// Regression: names without end in a directory that is looked at took more memory than the shim has, and nothing was done.
#[test]
fn any_number_of_names_hides_nothing() {
    for testbed in testbeds().into_iter().take(1) {
        let ran = plants(
            &testbed,
            "mkdir -p .git/modules; (cd .git/modules; seq 1 30000 | xargs touch); evil sub/.git; link sub",
        );
        let stays = ran.refused()["stays"][0].as_str().unwrap();
        assert!(stays.ends_with("/.git/modules"), "{ran:?}");
    }
}

/// Regression: a file that is read-only for the next command had a second name, by which that command wrote it.
#[test]
fn what_git_reads_has_no_second_name() {
    for testbed in testbeds() {
        plants(
            &testbed,
            "git init -q own; (cd own; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x); \
             git -c protocol.file.allow=always submodule add -q ./own sub 2>/dev/null || true; \
             ln sub/.git keep; git worktree add -q wt; ln .git/worktrees/wt/commondir .git/keep",
        );
        let root = testbed.root.display().to_string();
        testbed.shell(&format!(
            "ROOT={root}; {EVIL}\nevil evil.git; echo 'gitdir: ../evil.git' > keep; echo $PWD/evil.git > .git/keep"
        ));
        runs_nothing(&testbed, "tree");
        runs_nothing(&testbed, "tree/wt");
        // One that appears later keeps every tool from starting.
        testbed.plain_shell("ln .git/HEAD x; ls .git/hooks; echo > .git/hooks/own; ln .git/hooks/own .git/keep2").succeeds();
        let refused = format!("{:?}", testbed.shell("true"));
        assert!(refused.contains("it has a second name"), "{refused}");
    }
}

/// Regression: `git push` runs the hooks of a repository on this machine.
#[test]
fn no_address_leads_to_a_repository_that_a_tool_can_write() {
    for testbed in testbeds() {
        plants(
            &testbed,
            "git config branch.main.remote \"$PWD/evil\"; git config remote.near.url \"$PWD/evil\"; git config remote.tmp.url /tmp/evil; \
             git remote add far https://example.com/x; git config branch.other.remote far; git config branch.other.merge refs/heads/main; \
             mkdir -p .git/branches 2>/dev/null && echo $PWD/evil > .git/branches/origin || true",
        );
        for key in ["branch.main.remote", "remote.near.url"] {
            assert_eq!(config(&testbed, key), "", "{key}");
        }
        assert_eq!(config(&testbed, "branch.other.remote"), "far");
    }
}

/// Regression: another agent replaced a directory by a link between the check and the start.
#[test]
fn a_path_that_was_without_links_is_refused_when_it_is_one() {
    for mut testbed in testbeds() {
        let (docs, other) = (testbed.root.join("docs"), testbed.root.join("other"));
        std::os::unix::fs::symlink(&other, &docs).unwrap();
        testbed.policy.readable.push(docs.clone());
        testbed.shell("true").succeeds();
        testbed.policy.without_links.push(docs);
        let refused = format!("{:?}", testbed.shell("true"));
        assert!(refused.contains("a symlink leads elsewhere"), "{refused}");
    }
}

/// Regression: git writes through links below `objects`, and in repositories that a tool made.
#[test]
fn links_in_objects_and_in_made_repositories_lead_nowhere() {
    for testbed in testbeds() {
        let other = testbed.path("other");
        let script = format!(
            "rm -rf .git/objects/pack; ln -s {other} .git/objects/pack; ln -s {other}/sparse .git/info/sparse-checkout; \
             git worktree add -q wt; rm .git/worktrees/wt/logs/HEAD; ln -s {other}/log .git/worktrees/wt/logs/HEAD; \
             git init -q made; ln -s {other}/log made/.git/COMMIT_EDITMSG; mkdir -p made/.git/logs; ln -s {other}/log made/.git/logs/HEAD"
        );
        let make = format!("git init -q; {COMMIT}");
        testbed.plain_shell(&make).succeeds();
        testbed.shell(&script);
        let links = "find .git made/.git -type l ! -name '*refused*'";
        assert_eq!(testbed.plain_shell(links).output(), "", "{script}");
        testbed
            .plain_shell(
                "cd made; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
            )
            .succeeds();
        assert!(!testbed.root.join("other/log").exists());
    }
}

/// Regression: a name that looks like one of agentd's, and a deep one, hid a link.
#[test]
fn no_name_of_a_branch_hides_a_link() {
    let deep = vec!["p"; 40].join("/");
    for name in ["fix.refused", "x.refused-1", &deep] {
        for testbed in testbeds() {
            let make = format!("git init -q; {COMMIT}");
            testbed.plain_shell(&make).succeeds();
            let other = testbed.path("other");
            testbed.shell(&format!(
                "git checkout -q -b {name}; rm .git/logs/refs/heads/{name}; ln -s {other}/log .git/logs/refs/heads/{name}"
            ));
            testbed.plain_shell("git commit -q --allow-empty -m y");
            assert!(!testbed.root.join("other/log").exists(), "{name}");
        }
    }
}

/// Regression: the directory that a setting names became a link later.
#[test]
fn a_work_tree_that_is_not_there_becomes_no_link() {
    for testbed in testbeds() {
        let other = testbed.path("other");
        let make = format!("git init -q; {COMMIT}");
        testbed.plain_shell(&make).succeeds();
        for (first, second) in [
            ("", "ln -s $OTHER made/wt"),
            ("mkdir made/wt", "rmdir made/wt; ln -s $OTHER made/wt"),
        ] {
            testbed.shell(&format!(
                "rm -rf made; git init -q made; cd made; echo x > stolen; git add stolen; git -c user.name=a -c user.email=a@b commit -q -m x; \
                 git config core.worktree ../wt; cd ..; {first}"
            ));
            testbed.shell(&format!("OTHER={other}; {second}"));
            testbed.plain_shell("cd made; git checkout -f");
            assert!(!testbed.root.join("other/stolen").exists(), "{second}");
        }
    }
}
