//! An agent that works inside another one's work tree: the outer one replaces what the inner one's sandbox is built from.

use super::attack::{Attack, Evidence, Needs, Theme};
use super::testbed::Testbed;
use crate::lab::testbed::Result;
use agentd_core::spec::AgentSpec;
use std::fs;
use std::path::PathBuf;

pub const THEME: Theme = Theme {
    name: "nested",
    is_about_sandbox: true,
    attacks: ATTACKS,
};

/// The user creates an agent in a directory of the outer agent's work tree. What it may use besides is given.
fn inner(
    testbed: &Testbed,
    name: &str,
    dir: &str,
    change: impl FnOnce(&mut AgentSpec),
) -> Result<PathBuf> {
    let cwd = testbed.work().join(dir);
    fs::create_dir_all(&cwd)?;
    let mut spec = testbed.spec();
    spec.cwd = Some(cwd.display().to_string());
    change(&mut spec);
    testbed.create_known(name, spec)?;
    Ok(cwd)
}

/// The outer agent runs this script, and then the inner one this command.
fn attack(testbed: &Testbed, name: &str, outer: &str, command: &str) -> Result<super::turns::Saw> {
    testbed.script("hostile", outer)?;
    testbed.shell(name, command)
}

fn cwd_link(testbed: &Testbed) -> Result<Evidence> {
    inner(testbed, "nested-link", "inner", |_| {})?;
    let outer = "rm -rf inner && ln -s \"$USERHOME\" inner";
    attack(testbed, "nested-link", outer, "echo owned >> .bashrc")?;
    Ok(testbed.profile_changed())
}

fn cwd_link_of_running(testbed: &Testbed) -> Result<Evidence> {
    inner(testbed, "nested-running", "inner", |_| {})?;
    // Its process runs, and has built its sandbox once.
    testbed.shell("nested-running", "true")?;
    let outer = "mv inner old && ln -s \"$USERHOME\" inner";
    attack(testbed, "nested-running", outer, "echo owned >> .bashrc")?;
    Ok(testbed.profile_changed())
}

/// The directory in its place has a `.git` that names the directory above the outer work tree as its repository.
fn cwd_directory(testbed: &Testbed) -> Result<Evidence> {
    inner(testbed, "nested-directory", "inner", |_| {})?;
    let outer = "rm -rf inner && mkdir -p inner/g && cd inner && echo 'gitdir: g' > .git && \
                 echo \"$WORK/inner/.git\" > g/gitdir && echo ../../.. > g/commondir && cp -r ../.git/HEAD g/";
    let canary = testbed.outside().join("canary");
    let command = format!("echo owned > {}", canary.display());
    attack(testbed, "nested-directory", outer, &command)?;
    Ok(testbed.outside_changed())
}

fn parent_link(testbed: &Testbed) -> Result<Evidence> {
    inner(testbed, "nested-parent", "pkg/inner", |_| {})?;
    let there = testbed.outside().join("inner");
    fs::create_dir_all(&there)?;
    let outer = "mv pkg old && ln -s \"$OUTSIDE\" pkg";
    attack(testbed, "nested-parent", outer, "touch planted")?;
    Ok(testbed.made(&there.join("planted")))
}

fn writable_link(testbed: &Testbed) -> Result<Evidence> {
    let shared = testbed.work().join("shared");
    fs::create_dir_all(&shared)?;
    let writable = shared.display().to_string();
    inner(testbed, "nested-writable", "inner", |spec| {
        spec.writable.push(writable);
    })?;
    let outer = "rmdir shared && ln -s \"$USERHOME\" shared";
    let command = format!("echo owned >> {}/.bashrc", shared.display());
    attack(testbed, "nested-writable", outer, &command)?;
    Ok(testbed.profile_changed())
}

fn readable_link(testbed: &Testbed) -> Result<Evidence> {
    let shared = testbed.work().join("shared");
    fs::create_dir_all(&shared)?;
    let readable = shared.display().to_string();
    inner(testbed, "nested-readable", "inner", |spec| {
        spec.readable.push(readable);
    })?;
    let outer = "rmdir shared && ln -s \"$OUTSIDE\" shared";
    let command = format!("cat {}/canary", shared.display());
    let saw = attack(testbed, "nested-readable", outer, &command)?;
    Ok(testbed.leaked(&saw, &testbed.words.outside))
}

/// The instructions of the inner agent are a link to a file of the user's.
fn instructions_link(testbed: &Testbed) -> Result<Evidence> {
    inner(testbed, "nested-instructions", "inner", |_| {})?;
    let word = &testbed.words.outside;
    fs::write(testbed.outside().join("private.md"), format!("{word}\n"))?;
    testbed.script("hostile", "ln -s \"$OUTSIDE/private.md\" inner/AGENTS.md")?;
    let from = testbed.model.count();
    testbed.turn("nested-instructions", "do: say ready")?;
    let requests = testbed.model.requests_since(from);
    let has_word = requests.iter().any(|it| it.body.to_string().contains(word));
    Ok(has_word.then(|| format!("the model saw {word}")))
}

const ATTACKS: &[Attack] = &[
    Attack::new(
        "nested-link",
        "the working directory of another agent, replaced by a link to the home",
        cwd_link,
    )
    .needs(Needs::Workspace)
    .alone(),
    Attack::new(
        "nested-running",
        "the same for an agent whose process runs",
        cwd_link_of_running,
    )
    .needs(Needs::Workspace)
    .alone(),
    Attack::new(
        "nested-directory",
        "the working directory of another agent, replaced by a directory with a false `.git`",
        cwd_directory,
    )
    .needs(Needs::Workspace)
    .alone(),
    Attack::new(
        "nested-parent",
        "a directory above another agent's working directory, replaced by a link",
        parent_link,
    )
    .needs(Needs::Workspace)
    .alone(),
    Attack::new(
        "nested-writable",
        "a `writable` directory of another agent, replaced by a link to the home",
        writable_link,
    )
    .needs(Needs::Workspace)
    .alone(),
    Attack::new(
        "nested-readable",
        "a `readable` directory of another agent, replaced by a link",
        readable_link,
    )
    .needs(Needs::Workspace)
    .alone(),
    Attack::new(
        "nested-instructions",
        "the instructions of another agent, replaced by a link to a file of the user's",
        instructions_link,
    )
    .needs(Needs::Workspace)
    .alone(),
];
