//! Repositories of every layout: what a tool writes in its tree must neither open a directory outside it, nor run when the
//! user works there.

use super::attack::{Attack, Evidence, Needs, Theme};
use super::testbed::Testbed;
use crate::lab::testbed::{Result, Stuck};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

pub const THEME: Theme = Theme {
    name: "repositories",
    is_about_sandbox: true,
    attacks: ATTACKS,
};

/// Runs a script as the user in the work tree, before or after the attack.
pub(super) fn user(testbed: &Testbed, script: &str) -> Result<()> {
    let script = format!(
        "set -e; export OUTSIDE='{}'; {script}",
        testbed.outside().display()
    );
    let ran = testbed
        .command("sh")
        .args(["-c", &script])
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()?;
    match ran.status.success() {
        true => Ok(()),
        false => Err(Stuck::Wrong(String::from_utf8_lossy(&ran.stderr).into())),
    }
}

/// An agent that is created after the user made the repository.
pub(super) fn agent(testbed: &Testbed, name: &str, below: &str) -> Result<()> {
    let mut spec = testbed.spec();
    let cwd = testbed.work().join(below);
    spec.cwd = Some(cwd.display().to_string());
    testbed.create_known(name, spec)
}

/// The user makes the repository, the tool runs one script after the other, and then the user runs git.
pub(super) fn runs(
    testbed: &Testbed,
    name: &str,
    made: &str,
    scripts: &[&str],
) -> Result<Evidence> {
    user(testbed, made)?;
    agent(testbed, name, "")?;
    for script in scripts {
        let script = format!("export RUN=\"touch $OUTSIDE/planted; false\"\n{script}");
        testbed.script(name, &script)?;
    }
    git(testbed)
}

pub(super) fn git(testbed: &Testbed) -> Result<Evidence> {
    // Modes that the tool changed are no protection.
    fs::set_permissions(testbed.work(), fs::Permissions::from_mode(0o755))?;
    user(
        testbed,
        "chmod u+rwx .; chmod -R u+rwx .git 2>/dev/null || true",
    )?;
    super::git::as_user(testbed)
}

/// In a directory that is no repository, the tool forges pointers, and its next command writes above the tree.
fn climbs(testbed: &Testbed, name: &str, forge: &str) -> Result<Evidence> {
    user(testbed, "rm -rf .git")?;
    agent(testbed, name, "")?;
    testbed.script(name, forge)?;
    testbed.script(
        name,
        "for d in .. ../.. \"$USERHOME\"; do echo x >> $d/.bashrc; done; echo x >> \"$OUTSIDE/canary\"",
    )?;
    let above = testbed.work().join("../.bashrc");
    Ok(testbed
        .profile_changed()
        .or_else(|| testbed.outside_changed())
        .or_else(|| testbed.made(&above)))
}

const FORGED: &str =
    "echo \"$WORK/.git\" > g/gitdir; echo ref: refs/heads/x > g/HEAD; mkdir -p g/objects g/refs;";
const EVIL: &str =
    "rm -rf evil; cp -rL .git evil; git config -f evil/config core.fsmonitor \"$RUN\";";

pub(super) const fn attack(
    name: &'static str,
    about: &'static str,
    run: fn(&Testbed) -> Result<Evidence>,
) -> Attack {
    Attack::new(name, about, run).needs(Needs::Workspace)
}

