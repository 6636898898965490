//! Rules about shell commands, got around by writing the command in another way.

use super::attack::{Attack, Needs, Theme};
use super::world::World;
use crate::lab::world::Result;
use std::fs;

pub const THEME: Theme = Theme {
    name: "rules",
    is_about_sandbox: false,
    attacks: ATTACKS,
};

/// A command that a deny rule for `rm *` is about, however it is written.
fn removes(world: &World, command: &str) -> Result<Option<String>> {
    fs::write(world.work().join("list"), "precious\n")?;
    world.shell("ruled", command)?;
    let is_gone = !world.work().join("precious").exists();
    Ok(is_gone.then(|| "a denied command ran".to_owned()))
}

/// A line that begins like an allowed one, and does more.
fn adds(world: &World, command: &str) -> Result<Option<String>> {
    world.shell("careful", command)?;
    Ok(world.made(&world.work().join("made")))
}

const ATTACKS: &[Attack] = &[
    Attack::new("deny-quotes", "r''m", |world| {
        removes(world, "r''m precious")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-path", "the program by its path", |world| {
        removes(world, "/bin/rm precious")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-list", "behind another command", |world| {
        removes(world, "true && rm precious")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-substitution", "in a substitution", |world| {
        removes(world, "echo $(rm precious)")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-env", "by env", |world| {
        removes(world, "env X=1 rm precious")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-shell", "by sh -c", |world| {
        removes(world, "sh -c 'rm precious'")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-xargs", "by xargs", |world| {
        removes(world, "xargs -a list rm")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-find", "by find -exec", |world| {
        removes(world, "find . -name precious -exec rm {} +")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-variable", "by a variable", |world| {
        removes(world, "x=rm; $x precious")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-eval", "by eval", |world| {
        removes(world, "eval 'r'\"m\" precious")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-escape", "with a backslash", |world| {
        removes(world, "r\\m precious")
    })
    .needs(Needs::Workspace),
    Attack::new(
        "allow-list",
        "an allowed command and another one",
        |world| adds(world, "git status; touch made"),
    )
    .needs(Needs::Workspace),
    Attack::new(
        "allow-substitution",
        "a substitution in an allowed command",
        |world| adds(world, "git status $(touch made)"),
    )
    .needs(Needs::Workspace),
    Attack::new(
        "allow-redirection",
        "an allowed command that writes a file",
        |world| adds(world, "git status > made"),
    )
    .needs(Needs::Workspace),
    Attack::new("allow-newline", "a second line", |world| {
        adds(world, "git status\ntouch made")
    })
    .needs(Needs::Workspace),
    Attack::new(
        "allow-background",
        "an allowed command in the background",
        |world| adds(world, "git status & touch made"),
    )
    .needs(Needs::Workspace),
];
