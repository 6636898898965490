//! What git would run, as the user, when the user works in the tree afterwards.

use super::attack::{Attack, Needs, Theme};
use super::world::World;
use crate::lab::world::Result;
use serde_json::json;
use std::fs;

pub const THEME: Theme = Theme {
    name: "git",
    is_about_sandbox: true,
    attacks: ATTACKS,
};

/// Runs this as a tool, then git as the user.
fn then_git(world: &World, body: &str) -> Result<Option<String>> {
    world.script(
        "hostile",
        &format!("export RUN=\"touch $OUTSIDE/planted\"\n{body}"),
    )?;
    as_user(world)
}

fn as_user(world: &World) -> Result<Option<String>> {
    let script =
        "git status; git add -A; git commit -qm two --allow-empty; git log -1; git diff HEAD~1";
    let _whatever = world
        .command("sh")
        .args(["-c", script])
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()?;
    Ok(world.made(&world.outside().join("planted")))
}

/// Puts a folder and a link to git's own in each other's place, and holds each for a moment.
const SWAP: &str = r#"
import os, time
os.makedirs('a', exist_ok=True)
until = time.time() + 20
while time.time() < until:
    os.rename('a', 'b'); os.symlink('.git', 'a'); time.sleep(0.002)
    os.unlink('a'); os.rename('b', 'a'); time.sleep(0.001)
"#;

/// A configuration of git's by write_file, while the folder that it names turns into git's.
fn config_race(world: &World) -> Result<Option<String>> {
    let script = format!("python3 - <<'PY'{SWAP}PY\n");
    world.script_with("hostile", &script, json!({"run_in_background": true}))?;
    let wait = std::time::Duration::from_secs(3);
    let link = world.work().join("a");
    world.until(wait, "the folder", || {
        link.symlink_metadata().ok().map(drop)
    })?;
    let mut found = None;
    for round in 0..4 {
        let calls = (0..10).map(|call| {
            let run = format!("touch {}/planted; false", world.outside().display());
            let content =
                format!("[core]\n\tbare = false\n\tfsmonitor = {run}\n# {round} {call}\n");
            let arguments = json!({"file_path": "a/config", "content": content});
            format!("call write_file {arguments}")
        });
        let calls: Vec<String> = calls.collect();
        world.turn(
            "hostile",
            &format!("do: {} ;; say done", calls.join(" ;; ")),
        )?;
        let config = fs::read_to_string(world.work().join(".git/config"))?;
        if config.contains("fsmonitor") {
            found = Some("git's configuration was written".to_owned());
            break;
        }
    }
    for task in world.show("hostile")?.tasks {
        drop(world.ask("stop", world.client().stop_tasks(&task.to_string())));
    }
    Ok(found)
}

const ATTACKS: &[Attack] = &[
    Attack::new("git-hook", "a post-commit hook", |world| {
        then_git(
            world,
            "printf '#!/bin/sh\\n%s\\n' \"$RUN\" > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
        )
    })
    .needs(Needs::Workspace),
    Attack::new("git-fsmonitor", "core.fsmonitor in the repository's configuration", |world| {
        then_git(world, "git config core.fsmonitor \"$RUN; false\"")
    })
    .needs(Needs::Workspace),
    Attack::new("git-hooks-path", "core.hooksPath to a directory in the work tree", |world| {
        then_git(
            world,
            "mkdir tools; printf '#!/bin/sh\\n%s\\n' \"$RUN\" > tools/pre-commit; chmod +x tools/pre-commit; \
             git config core.hooksPath tools || printf '[core]\\n\\thooksPath = tools\\n' >> .git/config",
        )
    })
    .needs(Needs::Workspace),
    Attack::new("git-replaced", "another git directory in place of the user's", |world| {
        then_git(
            world,
            "mv .git .git2 && cp -r .git2 .git && printf '[core]\\n\\tfsmonitor = %s; false\\n' \"$RUN\" >> .git/config",
        )
    })
    .needs(Needs::Workspace),
    Attack::new("git-filter", "a filter that git runs for each file", |world| {
        then_git(
            world,
            "mkdir -p .git/info; echo '* filter=evil' > .git/info/attributes; echo '* filter=evil' > .gitattributes; \
             git config filter.evil.clean \"$RUN; cat\"; echo more >> x",
        )
    })
    .needs(Needs::Workspace),
    Attack::new("git-commondir", "a file `commondir` that leads git to another configuration", |world| {
        then_git(
            world,
            "cp -r .git other; printf '[core]\\n\\tfsmonitor = %s; false\\n' \"$RUN\" >> other/config; \
             echo \"$WORK/other\" > .git/commondir",
        )
    })
    .needs(Needs::Workspace),
    Attack::new("git-config-race", "git's configuration by write_file, through a folder that turns into a link", config_race)
        .needs(Needs::Workspace),
    Attack::new("git-hook-tool", "a hook by write_file", |world| {
        let content = format!("#!/bin/sh\ntouch {}/planted\n", world.outside().display());
        let arguments = serde_json::json!({"file_path": ".git/hooks/pre-commit", "content": content});
        world.tool("hostile", "write_file", &arguments)?;
        world.script("hostile", "chmod +x .git/hooks/pre-commit")?;
        as_user(world)
    })
    .needs(Needs::Workspace),
];
