//! Runs one handler: a command under a shim, or a request to an HTTP service.

mod http;

use super::Done;
use crate::daemon::Daemon;
use crate::layout::Layout;
use crate::spawn::blocking;
use crate::tool_env::shell;
use agentd_client::api::Env;
use agentd_core::environment::is_handed_on;
use agentd_core::event::HookOutcome;
use agentd_core::hook::{
    Answer, Chosen, Ended, HookEvent, HookInput, Run, Setting, could_not_run, read,
};
use agentd_core::id::{AgentId, HookId};
use agentd_core::secrets::Secrets;
use agentd_files::own;
use agentd_process::task::{self, Confined, Exit, Found, Limits, Order, ShimProgram};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// After its time limit, a handler has this long to end before it is killed with all its descendants.
const GRACE_MS: u64 = 500;
/// Bytes that are kept of each of its output streams.
const KEPT_BYTES: u64 = 1024 * 1024;

/// One handler to run.
pub struct Job {
    pub hook: HookId,
    /// None for an event of the daemon, and for a test.
    pub agent: Option<AgentId>,
    pub dir: PathBuf,
    pub hook_input: HookInput,
    pub chosen: Chosen,
    pub input: String,
    pub env: BTreeMap<String, String>,
    /// Redacted in its output and its answer.
    pub secrets: Secrets,
    pub cwd: PathBuf,
    /// The handler's sandbox, if it has one. An error says why it cannot be created: then the handler is not run.
    pub confined: Result<Option<Confined>, String>,
}

impl Job {
    /// Creates the directory, by which the next daemon finds the hook.
    pub fn make_dir(&self, layout: &Layout) {
        if let Err(error) = layout.make_owned_dir(&self.dir, self.agent) {
            tracing::warn!(dir = %self.dir.display(), %error, "hook directory not created");
        }
    }

    /// The same, off the async thread.
    pub async fn with_dir(self, layout: &Layout) -> Self {
        let layout = layout.clone();
        blocking(move || {
            self.make_dir(&layout);
            self
        })
        .await
    }

    pub fn remove_dir(&self) {
        remove(&self.dir);
    }
}

pub fn remove(dir: &Path) {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(dir = %dir.display(), %error, "hook directory not removed");
        }
        _ => {}
    }
}

pub async fn run(daemon: &Daemon, job: &Job) -> Done {
    let done = match &job.chosen.handler.run {
        Run::Command { command, args } => {
            let args = args.as_deref();
            command_run(job, command, args).await
        }
        Run::Http { url, headers } => http::run(daemon, job, url, headers).await,
    };
    Done {
        answer: redacted(done.answer, &job.secrets),
        ..done
    }
}

/// The answer without secrets. The shim redacts a command's output before it is on disk, but does not find a secret
/// that is escaped in JSON; and a service's response has not been redacted at all.
fn redacted(answer: Answer, secrets: &Secrets) -> Answer {
    let clean = serde_json::to_value(answer).map(|answer| secrets.redact_json(answer));
    clean
        .and_then(serde_json::from_value)
        .unwrap_or_else(|_| Answer {
            warning: Some("its answer was dropped: it may contain a secret".to_owned()),
            ..Answer::default()
        })
}

async fn command_run(job: &Job, command: &str, args: Option<&[String]>) -> Done {
    let begin = Instant::now();
    let confined = match &job.confined {
        Ok(confined) => confined.clone().map(Box::new),
        Err(why) => {
            let why = format!("its sandbox cannot be created: {why}");
            return not_run(&job.hook_input, job.chosen.blocks_on_failure(), &why);
        }
    };
    let order = order(job, command, args, confined);
    let found = match task::start(&ShimProgram::default(), &job.dir, &order).await {
        Ok(task) => task.ended().await,
        Err(error) => Err(error),
    };
    let fails_closed = job.chosen.blocks_on_failure();
    let mut done = match found {
        Ok(found) => of_found(&job.hook_input, fails_closed, &job.dir, found).await,
        Err(error) => not_run(&job.hook_input, fails_closed, &error.to_string()),
    };
    if done.duration_ms == 0 {
        done.duration_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    }
    done
}

fn order(
    job: &Job,
    command: &str,
    args: Option<&[String]>,
    confined: Option<Box<Confined>>,
) -> Order {
    let (program, args) = match args {
        Some(args) => (find_program(command, job), args.to_vec()),
        None => (shell(), vec!["-c".to_owned(), command.to_owned()]),
    };
    Order {
        program,
        args,
        env: job.env.clone(),
        cwd: job.cwd.clone(),
        time_limit_ms: Some(job.chosen.time_limit_ms(job.hook_input.event)),
        grace_ms: GRACE_MS,
        output_limit_bytes: KEPT_BYTES,
        foreground: true,
        errors_apart: true,
        stdin: Some(job.input.clone()),
        owner: None,
        redact: job.secrets.values(),
        lab: agentd_failpoint::dir().map(Path::to_owned),
        confined,
        limits: Limits::default(),
    }
}

