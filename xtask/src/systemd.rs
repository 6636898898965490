//! `cargo xtask systemd`: the daemon as a service of a real, throw-away `systemd --user`.
//!
//! The service manager takes over the cgroup in which it starts, with every process in it. So it starts as the only
//! process of a new cgroup, in namespaces of its own for cgroups, processes and mounts: nothing outside can be moved,
//! seen or ended by it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::child::{self, Verdict};
use crate::tree;

/// What runs inside the namespaces.
const SCRIPT: &str = include_str!("systemd.sh");
const BUDGET: Duration = Duration::from_secs(1800);
/// Where the units of users' service managers are, below the root.
const USER_UNITS: [&str; 3] = [
    "etc/systemd/user",
    "usr/lib/systemd/user",
    "lib/systemd/user",
];
const PROGRAMS: [&str; 5] = ["systemd", "systemctl", "dbus-daemon", "unshare", "mount"];

#[derive(clap::Args)]
pub struct Args {}

/// `false`: a check failed.
pub fn run(_: &Args) -> Result<bool> {
    let cgroups = match possible() {
        Ok(cgroups) => cgroups,
        Err(why) => {
            println!("skipped: {why}");
            return Ok(true);
        }
    };
    let root = tree::root()?;
    let mut build = tree::cargo(&root);
    // Built like the tests: after them there is nothing left to build.
    build.args(["test", "--workspace", "--no-run", "--quiet"]);
    if !build.status().context("cannot start cargo")?.success() {
        return Ok(false);
    }
    let program = tree::target(&root).join("debug").join("agentd");
    let suite = suite_program(&root)?;
    let dir = PathBuf::from(format!("/tmp/agentd-systemd-{}", std::process::id()));
    let cgroup = cgroups.join(format!("agentd-xtask-{}", std::process::id()));
    fs::create_dir(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let checked = match fs::create_dir(&cgroup) {
        Ok(()) => check(&[&program, &dir, &suite], &dir, &cgroup),
        Err(error) => {
            println!("skipped: no cgroup can be created: {error}");
            Ok(true)
        }
    };
    remove_cgroup(&cgroup);
    match checked {
        Ok(true) => fs::remove_dir_all(&dir).context("the directory of the run stays")?,
        _ => println!("kept: {}", dir.display()),
    }
    checked
}

/// The built program of the daemon's tests.
fn suite_program(root: &Path) -> Result<PathBuf> {
    let mut find = tree::cargo(root);
    find.args(["test", "--workspace", "--test", "daemon", "--no-run"]);
    let output = find.env("CARGO_TERM_COLOR", "never").output();
    let output = output.context("cannot start cargo")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "the tests of the daemon cannot be built:\n{said}"
    );
    let path = executable(&said).context("cargo does not name the program of the tests")?;
    Ok(root.join(path))
}

/// The path in cargo's line `Executable NAME (PATH)`.
fn executable(said: &str) -> Option<&str> {
    let mut lines = said.lines().map(str::trim);
    let rest = lines.find_map(|line| line.strip_prefix("Executable "))?;
    rest.split_once('(')?.1.strip_suffix(')')
}

/// Where cgroups can be created, or why nothing can be checked here.
fn possible() -> Result<PathBuf, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("only root may start a throw-away service manager".to_owned());
    }
    let missing = PROGRAMS.iter().find(|name| !tree::has_program(name));
    if let Some(name) = missing {
        return Err(format!("{name} is not installed"));
    }
    // `dbus-daemon` may be there for the system's bus alone. Without a bus of the user there are no scopes to check.
    if !has_user_unit(Path::new("/"), "dbus.socket") {
        return Err("the user's dbus.socket is not installed (dbus-user-session)".to_owned());
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let found = cgroup2(&mounts);
    found.ok_or_else(|| "cgroup version 2 is not mounted".to_owned())
}

fn has_user_unit(root: &Path, name: &str) -> bool {
    let mut dirs = USER_UNITS.iter().map(|dir| root.join(dir));
    dirs.any(|dir| dir.join(name).exists())
}

fn cgroup2(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (at, kind) = (fields.nth(1)?, fields.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(at))
    })
}

/// Runs the script with these arguments.
fn check(args: &[&Path], dir: &Path, cgroup: &Path) -> Result<bool> {
    let script = dir.join("check.sh");
    fs::write(&script, SCRIPT).context("cannot write the script")?;
    // The first process of the new pid namespace joins the cgroup, alone. Only then does the cgroup become the root of
    // its namespace. The processes of this tool stay outside.
    let enter = "echo 0 > \"$1/cgroup.procs\" && shift && exec unshare --cgroup -- \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "--pid", "--fork"])
        .args([
            "--kill-child",
            "--mount-proc",
            "--",
            "sh",
            "-c",
            enter,
            "sh",
        ])
        .args([cgroup, Path::new("sh"), script.as_path()])
        .args(args)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let outcome = child::run_within(command, BUDGET, None)?;
    match outcome.verdict {
        Verdict::Passed => return Ok(true),
        Verdict::Failed(how) => println!("failed: {how}"),
        Verdict::OverBudget => println!("failed: it took longer than {} s", BUDGET.as_secs()),
    }
    Ok(false)
}

/// Removes the cgroup of the run, with those below it. Its processes ended with their namespace.
fn remove_cgroup(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_cgroup(&entry.path());
        }
    }
    if dir.exists()
        && let Err(error) = fs::remove_dir(dir)
    {
        println!("{} is left: {error}", dir.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bus_of_users_is_a_unit_of_their_manager() {
        let root = std::env::temp_dir().join(format!("xtask-units-{}", std::process::id()));
        let units = root.join("usr/lib/systemd/user");
        fs::create_dir_all(&units).unwrap();
        let before = has_user_unit(&root, "dbus.socket");
        fs::write(units.join("dbus.socket"), "").unwrap();
        let after = has_user_unit(&root, "dbus.socket");
        fs::remove_dir_all(&root).unwrap();
        assert_eq!((before, after), (false, true));
    }

    #[test]
    fn cargo_names_the_program_of_the_tests() {
        let said = "    Finished `test` profile [unoptimized] target(s) in 0.1s\n  \
                    Executable tests/daemon/main.rs (target/debug/deps/daemon-1a)\n";
        assert_eq!(executable(said), Some("target/debug/deps/daemon-1a"));
        assert_eq!(executable("error: could not compile\n"), None);
    }

    #[test]
    fn the_second_version_of_cgroups_is_found() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(cgroup2(mounts), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(cgroup2("proc /proc proc rw 0 0\n"), None);
    }
}
