//! Acts as the shim in tests: it reads a job as JSON from its input, runs it, and prints the results as lines of JSON.
//! The test harness itself has many threads and cannot fork without exec.

use agentd_sandbox::{
    Ended, Error, Policy, Program, restrict_thread, start, start_without_namespaces, support,
};
use rustix::process::{
    DumpableBehavior, Gid, Pid, Uid, WaitOptions, set_child_subreaper, set_dumpable_behavior,
    waitpid,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Job {
    #[serde(default)]
    level: Level,
    /// Becomes this user and group first.
    user: Option<u32>,
    policy: Policy,
    #[serde(default)]
    program: PathBuf,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    cwd: PathBuf,
    /// For a thread: paths to read and to write.
    #[serde(default)]
    reads: Vec<PathBuf>,
    #[serde(default)]
    writes: Vec<PathBuf>,
    /// The leader may have this many open files.
    open_files: Option<u64>,
    /// The init writes its pid to this file, as it does to a cgroup.
    joins: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Level {
    #[default]
    Namespaces,
    List,
    Plain,
    Thread,
    Support,
}

fn main() -> io::Result<()> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let job: Job = serde_json::from_str(&text)?;
    // As the shim does.
    set_child_subreaper(Some(rustix::process::getpid()))?;
    if let Some(user) = job.user {
        become_user(user)?;
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    match job.level {
        Level::Thread => thread(&job),
        Level::Support => say(&supported()),
        Level::Namespaces | Level::List | Level::Plain => run(job),
    }
}

fn say(line: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn become_user(user: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

fn supported() -> Value {
    let support = support();
    let text = |result: Result<(), agentd_sandbox::Missing>| match result {
        Ok(()) => json!(true),
        Err(missing) => json!(missing.to_string()),
    };
    json!({
        "namespaces": text(support.namespaces),
        "network": text(support.network),
        "overlay": text(support.overlay),
        "landlock": support.landlock.map_err(|missing| missing.to_string()).ok(),
    })
}

fn run(job: Job) -> io::Result<()> {
    let (mut output, writer) = io::pipe()?;
    let errors = writer.try_clone()?;
    let program = Program {
        path: job.program,
        args: job.args,
        env: job.env,
        cwd: job.cwd,
        stdin: File::open("/dev/null")?.into(),
        stdout: OwnedFd::from(writer),
        stderr: OwnedFd::from(errors),
    };
    let open_files = job.open_files;
    let limit = move || {
        let Some(most) = open_files else {
            return Ok(());
        };
        let limit = rustix::process::Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        Ok(rustix::process::setrlimit(
            rustix::process::Resource::Nofile,
            limit,
        )?)
    };
    let door = job.joins.map(File::create).transpose()?;
    let enter = move || match &door {
        Some(door) => Ok(rustix::io::write(door, b"joined").map(drop)?),
        None => Ok(()),
    };
    let started = match job.level {
        Level::List => start_without_namespaces(&job.policy, program, limit),
        Level::Plain => return plain(program, &mut output),
        _ => start(&job.policy, program, enter, limit),
    };
    let started = match started {
        Ok(started) => started,
        Err(Error::Step { step, path, source }) => {
            let errno = source.raw_os_error();
            return say(&json!({
                "error": { "step": format!("{step:?}"), "path": path, "errno": errno },
                "children": waitpid(None, WaitOptions::NOHANG).is_ok(),
            }));
        }
        Err(error) => return say(&json!({ "refused": error.to_string() })),
    };
    say(&json!({ "pid": started.pid() }))?;
    let mut text = Vec::new();
    output.read_to_end(&mut text)?;
    let (code, signal) = reap(started.pid())?;
    let ended = match started.leader_ended() {
        Some(Ended::Exited(code)) => json!({ "code": code }),
        Some(Ended::Killed { signal }) => json!({ "signal": signal }),
        None => json!({ "code": code, "signal": signal, "child": true }),
    };
    let refused = started.settle();
    let output = String::from_utf8_lossy(&text);
    say(&json!({ "ended": ended, "output": output, "refused": refused }))
}

/// The same program without a sandbox: an attack must succeed there, or its test shows nothing.
fn plain(program: Program, output: &mut impl io::Read) -> io::Result<()> {
    let mut command = std::process::Command::new(program.path);
    command
        .args(program.args)
        .env_clear()
        .envs(program.env)
        .current_dir(program.cwd)
        .stdin(program.stdin)
        .stdout(program.stdout)
        .stderr(program.stderr);
    let mut child = command.spawn()?;
    drop(command);
    say(&json!({ "pid": child.id() }))?;
    let mut text = Vec::new();
    output.read_to_end(&mut text)?;
    let code = child.wait()?.code();
    let output = String::from_utf8_lossy(&text);
    say(&json!({ "ended": { "code": code }, "output": output }))
}

fn reap(pid: u32) -> io::Result<(Option<i32>, Option<i32>)> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let status = waitpid(pid, WaitOptions::empty())?;
    let status = status.map(|(_, status)| status);
    Ok((
        status.and_then(|status| status.exit_status()),
        status.and_then(|status| status.terminating_signal()),
    ))
}

fn thread(job: &Job) -> io::Result<()> {
    let tried = std::thread::scope(|scope| {
        let restricted = scope.spawn(|| {
            if let Err(error) = restrict_thread(&job.policy) {
                return json!({ "refused": error.to_string() });
            }
            let reads: Vec<Value> = job.reads.iter().map(|path| read(path)).collect();
            let writes: Vec<Value> = job.writes.iter().map(|path| write(path)).collect();
            json!({ "reads": reads, "writes": writes })
        });
        restricted.join()
    });
    let mut tried = tried.map_err(|_| io::Error::other("the thread panicked"))?;
    let others: Vec<Value> = job.reads.iter().map(|path| read(path)).collect();
    if let Some(object) = tried.as_object_mut() {
        object.insert("others".into(), others.into());
    }
    say(&tried)
}

/// The content of a file, or the errno.
fn read(path: &Path) -> Value {
    match fs::read_to_string(path) {
        Ok(text) => json!(text),
        Err(error) => json!(error.raw_os_error()),
    }
}

fn write(path: &Path) -> Value {
    let mut options = fs::OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).open(path);
    match file.and_then(|mut file| file.write_all(b"x")) {
        Ok(()) => json!("written"),
        Err(error) => json!(error.raw_os_error()),
    }
}
