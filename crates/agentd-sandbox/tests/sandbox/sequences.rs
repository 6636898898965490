//! Random sequences of what a tool can do to the files of its tree, in repositories of every layout: no path of the host
//! becomes writable, and nothing that was planted runs when the user works in the tree.

use crate::testbed::{Running, Testbed, testbeds};
use agentd_sandbox::OutsideGitDir;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How the user made the tree. `$O` is a directory outside.
const LAYOUTS: &[(&str, &str)] = &[
    ("none", "true"),
    ("plain", "git init -q; git add -A; git commit -qm first"),
    (
        "without hooks",
        "git init -q; rm -rf .git/hooks .git/info; git config extensions.worktreeConfig true; git commit -qm first --allow-empty",
    ),
    (
        "linked",
        "cd $O; git init -q; git commit -qm first --allow-empty; rm -rf $T; git worktree add -q $T",
    ),
    (
        "bare",
        "cd $O; git init -q --bare .; git worktree add -q --orphan -b main $O/w; cd $O/w; git commit -qm first --allow-empty; \
         cd $O; git worktree remove -f w; rm -rf $T; git worktree add -q -f $T main",
    ),
    (
        "separate",
        "git init -q --separate-git-dir=$O/g; git config core.worktree $T; git commit -qm first --allow-empty",
    ),
    (
        "submodule",
        "(cd $O; git init -q; git commit -qm first --allow-empty); git init -q; git commit -qm first --allow-empty; \
         git -c protocol.file.allow=always submodule --quiet add $O sub; git commit -qm sub",
    ),
];

const PATHS: &[&str] = &[
    ".git",
    ".git/HEAD",
    ".git/commondir",
    ".git/config",
    ".git/config.worktree",
    ".git/gitdir",
    ".git/hooks",
    ".git/hooks/post-commit",
    ".git/info",
    ".git/info/attributes",
    ".git/modules",
    ".git/modules/sub/commondir",
    ".git/modules/sub/config",
    ".git/objects/info/alternates",
    ".git/worktrees/w/commondir",
    ".gitattributes",
    "g",
    "g/commondir",
    "g/config",
    "g/gitdir",
    "g/worktrees/w",
    "h",
    "h/post-commit",
    "sub",
    "sub/.git",
    "../sibling",
    "$O/planted",
];

const CONTENTS: &[&str] = &[
    "gitdir: g",
    "gitdir: ../other",
    "gitdir: $O",
    "../..",
    "../g",
    "$T/.git",
    "$T/g",
    "* filter=f",
    "ref: refs/heads/x",
    "[core]\\n\\tfsmonitor = touch $C; false\\n\\tworktree = $T\\n",
    "[core]\\n\\thooksPath = $T/h\\n[filter \\\"f\\\"]\\n\\tclean = touch $C; cat\\n",
    "#!/bin/sh\\ntouch $C\\n",
];

const COMMANDS: &[&str] = &[
    "git init -q",
    "git init -q g",
    "git init -q --bare g",
    "git init -q sub",
    "git add sub",
    "git config core.fsmonitor 'touch $C; false'",
    "git config core.hooksPath h",
    "git -C sub config core.fsmonitor 'touch $C; false'",
    "git -C g config core.fsmonitor 'touch $C; false'",
    "git worktree add -q g/w",
    "git commit -qm x --allow-empty",
    "cp -rL .git g",
    "cp -r g .git",
];

/// The same sequence for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.roll(list.len())]
    }

    fn step(&mut self) -> String {
        self.step_of(PATHS, COMMANDS)
    }

    fn step_of(&mut self, paths: &[&str], commands: &[&str]) -> String {
        let path = self.of(paths);
        match self.roll(8) {
            0..=2 => format!(
                "mkdir -p \"$(dirname {path})\"; printf \"{}\" > {path}",
                self.of(CONTENTS)
            ),
            3 => format!("ln -sfn {} {path}", self.of(paths)),
            4 => format!("mv -T {} {path}", self.of(paths)),
            5 => format!("chmod {} {path}", self.of(&["0555", "0", "0755", "+x"])),
            6 => format!("rm -rf {path}; mkdir -p {path}"),
            _ => self.of(commands).to_owned(),
        }
    }
}

