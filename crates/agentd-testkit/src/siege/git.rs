//! What git would run as the user, when the user works in the tree afterwards.

use super::attack::{Attack, Needs, Theme};
use super::testbed::Testbed;
use crate::lab::testbed::Result;
use serde_json::json;
use std::fs;

pub const THEME: Theme = Theme {
    name: "git",
    is_about_sandbox: true,
    attacks: ATTACKS,
};

/// Runs this as a tool, then git as the user.
fn then_git(testbed: &Testbed, body: &str) -> Result<Option<String>> {
    testbed.script(
        "hostile",
        &format!("export RUN=\"touch $OUTSIDE/planted\"\n{body}"),
    )?;
    as_user(testbed)
}

pub(super) fn as_user(testbed: &Testbed) -> Result<Option<String>> {
    let script =
        "git status; git add -A; git commit -qm two --allow-empty; git log -1; git diff HEAD~1";
    let _whatever = testbed
        .command("sh")
        .args(["-c", script])
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()?;
    Ok(testbed.made(&testbed.outside().join("planted")))
}

/// Swaps a directory and a link to git's own, and holds each for a moment.
const SWAP: &str = r#"
import os, time
os.makedirs('a', exist_ok=True)
until = time.time() + 20
while time.time() < until:
    os.rename('a', 'b'); os.symlink('.git', 'a'); time.sleep(0.002)
    os.unlink('a'); os.rename('b', 'a'); time.sleep(0.001)
"#;

/// Writes git's configuration by write_file, while the directory in the path turns into git's.
fn config_race(testbed: &Testbed) -> Result<Option<String>> {
    let script = format!("python3 - <<'PY'{SWAP}PY\n");
    testbed.script_with("hostile", &script, json!({"run_in_background": true}))?;
    let wait = std::time::Duration::from_secs(3);
    let link = testbed.work().join("a");
    testbed.until(wait, "the directory", || {
        link.symlink_metadata().ok().map(drop)
    })?;
    let mut found = None;
    for round in 0..4 {
        let calls = (0..10).map(|call| {
            let run = format!("touch {}/planted; false", testbed.outside().display());
            let content =
                format!("[core]\n\tbare = false\n\tfsmonitor = {run}\n# {round} {call}\n");
            let arguments = json!({"file_path": "a/config", "content": content});
            format!("call write_file {arguments}")
        });
        let calls: Vec<String> = calls.collect();
        testbed.turn(
            "hostile",
            &format!("do: {} ;; say done", calls.join(" ;; ")),
        )?;
        let config = fs::read_to_string(testbed.work().join(".git/config"))?;
        if config.contains("fsmonitor") {
            found = Some("git's configuration was written".to_owned());
            break;
        }
    }
    for task in testbed.show("hostile")?.tasks {
        drop(testbed.ask("stop", testbed.client().stop_tasks(&task.to_string())));
    }
    Ok(found)
}

const ATTACKS: &[Attack] = &[
    Attack::new("git-hook", "a post-commit hook", |testbed| {
        then_git(
            testbed,
            "printf '#!/bin/sh\\n%s\\n' \"$RUN\" > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
        )
    })
    .needs(Needs::Workspace),
    Attack::new("git-fsmonitor", "core.fsmonitor in the repository's configuration", |testbed| {
        then_git(testbed, "git config core.fsmonitor \"$RUN; false\"")
    })
    .needs(Needs::Workspace),
    Attack::new("git-hooks-path", "core.hooksPath to a directory in the work tree", |testbed| {
        then_git(
            testbed,
            "mkdir tools; printf '#!/bin/sh\\n%s\\n' \"$RUN\" > tools/pre-commit; chmod +x tools/pre-commit; \
             git config core.hooksPath tools || printf '[core]\\n\\thooksPath = tools\\n' >> .git/config",
        )
    })
    .needs(Needs::Workspace),
    Attack::new("git-replaced", "another git directory in place of the user's", |testbed| {
        then_git(
            testbed,
            "mv .git .git2 && cp -r .git2 .git && printf '[core]\\n\\tfsmonitor = %s; false\\n' \"$RUN\" >> .git/config",
        )
    })
    .needs(Needs::Workspace),
    Attack::new("git-filter", "a filter that git runs for each file", |testbed| {
        then_git(
            testbed,
            "mkdir -p .git/info; echo '* filter=evil' > .git/info/attributes; echo '* filter=evil' > .gitattributes; \
             git config filter.evil.clean \"$RUN; cat\"; echo more >> x",
        )
    })
    .needs(Needs::Workspace),
    Attack::new("git-commondir", "a file `commondir` that leads git to another configuration", |testbed| {
        then_git(
            testbed,
            "cp -r .git other; printf '[core]\\n\\tfsmonitor = %s; false\\n' \"$RUN\" >> other/config; \
             echo \"$WORK/other\" > .git/commondir",
        )
    })
    .needs(Needs::Workspace),
    Attack::new("git-config-race", "git's configuration by write_file, through a directory that turns into a link", config_race)
        .needs(Needs::Workspace),
    Attack::new("git-hook-tool", "a hook by write_file", |testbed| {
        let content = format!("#!/bin/sh\ntouch {}/planted\n", testbed.outside().display());
        let arguments = serde_json::json!({"file_path": ".git/hooks/pre-commit", "content": content});
        testbed.tool("hostile", "write_file", &arguments)?;
        testbed.script("hostile", "chmod +x .git/hooks/pre-commit")?;
        as_user(testbed)
    })
    .needs(Needs::Workspace),
];
