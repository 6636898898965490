//! Rules about shell commands, circumvented by writing the command in another way.

use super::attack::{Attack, Needs, Theme};
use super::testbed::Testbed;
use crate::lab::testbed::Result;
use std::fs;

pub const THEME: Theme = Theme {
    name: "rules",
    is_about_sandbox: false,
    attacks: ATTACKS,
};

/// A command that matches a deny rule for `rm *`, however it is written.
fn removes(testbed: &Testbed, command: &str) -> Result<Option<String>> {
    fs::write(testbed.work().join("list"), "precious\n")?;
    testbed.shell("ruled", command)?;
    let is_gone = !testbed.work().join("precious").exists();
    Ok(is_gone.then(|| "a denied command ran".to_owned()))
}

/// A line that begins like an allowed one, but does more.
fn adds(testbed: &Testbed, command: &str) -> Result<Option<String>> {
    testbed.shell("careful", command)?;
    Ok(testbed.made(&testbed.work().join("made")))
}

const ATTACKS: &[Attack] = &[
    Attack::new("deny-quotes", "r''m", |testbed| {
        removes(testbed, "r''m precious")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-path", "the program by its path", |testbed| {
        removes(testbed, "/bin/rm precious")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-list", "after another command", |testbed| {
        removes(testbed, "true && rm precious")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-substitution", "in a substitution", |testbed| {
        removes(testbed, "echo $(rm precious)")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-env", "by env", |testbed| {
        removes(testbed, "env X=1 rm precious")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-shell", "by sh -c", |testbed| {
        removes(testbed, "sh -c 'rm precious'")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-xargs", "by xargs", |testbed| {
        removes(testbed, "xargs -a list rm")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-find", "by find -exec", |testbed| {
        removes(testbed, "find . -name precious -exec rm {} +")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-variable", "by a variable", |testbed| {
        removes(testbed, "x=rm; $x precious")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-eval", "by eval", |testbed| {
        removes(testbed, "eval 'r'\"m\" precious")
    })
    .needs(Needs::Workspace),
    Attack::new(
        "deny-plus",
        "by a shell with an option that is switched off",
        |testbed| removes(testbed, "bash +x -c 'rm precious'"),
    )
    .needs(Needs::Workspace),
    Attack::new("deny-trace", "in the prompt of a trace", |testbed| {
        removes(testbed, "PS4='$(rm precious)'; set -x; true")
    })
    .needs(Needs::Workspace),
    Attack::new("deny-escape", "with a backslash", |testbed| {
        removes(testbed, "r\\m precious")
    })
    .needs(Needs::Workspace),
    Attack::new(
        "allow-list",
        "an allowed command and another one",
        |testbed| adds(testbed, "git status; touch made"),
    )
    .needs(Needs::Workspace),
    Attack::new(
        "allow-substitution",
        "a substitution in an allowed command",
        |testbed| adds(testbed, "git status $(touch made)"),
    )
    .needs(Needs::Workspace),
    Attack::new(
        "allow-redirection",
        "an allowed command that writes a file",
        |testbed| adds(testbed, "git status > made"),
    )
    .needs(Needs::Workspace),
    Attack::new("allow-newline", "a second line", |testbed| {
        adds(testbed, "git status\ntouch made")
    })
    .needs(Needs::Workspace),
    Attack::new(
        "allow-background",
        "an allowed command in the background",
        |testbed| adds(testbed, "git status & touch made"),
    )
    .needs(Needs::Workspace),
];