/// Everything outside the tree and the agent's own directories, except what git itself keeps of a repository.
fn outside(testbed: &Testbed) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let own = ["tree", "own", "tmp", "state"].map(|name| testbed.root.join(name));
    let mut dirs = vec![testbed.root.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap().flatten() {
            let path = entry.path();
            let name = path
                .strip_prefix(&testbed.root)
                .unwrap()
                .display()
                .to_string();
            let is_gits = [
                "objects",
                "refs",
                "logs",
                "index",
                "HEAD",
                "COMMIT_EDITMSG",
                "worktrees",
                "packed-refs",
                "ORIG_HEAD",
            ]
            .iter()
            .any(|part| {
                name.starts_with("other/") && Path::new(&name).iter().any(|is| is == *part)
            });
            if own.contains(&path) || is_gits {
                continue;
            }
            match entry.file_type().unwrap().is_dir() {
                true => dirs.push(path),
                false => {
                    found.insert(name, fs::read(&path).unwrap_or_default());
                }
            }
        }
    }
    found
}

fn decide(testbed: &mut Testbed) {
    let tree = testbed.tree();
    testbed.policy.git_dirs = OutsideGitDir::of(&tree).into_iter().collect();
}

fn variables(testbed: &Testbed) -> String {
    let (tree, other, canary) = (
        testbed.path("tree"),
        testbed.path("other"),
        testbed.path("canary"),
    );
    // For a tool the canary is where it cannot write: only the user's git could make it.
    format!("export T={tree} O={other} C={canary}")
}

#[test]
fn no_sequence_of_writes_opens_the_host_or_runs_as_the_user() {
    let is_long = std::env::var_os("AGENTD_TEST_LONG").is_some();
    let rounds = if is_long { 40 } else { 2 };
    for (number, (layout, make)) in LAYOUTS.iter().enumerate() {
        for round in 0..rounds {
            let seed = 1 + number as u64 * 1000 + round;
            let mut users = testbeds();
            // Each user has half of them.
            let at = usize::try_from(round).unwrap() % users.len();
            let mut testbed = users.swap_remove(at);
            fs::remove_file(testbed.root.join("other/file")).unwrap();
            let variables = variables(&testbed);
            testbed
                .plain_shell(&format!("{variables}; set -e; {make}"))
                .succeeds();
            decide(&mut testbed);
            let before = outside(&testbed);
            let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut done = String::new();
            for _ in 0..3 {
                let steps: Vec<String> = (0..8).map(|_| dice.step()).collect();
                let script = format!("{variables}; {{ {}; }} 2>/dev/null", steps.join("; "));
                done.push_str(&format!("{}\n", steps.join("\n")));
                // It may be ended, or refused.
                testbed.run(testbed.job("/bin/sh", &["-c", &script]));
                let failed = format!("{layout}, seed {seed}:\n{done}");
                assert_eq!(outside(&testbed), before, "{failed}");
                let mode = fs::Permissions::from_mode(0o755);
                fs::set_permissions(testbed.tree(), mode).unwrap();
                testbed.plain_shell(
                    "git status; git log -1; git diff; git commit -qm user --allow-empty",
                );
                assert!(!testbed.root.join("canary").exists(), "it ran: {failed}");
                // The worst case: everything is decided anew.
                decide(&mut testbed);
            }
        }
    }
}

/// What must not appear in a git directory.
const PLANTED: &[&str] = &[
    "commondir",
    "config.worktree",
    "hooks",
    "info/attributes",
    "objects/info/alternates",
];