/// Finds a program like a shell: a name that contains `/` is a path, any other name is searched for in `PATH`.
fn find_program(name: &str, job: &Job) -> PathBuf {
    if name.contains('/') {
        return job.cwd.join(name);
    }
    let path = job.env.get("PATH").map_or("", String::as_str);
    let mut found = path.split(':').map(|dir| Path::new(dir).join(name));
    let found = found.find(|file| file.is_absolute() && file.is_file());
    found.unwrap_or_else(|| Path::new("/").join(name))
}

/// Ends a running hook with all its descendants: it is asked to stop first, then killed. The task that runs the hook
/// records how it ended.
pub async fn end(dir: PathBuf) {
    let found = tokio::task::spawn_blocking(move || task::find(&dir, None)).await;
    let Ok(Ok(Found::Running(running))) = found else {
        return;
    };
    drop(running.stop());
    let grace = Duration::from_millis(GRACE_MS);
    if tokio::time::timeout(grace, running.ended()).await.is_err() {
        drop(running.kill());
    }
}

/// The result of a hook that this or an earlier daemon started.
pub async fn of_found(
    hook_input: &HookInput,
    fails_closed: bool,
    dir: &Path,
    found: Found,
) -> Done {
    match found {
        Found::Ended(exit) => {
            let (hook_input, dir) = (hook_input.clone(), dir.to_owned());
            blocking(move || of_exit(&hook_input, fails_closed, &dir, &exit)).await
        }
        Found::NeverStarted => not_run(hook_input, fails_closed, "it was never started"),
        Found::Running(_) | Found::Unknown => Done {
            outcome: HookOutcome::Unknown,
            exit: None,
            timed_out: false,
            answer: Answer {
                warning: Some("the outcome of the hook is unknown".to_owned()),
                ..Answer::default()
            },
            duration_ms: 0,
        },
    }
}

pub fn not_run(hook_input: &HookInput, fails_closed: bool, why: &str) -> Done {
    Done {
        outcome: HookOutcome::NotRun,
        exit: None,
        timed_out: false,
        answer: read(hook_input, Ended::NotRun(why), "", "", fails_closed),
        duration_ms: 0,
    }
}

fn of_exit(hook_input: &HookInput, fails_closed: bool, dir: &Path, exit: &Exit) -> Done {
    if let Some(error) = &exit.error {
        return not_run(hook_input, fails_closed, error);
    }
    let text = |name: &str| {
        let bytes = own::read(dir.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let signal = exit
        .signal
        .map(|signal| format!("it was terminated by signal {signal}"));
    let ended = match (exit.timed_out, exit.code) {
        (true, _) => Ended::TimedOut,
        (false, Some(code)) => Ended::Code(code),
        (false, None) => Ended::Failed(signal.as_deref().unwrap_or("it was stopped")),
    };
    let (stdout, stderr) = (text("output"), text("errors"));
    if let (false, Some(code)) = (exit.timed_out, exit.code)
        && let Some(why) = could_not_run(code, &stdout, &stderr)
    {
        return Done {
            exit: exit.code,
            duration_ms: exit.duration_ms,
            ..not_run(hook_input, fails_closed, &why)
        };
    }
    Done {
        outcome: HookOutcome::Ran,
        exit: exit.code,
        timed_out: exit.timed_out,
        answer: read(hook_input, ended, &stdout, &stderr, fails_closed),
        duration_ms: exit.duration_ms,
    }
}

/// The whole environment of a handler. It never contains a key.
pub fn environment(
    event: HookEvent,
    callers: &Env,
    spec: &BTreeMap<String, String>,
    home: &Path,
    setting: &Setting,
    env_file: Option<&Path>,
) -> BTreeMap<String, String> {
    let handed_on = callers.iter().filter(|(name, _)| is_handed_on(name));
    let mut env: BTreeMap<String, String> = handed_on
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    env.extend(spec.clone());
    env.entry("PATH".to_owned())
        .or_insert_with(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
    let mut put = |names: &[&str], value: String| {
        for name in names {
            env.insert((*name).to_owned(), value.clone());
        }
    };
    put(&["AGENTD_HOME"], home.display().to_string());
    // If this is set, `agentd` exits with 64 on usage errors, because a hook that exits with 2 blocks the event.
    put(&["AGENTD_HOOK_EVENT"], event.to_string());
    put(
        &["AGENTD_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
        setting.cwd.clone(),
    );
    if let Some((name, _)) = &setting.agent {
        put(&["AGENTD_AGENT"], name.clone());
    }
    if let Some(session) = &setting.session_id {
        put(
            &["AGENTD_CONVERSATION", "CLAUDE_CODE_SESSION_ID"],
            session.clone(),
        );
    }
    if let Some(file) = env_file {
        if let Some(dir) = file.parent()
            && let Err(error) = Layout::new(home).make_below(dir)
        {
            tracing::warn!(%error, "directory of the hooks' env file not created");
        }
        put(
            &["AGENTD_ENV_FILE", "CLAUDE_ENV_FILE"],
            file.display().to_string(),
        );
    }
    env
}
