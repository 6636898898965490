//! Random sequences of what a tool can do to the files of its tree, in repositories of every layout: no path of the host
//! becomes writable, and nothing that was planted runs when the user works in the tree.

use crate::testbed::{Testbed, testbeds};
use agentd_sandbox::OutsideGitDir;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

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
        let path = self.of(PATHS);
        match self.roll(8) {
            0..=2 => format!(
                "mkdir -p \"$(dirname {path})\"; printf \"{}\" > {path}",
                self.of(CONTENTS)
            ),
            3 => format!("ln -sfn {} {path}", self.of(PATHS)),
            4 => format!("mv -T {} {path}", self.of(PATHS)),
            5 => format!("chmod {} {path}", self.of(&["0555", "0", "0755", "+x"])),
            6 => format!("rm -rf {path}; mkdir -p {path}"),
            _ => self.of(COMMANDS).to_owned(),
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
    let rounds = if is_long { 40 } else { 4 };
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
