//! What git would run, as the user, when the user works in the tree afterwards.

use super::attack::{Attack, Needs, Theme};
use super::world::World;
use crate::lab::world::Result;

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
    Attack::new("git-hook-tool", "a hook by write_file", |world| {
        let content = format!("#!/bin/sh\ntouch {}/planted\n", world.outside().display());
        let arguments = serde_json::json!({"file_path": ".git/hooks/pre-commit", "content": content});
        world.tool("hostile", "write_file", &arguments)?;
        world.script("hostile", "chmod +x .git/hooks/pre-commit")?;
        as_user(world)
    })
    .needs(Needs::Workspace),
];