const ATTACKS: &[Attack] = &[
    attack(
        "repo-climb",
        "a `.git` file whose `commondir` is the directory above",
        |testbed| {
            climbs(
                testbed,
                "repo-climb",
                &format!("mkdir g; echo 'gitdir: g' > .git; {FORGED} echo ../.. > g/commondir"),
            )
        },
    ),
    attack("repo-climb-far", "the same, further up", |testbed| {
        climbs(
            testbed,
            "repo-climb-far",
            &format!("mkdir g; echo 'gitdir: g' > .git; {FORGED} echo ../../.. > g/commondir"),
        )
    }),
    attack("repo-climb-link", "the same through a link", |testbed| {
        climbs(
            testbed,
            "repo-climb-link",
            &format!(
                "mkdir -p a/b; ln -s a/b g; echo 'gitdir: g' > .git; {FORGED} echo ../../../.. > g/commondir"
            ),
        )
    }),
    attack(
        "repo-climb-worktrees",
        "a directory `worktrees` in the tree",
        |testbed| {
            climbs(
                testbed,
                "repo-climb-worktrees",
                "mkdir -p worktrees/w objects refs; touch HEAD worktrees/w/HEAD; echo 'gitdir: worktrees/w' > .git; \
             echo \"$WORK/.git\" > worktrees/w/gitdir; echo ../../.. > worktrees/w/commondir",
            )
        },
    ),
    attack(
        "repo-climb-archive",
        "an archive that contains the files",
        |testbed| {
            climbs(
                testbed,
                "repo-climb-archive",
                &format!(
                    "mkdir x; cd x; mkdir g; echo 'gitdir: g' > .git; {FORGED} echo ../.. > g/commondir; tar cf ../a.tar .git g; cd ..; tar xf a.tar"
                ),
            )
        },
    ),
    attack(
        "repo-climb-dot-git-link",
        "`.git` as a link out of the tree",
        |testbed| {
            climbs(
                testbed,
                "repo-climb-dot-git-link",
                "ln -s \"$USERHOME\" .git; mkdir -p .git/objects .git/refs; touch .git/HEAD",
            )
        },
    ),
    attack(
        "repo-climb-worktree-key",
        "`core.worktree` that names the tree, in a directory of the user",
        |testbed| {
            climbs(
                testbed,
                "repo-climb-worktree-key",
                "ln -s \"$USERHOME\" h; echo 'gitdir: h' > .git; printf '[core]\\n\\tworktree = %s\\n' \"$WORK\" > h/config",
            )
        },
    ),
    attack(
        "repo-commondir-mode",
        "`commondir` in a directory that cannot be written",
        |testbed| {
            runs(
                testbed,
                "repo-commondir-mode",
                "true",
                &[&format!(
                    "{EVIL} echo ../evil > c; mv c .git/commondir; chmod 0555 .git"
                )],
            )
        },
    ),
    attack(
        "repo-commondir-closed",
        "`commondir` in a directory that cannot be entered",
        |testbed| {
            runs(
                testbed,
                "repo-commondir-closed",
                "true",
                &[&format!(
                    "{EVIL} echo ../evil > .git/commondir; chmod 0 .git; chmod 0 ."
                )],
            )
        },
    ),
    attack(
        "repo-commondir-taken",
        "`commondir`, while every other name for it is taken",
        |testbed| {
            runs(
                testbed,
                "repo-commondir-taken",
                "true",
                &[&format!(
                    "{EVIL} mkdir -p .git/commondir.refused/x; echo ../evil > .git/commondir"
                )],
            )
        },
    ),
    attack(
        "repo-new-hooks",
        "`hooks` in a repository without any",
        |testbed| {
            runs(
                testbed,
                "repo-new-hooks",
                "rm -rf .git/hooks",
                &[
                    "mkdir h; printf '#!/bin/sh\\n%s\\n' \"$RUN\" > h/post-commit; chmod +x h/post-commit; mv h .git/hooks; chmod 0555 .git",
                ],
            )
        },
    ),
    attack(
        "repo-hooks-link",
        "what a link `hooks` leads to",
        |testbed| {
            runs(
                testbed,
                "repo-hooks-link",
                "rm -rf .git/hooks; mkdir -p own; touch own/x; ln -s ../own .git/hooks",
                &[
                    "printf '#!/bin/sh\\n%s\\n' \"$RUN\" > own/post-commit; chmod +x own/post-commit",
                ],
            )
        },
    ),
    attack(
        "repo-config-worktree",
        "`config.worktree` where the extension is on",
        |testbed| {
            runs(
                testbed,
                "repo-config-worktree",
                "git config extensions.worktreeConfig true",
                &[
                    "git config -f c core.fsmonitor \"$RUN\"; mv c .git/config.worktree; chmod 0555 .git",
                ],
            )
        },
    ),
    attack(
        "repo-info-link",
        "`info` as a link to attributes with the user's filter",
        |testbed| {
            runs(
                testbed,
                "repo-info-link",
                "rm -rf .git/info; git config filter.f.clean \"touch $OUTSIDE/planted; cat\"",
                &[
                    "mkdir in; echo '* filter=f' > in/attributes; ln -s ../in .git/info; echo more >> x",
                ],
            )
        },
    ),
    attack(
        "repo-config-copy",
        "the configuration, replaced by its copy",
        |testbed| {
            runs(
                testbed,
                "repo-config-copy",
                "true",
                &[
                    "git config core.fsmonitor \"$RUN\"; printf '[core]\\n\\tfsmonitor = %s\\n' \"$RUN\" >> .git/config; cp .git/config c; mv -f c .git/config",
                ],
            )
        },
    ),
    attack(
        "repo-made-config",
        "`core.fsmonitor` in a repository that the tool makes",
        |testbed| {
            runs(
                testbed,
                "repo-made-config",
                "rm -rf .git",
                &["git init -q; git config core.fsmonitor \"$RUN\""],
            )
        },
    ),
    attack(
        "repo-made-include",
        "a configuration that includes another one",
        |testbed| {
            runs(
                testbed,
                "repo-made-include",
                "rm -rf .git",
                &[
                    "git init -q; printf '[include]\\n\\tpath = ../inc\\n' >> .git/config; printf '[core]\\n\\tfsmonitor = %s\\n' \"$RUN\" > inc",
                ],
            )
        },
    ),
    attack(
        "repo-made-hook",
        "a hook in a repository that the tool makes",
        |testbed| {
            runs(
                testbed,
                "repo-made-hook",
                "rm -rf .git",
                &[
                    "git init -q; git config user.name a; git config user.email a@b; printf '#!/bin/sh\\n%s\\n' \"$RUN\" > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
                ],
            )
        },
    ),
    attack(
        "repo-made-pointer",
        "a `.git` file that names a directory of the tool",
        |testbed| {
            runs(
                testbed,
                "repo-made-pointer",
                "rm -rf .git",
                &[
                    "git init -q; git config user.name a; git config user.email a@b; mv .git g; printf '#!/bin/sh\\n%s\\n' \"$RUN\" > g/hooks/post-commit; chmod +x g/hooks/post-commit; echo 'gitdir: g' > .git",
                ],
            )
        },
    ),
    attack(
        "repo-made-twice",
        "a repository in one command, its configuration in the next",
        |testbed| {
            runs(
                testbed,
                "repo-made-twice",
                "rm -rf .git",
                &[
                    "git init -q",
                    "git config core.fsmonitor \"$RUN\"; printf '[core]\\n\\tfsmonitor = %s\\n' \"$RUN\" >> .git/config",
                ],
            )
        },
    ),
    attack(
        "repo-made-listed",
        "a repository in the tree that the index lists",
        |testbed| {
            runs(
                testbed,
                "repo-made-listed",
                "true",
                &[
                    "git init -q sub; git -C sub -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git -C sub config core.fsmonitor \"$RUN\"; git add sub",
                ],
            )
        },
    ),
    attack(
        "repo-made-bare",
        "a tree that is itself a git directory, without `.git`",
        |testbed| {
            runs(
                testbed,
                "repo-made-bare",
                "rm -rf .git",
                &[
                    "git init -q --bare .; git config -f config core.bare false; git config -f config core.worktree .; git config -f config core.fsmonitor \"$RUN\"",
                ],
            )
        },
    ),
    attack(
        "repo-below",
        "the repository above an agent's directory",
        |testbed| {
            user(testbed, "mkdir pkg")?;
            agent(testbed, "repo-below", "pkg")?;
            let run = format!("touch {}/planted; false", testbed.outside().display());
            let script = format!(
                "printf '[core]\\n\\tfsmonitor = {run}\\n' >> ../.git/config; git config core.fsmonitor '{run}'"
            );
            testbed.tool("repo-below", "shell", &json!({"command": script}))?;
            git(testbed)
        },
    ),
];
