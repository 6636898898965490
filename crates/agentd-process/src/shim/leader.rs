//! The program of a task: started in a group of its own, in the task's cgroup, within its limits.

use super::pump::Pump;
use crate::cgroup::Cgroup;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::task::{Folder, Order};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// Starts it. Its two streams are one pipe, so that what they hold stays in order, unless they are to be
/// kept apart.
pub fn start(
    order: &Order,
    folder: &Folder,
    cgroup: Option<&Cgroup>,
) -> Result<(Identity, Vec<Pump>)> {
    let (reader, writer) = io::pipe().map_err(no_streams)?;
    let mut pumps = vec![Pump::new(reader, &folder.output(), order)?];
    let errors = match order.errors_apart {
        true => {
            let (reader, writer) = io::pipe().map_err(no_streams)?;
            pumps.push(Pump::new(reader, &folder.errors(), order)?);
            writer
        }
        false => writer.try_clone().map_err(no_streams)?,
    };
    let mut command = Command::new(&order.program);
    command
        .args(&order.args)
        .env_clear()
        .envs(&order.env)
        .current_dir(&order.cwd)
        .stdin(stdin(order).map_err(no_streams)?)
        .stdout(writer)
        .stderr(errors)
        .process_group(0);
    confine(&mut command, order, cgroup);
    let mut child = command.spawn().map_err(|source| Error::CannotStart {
        program: order.program.clone(),
        source,
    })?;
    match Identity::of(child.id()) {
        Ok(identity) => Ok((identity, pumps)),
        // It was not started, then: nobody may say so of one that runs.
        Err(error) => {
            child
                .kill()
                .and_then(|()| child.wait())
                .map_err(no_streams)?;
            Err(error)
        }
    }
}

/// A file in memory: whoever reads slowly or not at all holds nobody up.
fn stdin(order: &Order) -> io::Result<Stdio> {
    let Some(text) = &order.stdin else {
        return Ok(Stdio::null());
    };
    let mut file = File::from(memfd_create("stdin", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// What the program must have before it runs: it cannot be given to it later without a gap.
fn confine(command: &mut Command, order: &Order, cgroup: Option<&Cgroup>) {
    let limits = order.limits;
    if let (Some(cgroup), Some(processes)) = (cgroup, limits.processes) {
        cgroup.limit("pids.max", processes);
    }
    let memory = limits.memory_bytes.filter(|bytes| {
        let shared = cgroup.is_some_and(|cgroup| cgroup.limit("memory.max", *bytes));
        !shared
    });
    let wanted = [
        (Resource::Nofile, limits.open_files),
        (Resource::Data, memory),
    ];
    let wanted = wanted.map(|(resource, most)| (resource, most.map(|most| within(resource, most))));
    let door = cgroup.and_then(|cgroup| cgroup.door().ok());
    let prepare = move || {
        if let Some(door) = &door {
            // Out of the cgroup it can be ended as well, with more work.
            let _ = rustix::io::write(door, b"0");
        }
        for (resource, limit) in &wanted {
            if let Some(limit) = limit {
                setrlimit(*resource, *limit)?;
            }
        }
        Ok(())
    };
    #[expect(
        unsafe_code,
        reason = "limits and cgroup of the program, not of the shim"
    )]
    // SAFETY: between fork and exec the closure makes only the system calls write and setrlimit, on
    // what was prepared before; it takes no lock and allocates nothing.
    unsafe {
        command.pre_exec(prepare);
    }
}

/// As much as we may have ourselves at most.
fn within(resource: Resource, most: u64) -> Rlimit {
    let most = getrlimit(resource)
        .maximum
        .map_or(most, |ours| ours.min(most));
    Rlimit {
        current: Some(most),
        maximum: Some(most),
    }
}

fn no_streams(source: io::Error) -> Error {
    Error::CannotSetUp {
        what: "cannot make the streams of the program",
        source,
    }
}
