//! What a run needs from the machine, and a separate disk for the state directory. Mounts are made in the run's
//! own mount namespace: when its last process is gone, so are they, loop devices included.

use crate::lab::spec::Spec;
use crate::lab::testbed::{Result, Stuck, Testbed, lock};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Nothing,
    Mounts,
    LoopDevices,
    Strace,
}

/// Marks that the mount namespace exists.
const ALONE: &str = "LAB_ALONE";

impl Need {
    /// What is missing.
    pub fn missing(self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Mounts => needs(&[("unshare", &["--mount", "true"])]),
            Self::LoopDevices => {
                let missing = needs(&[("unshare", &["--mount", "true"]), ("mkfs.ext4", &["-V"])]);
                let has_loop = Path::new("/dev/loop-control").exists();
                missing.or_else(|| (!has_loop).then(|| "there are no loop devices".to_owned()))
            }
            Self::Strace => needs(&[("strace", &["-o", "/dev/null", "true"])]).or_else(|| {
                let is_root = rustix::process::getuid().is_root();
                (!is_root).then(|| "only root may trace the daemon".to_owned())
            }),
        }
    }
}

fn needs(commands: &[(&str, &[&str])]) -> Option<String> {
    commands.iter().find_map(|(program, args)| {
        let mut command = Command::new(program);
        command.args(*args).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        match command.status() {
            Ok(status) if status.success() => None,
            Ok(_) => Some(format!("`{program}` is not permitted; root is needed")),
            Err(_) => Some(format!("there is no `{program}`")),
        }
    })
}

/// If a run needs mounts: continues in its own mount namespace. To be called before anything else.
pub fn alone(spec: &Spec) -> std::io::Result<()> {
    let mounts = matches!(
        super::need(&spec.scenario),
        Need::Mounts | Need::LoopDevices
    );
    if !mounts || std::env::var_os(ALONE).is_some() {
        return Ok(());
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "--"]);
    command
        .arg(std::env::current_exe()?)
        .args(std::env::args_os().skip(1));
    Err(command.env(ALONE, "1").exec())
}

/// Starts a child that the caller waits for: the reaper must not reap it.
pub fn spawn(testbed: &Testbed, command: &mut Command) -> Result<Child> {
    let mut waited_for = lock(&testbed.waited_for);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    waited_for.insert(child.id());
    Ok(child)
}

/// Waits for its end.
pub fn wait(testbed: &Testbed, child: Child) -> Result<Output> {
    let pid = child.id();
    let output = child.wait_with_output();
    lock(&testbed.waited_for).remove(&pid);
    Ok(output?)
}

/// Runs a command to its end; an error contains its output.
pub fn run(testbed: &Testbed, program: &str, args: &[&str]) -> Result<()> {
    let child = spawn(
        testbed,
        Command::new(program).args(args).stderr(Stdio::piped()),
    )?;
    let output = wait(testbed, child)?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(Stuck::Wrong(format!("{program} {args:?}: {}", said.trim())))
        }
    }
}

fn text(path: &Path) -> Result<&str> {
    let text = path.to_str();
    text.ok_or_else(|| Stuck::Wrong(format!("{} is not UTF-8", path.display())))
}

/// Mounts a small file system in memory on the state directory.
pub fn small(testbed: &Testbed, size: &str) -> Result<()> {
    let home = testbed.home();
    let config = fs::read(home.join("config.toml"))?;
    let size = format!("size={size}");
    run(
        testbed,
        "mount",
        &["-t", "tmpfs", "-o", &size, "lab", text(&home)?],
    )?;
    Ok(fs::write(home.join("config.toml"), config)?)
}

/// A disk in a file: ext4 on a loop device, mounted on the state directory.
pub struct Disk {
    image: PathBuf,
    dir: PathBuf,
}

impl Disk {
    /// With this many bytes.
    pub fn make(testbed: &Testbed, size: u64) -> Result<Self> {
        let disk = Self {
            image: testbed.root.join("disk.img"),
            dir: testbed.home(),
        };
        fs::File::create(&disk.image)?.set_len(size)?;
        run(testbed, "mkfs.ext4", &["-q", "-F", text(&disk.image)?])?;
        let config = fs::read(disk.dir.join("config.toml"))?;
        disk.mount(testbed)?;
        fs::write(disk.dir.join("config.toml"), config)?;
        // The setup of the disk counts as done long ago.
        run(testbed, "sync", &["-f", text(&disk.dir)?])?;
        Ok(disk)
    }

    pub fn mount(&self, testbed: &Testbed) -> Result<()> {
        run(
            testbed,
            "mount",
            &["-o", "loop", text(&self.image)?, text(&self.dir)?],
        )
    }

    /// To be called when no process uses it any more.
    pub fn unmount(&self, testbed: &Testbed) -> Result<()> {
        run(testbed, "umount", &[text(&self.dir)?])
    }
}
