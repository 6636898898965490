//! The program of a task: started in its own process group, in the task's cgroup, with its limits and its sandbox.

use super::gate::{self, Gate};
use super::owner;
use super::pump::Pump;
use crate::cgroup::Cgroup;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::memory;
use crate::task::{Confined, Order, TaskDir};
use agentd_failpoint as failpoint;
use agentd_sandbox::{Network, Program, Started};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getrlimit, kill_process, setrlimit,
    waitid,
};
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

/// A running program.
pub struct Leader {
    /// The program itself, or the first process of its sandbox, which ends with the program.
    pub identity: Identity,
    /// The pipes of its output: stdout first.
    pub pumps: Vec<Pump>,
    /// `None` without a sandbox.
    pub sandbox: Option<Started>,
    /// Closed when the program has ended: no process can use it any more.
    pub gate: Option<Gate>,
}

struct Streams {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// Starts the program. stdout and stderr share one pipe, which keeps the sequence of the output, unless
/// [`Order::errors_apart`] asks for separate files.
pub fn start(order: &Order, task_dir: &TaskDir, cgroup: Option<&Cgroup>) -> Result<Leader> {
    let (streams, pumps) = match order.owner {
        Some(_) => attached(order, task_dir)?,
        None => kept(order, task_dir)?,
    };
    let bounds = Bounds::of(order, cgroup);
    let confined = order.confined.as_deref();
    let confined = confined.filter(|_| !failpoint::injected_bug("commands_unconfined"));
    let (pid, mut sandbox) = match confined {
        None => (plain(order, streams, bounds)?.id(), None),
        Some(confined) => {
            let sandbox = sandboxed(order, confined, streams, bounds)?;
            (sandbox.pid(), Some(sandbox))
        }
    };
    // Only this process can reap it, so its pid cannot have been reused.
    let identity = match Identity::of(pid) {
        Ok(identity) => identity,
        // The error means "not started", so a process that may be running must be killed first.
        Err(error) => {
            end(pid, cgroup)?;
            return Err(error);
        }
    };
    let hosts = confined.map_or(&[][..], |confined| &confined.hosts);
    let listener = sandbox.as_mut().and_then(Started::gate);
    Ok(Leader {
        identity,
        pumps,
        sandbox,
        // If the gate cannot be opened, the program has no network.
        gate: listener.and_then(|listener| Gate::open(listener, hosts).ok()),
    })
}

/// The output goes to files.
fn kept(order: &Order, task_dir: &TaskDir) -> Result<(Streams, Vec<Pump>)> {
    let (reader, writer) = io::pipe().map_err(no_streams)?;
    let mut pumps = vec![Pump::new(reader, &task_dir.output(), order)?];
    let errors = match order.errors_apart {
        true => {
            let (reader, writer) = io::pipe().map_err(no_streams)?;
            pumps.push(Pump::new(reader, &task_dir.errors(), order)?);
            writer
        }
        false => writer.try_clone().map_err(no_streams)?,
    };
    let streams = Streams {
        stdin: stdin(order).map_err(no_streams)?,
        stdout: writer.into(),
        stderr: errors.into(),
    };
    Ok((streams, pumps))
}

/// stdin and stdout are the pipes of the owner, which are this process's stderr and stdout; only stderr goes to a file. This
/// process gives them up, so that each side sees when the other has closed its end.
fn attached(order: &Order, task_dir: &TaskDir) -> Result<(Streams, Vec<Pump>)> {
    let (reader, writer) = io::pipe().map_err(no_streams)?;
    let pumps = vec![Pump::new(reader, &task_dir.errors(), order)?];
    let (stdin, stdout) = owner::take_pipes().map_err(no_streams)?;
    let streams = Streams {
        stdin,
        stdout,
        stderr: writer.into(),
    };
    Ok((streams, pumps))
}

fn plain(order: &Order, streams: Streams, bounds: Bounds) -> Result<Child> {
    let mut command = Command::new(&order.program);
    command
        .args(&order.args)
        .env_clear()
        .envs(&order.env)
        .current_dir(&order.cwd)
        .stdin(streams.stdin)
        .stdout(streams.stdout)
        .stderr(streams.stderr)
        .process_group(0);
    let prepare = move || {
        bounds.enter()?;
        bounds.limit()
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
    command.spawn().map_err(|source| Error::CannotStart {
        program: order.program.clone(),
        source,
    })
}

/// Kills and reaps a child that was started, with everything in its cgroup.
fn end(pid: u32, cgroup: Option<&Cgroup>) -> Result<()> {
    let Some(child) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Ok(());
    };
    kill_process(child, Signal::KILL).map_err(|errno| Error::CannotSignal {
        pid,
        source: errno.into(),
    })?;
    if let Some(cgroup) = cgroup {
        cgroup.kill();
    }
    loop {
        match waitid(WaitId::Pid(child), WaitIdOptions::EXITED) {
            Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(errno) => {
                let source = errno.into();
                return Err(Error::CannotWait { pid, source });
            }
        }
    }
}

fn sandboxed(
    order: &Order,
    confined: &Confined,
    streams: Streams,
    bounds: Bounds,
) -> Result<Started> {
    let Confined {
        policy,
        is_read_only,
        hosts,
    } = confined;
    let mut policy = policy.clone();
    if failpoint::injected_bug("hosts_unlisted") && matches!(policy.network, Network::Gate { .. }) {
        policy.network = Network::On;
    }
    if failpoint::injected_bug("setuid_allowed") {
        policy.is_own_program = true;
    }
    let mut env = order.env.clone();
    gate::variables(&policy, hosts, &mut env);
    let program = Program {
        path: order.program.clone(),
        args: order.args.clone(),
        env,
        cwd: order.cwd.clone(),
        stdin: streams.stdin,
        stdout: streams.stdout,
        stderr: streams.stderr,
    };
    let is_list = matches!(policy.network, Network::Gate { .. });
    let has_namespaces = || agentd_sandbox::support().namespaces.is_ok();
    // A list of hosts needs namespaces.
    let started = match *is_read_only && !is_list && !has_namespaces() {
        true => agentd_sandbox::start_without_namespaces(&policy, program, || {
            bounds.enter()?;
            bounds.limit()
        }),
        false => agentd_sandbox::start(&policy, program, || bounds.enter(), || bounds.limit()),
    };
    started.map_err(|source| Error::CannotConfine {
        missing: missing(),
        source: Box::new(source),
    })
}

fn missing() -> String {
    match agentd_sandbox::support().namespaces {
        Ok(()) => String::new(),
        Err(missing) => format!("; {missing}; or give the agent `sandbox: full-access`"),
    }
}

/// A file in memory: a program that reads slowly or not at all does not block the shim.
fn stdin(order: &Order) -> io::Result<OwnedFd> {
    let Some(text) = &order.stdin else {
        return Ok(File::open("/dev/null")?.into());
    };
    let mut file = File::from(memfd_create("stdin", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// The cgroup and the limits of the program. They are set before it runs, so that it never runs without them.
struct Bounds {
    door: Option<OwnedFd>,
    limits: [(Resource, Option<Rlimit>); 2],
}

impl Bounds {
    fn of(order: &Order, cgroup: Option<&Cgroup>) -> Self {
        let limits = order.limits;
        if let (Some(cgroup), Some(processes)) = (cgroup, limits.processes) {
            cgroup.limit("pids.max", processes);
        }
        let data = limits.memory_bytes.filter(|bytes| {
            let shared = cgroup.is_some_and(|cgroup| cgroup.limit("memory.max", *bytes));
            !shared
        });
        let set = |resource, most: Option<u64>| most.map(|most| within(resource, most));
        Self {
            door: cgroup
                .and_then(|cgroup| cgroup.door().ok())
                .map(OwnedFd::from),
            limits: [
                (Resource::Nofile, set(Resource::Nofile, limits.open_files)),
                // Without a limit of its own it gets the one that this process had.
                (
                    Resource::Data,
                    set(Resource::Data, data).or_else(memory::original),
                ),
            ],
        }
    }

    /// Joins the cgroup. An error is ignored: a task can also be ended without a cgroup, only less efficiently.
    fn enter(&self) -> io::Result<()> {
        if let Some(door) = &self.door {
            let _ = rustix::io::write(door, b"0");
        }
        Ok(())
    }

    fn limit(&self) -> io::Result<()> {
        for (resource, limit) in &self.limits {
            if let Some(limit) = limit {
                setrlimit(*resource, *limit)?;
            }
        }
        Ok(())
    }
}

/// At most our own hard limit.
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
        what: "cannot create the streams of the program",
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat;

    #[test]
    fn a_program_that_cannot_be_identified_does_not_keep_running() {
        let mut command = Command::new("/bin/sh");
        let child = command
            .args(["-c", "exec sleep 600"])
            .process_group(0)
            .spawn();
        let pid = child.unwrap().id();
        end(pid, None).unwrap();
        assert_eq!(stat::read(pid).unwrap(), None);
    }
}