/// The git directories that a layout may have, with what is in them.
fn planted(testbed: &Testbed) -> Vec<PathBuf> {
    let dirs = [
        "tree/.git",
        "tree/.git/modules/sub",
        "other",
        "other/g",
        "other/.git",
    ];
    let dirs = dirs.iter().map(|dir| testbed.root.join(dir));
    let dirs = dirs.filter(|dir| fs::symlink_metadata(dir.join("HEAD")).is_ok());
    let names = dirs.flat_map(|dir| PLANTED.iter().map(move |name| dir.join(name)));
    names
        .filter(|path| fs::symlink_metadata(path).is_ok())
        .collect()
}

/// Two agents work in the same tree, and have not ended.
#[test]
fn nothing_runs_as_the_user_while_two_tools_still_run() {
    let is_long = std::env::var_os("AGENTD_TEST_LONG").is_some();
    let rounds = if is_long { 20 } else { 1 };
    // A repository that a tool makes is looked at when the tool has ended.
    let paths = PATHS.iter().copied();
    let paths: Vec<&str> = paths
        .filter(|path| !path.starts_with('g') && !path.starts_with("sub"))
        .collect();
    let commands = COMMANDS.iter().copied();
    let commands: Vec<&str> = commands
        .filter(|command| command.starts_with("git config") || command.starts_with("git commit"))
        .collect();
    let with_repository = LAYOUTS.iter().filter(|(layout, _)| *layout != "none");
    for (number, (layout, make)) in with_repository.enumerate() {
        for round in 0..rounds {
            let seed = 7 + number as u64 * 1000 + round;
            let mut users = testbeds();
            let at = (number + usize::try_from(round).unwrap()) % users.len();
            let mut testbed = users.swap_remove(at);
            fs::remove_file(testbed.root.join("other/file")).unwrap();
            let variables = variables(&testbed);
            testbed
                .plain_shell(&format!("{variables}; set -e; {make}"))
                .succeeds();
            decide(&mut testbed);
            let was_there = planted(&testbed);
            let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut done = String::new();
            let mut begin = |name: &str| {
                let steps = (0..12).map(|_| dice.step_of(&paths, &commands));
                let steps: Vec<String> = steps.collect();
                done.push_str(&format!("{name}:\n{}\n", steps.join("\n")));
                let script = format!(
                    "{variables}; {{ {}; }} 2>/dev/null; touch $T/{name}; \
                     n=0; while ! test -e $T/stop && test $n -lt 600; do sleep 0.05; n=$((n+1)); done",
                    steps.join("; ")
                );
                testbed.begin(testbed.job("/bin/sh", &["-c", &script]))
            };
            let running = [begin("one"), begin("two")];
            let failed = format!("{layout}, seed {seed}:\n{done}");
            let until = Instant::now() + Duration::from_secs(60);
            let is_ready = |name: &str, running: &Running| {
                // Without a pid it was refused.
                let pid = running.first["pid"].as_i64();
                let runs = pid.is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists());
                !runs || testbed.tree().join(name).exists()
            };
            let is_over = || {
                is_ready("one", &running[0])
                    && is_ready("two", &running[1])
                    && planted(&testbed)
                        .iter()
                        .all(|path| was_there.contains(path))
            };
            while !is_over() {
                assert!(Instant::now() < until, "not ready, or planted: {failed}");
                // tidy: polls for the tools, and for agentd's answer to what they planted
                std::thread::sleep(Duration::from_millis(5));
            }
            testbed
                .plain_shell("git status; git log -1; git diff; git commit -qm user --allow-empty");
            assert!(!testbed.root.join("canary").exists(), "it ran: {failed}");
            testbed.plain_shell("touch stop").succeeds();
            for running in running {
                running.finish();
            }
            testbed.plain_shell("git status; git log -1; git diff");
            assert!(!testbed.root.join("canary").exists(), "it ran: {failed}");
        }
    }
}
