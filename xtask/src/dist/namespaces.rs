//! Commands on another root, in namespaces of their own: their mounts are seen nowhere else, they have no network, and
//! every process that they leave behind ends with them.

use std::path::Path;
use std::process::Command;

use crate::tree;

/// Makes the first argument the root of the file system, and runs the rest there. `pivot_root` and not `chroot`: the kernel
/// creates no user namespaces for processes in a `chroot`, and tools run in such namespaces.
pub const SYSTEM: &str = include_str!("system.sh");
/// The same for the root of an image, which has no program but its own. The rest runs in a `chroot`, as a user without
/// a name.
pub const IMAGE: &str = include_str!("image.sh");

/// What no command takes; a hang ends here.
const SECONDS: &str = "900";

const NAMESPACES: [&str; 8] = [
    "--mount",
    "--propagation",
    "private",
    "--pid",
    "--net",
    "--fork",
    "--kill-child",
    "--",
];

/// Why nothing can be tested here, if so.
pub fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root may change the root of the file system".to_owned());
    }
    let programs = ["timeout", "unshare", "mount", "pivot_root", "chroot"];
    if let Some(name) = programs.iter().find(|name| !tree::has_program(name)) {
        return Some(format!("{name} is not installed"));
    }
    let tried = Command::new("unshare")
        .args(NAMESPACES)
        .args(["mount", "-t", "proc", "proc", "/proc"])
        .output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr);
            Some(format!("namespaces cannot be created: {}", why.trim()))
        }
        Err(error) => Some(format!("namespaces cannot be created: {error}")),
    }
}

/// A command on another root, which has these variables and no others.
pub fn command(script: &str, root: &Path, env: &[(&str, &str)], args: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command
        .args([SECONDS, "unshare"])
        .args(NAMESPACES)
        .args(["sh", "-c", script, "sh"])
        .arg(root)
        .args(args)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LANG", "C.UTF-8")
        .envs(env.iter().copied());
    command
}
