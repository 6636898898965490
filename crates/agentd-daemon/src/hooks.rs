//! Hooks: users' programs that run when an event happens to an agent, each at most once per event, with the result
//! recorded in the journal. They run under a shim, so they outlive the daemon, and a new daemon adopts them.
//!
//! - `sources`: the hooks files of an agent, and which of them are trusted.
//! - `run`: runs one handler, as a command or over HTTP.
//! - `record`: writes and reads results; `adopt`: finds the results of hooks that an earlier daemon started.
//! - `session`: SessionStart and SessionEnd; `observe`: events that do not wait for their hooks.

pub mod adopt;
pub mod observe;
pub mod record;
pub mod run;
pub mod sandbox;
mod scene;
pub mod session;
pub mod sources;
pub mod trial;

use crate::agent_handle::AgentHandle;
use crate::clock;
use crate::daemon::Daemon;
use crate::problem::Result;
use crate::spawn::{Died, caught, spawn};
use agentd_core::event::{CallRevised, HookOutcome, HookStarted, HookWay};
use agentd_core::hook::{Answer, Chosen, HookEvent, HookInvocation, Layer, Run, Verdict, chosen};
use agentd_core::id::{BootId, CallId, HookId, InvocationId};
use agentd_failpoint as failpoint;
use run::Job;
use scene::{Scene, scene};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

type Heard = watch::Receiver<Option<Verdict>>;

/// The invocations that are running, and what their handlers share.
#[derive(Default)]
pub struct Hooks {
    /// Running invocations: a second request with the same id waits for the same verdict. The invocation's task
    /// removes its entry.
    invoked: Mutex<HashMap<InvocationId, Heard>>,
    /// Ignored hooks files, by path and content: each is logged once.
    told: Mutex<HashSet<String>>,
    /// For handlers that are HTTP services; created with the first one.
    client: OnceLock<Option<reqwest::Client>>,
}

impl Daemon {
    /// Invokes hooks and waits for their verdict. The same id again runs nothing again and gives the same verdict.
    pub async fn invoke(
        self: &Arc<Self>,
        handle: &Arc<AgentHandle>,
        invocation: HookInvocation,
    ) -> Verdict {
        let event = invocation.hook_input.event;
        let mut heard = self.begin_invocation(handle, invocation);
        let heard = heard.wait_for(Option::is_some).await;
        match heard {
            Ok(verdict) => verdict.clone().unwrap_or_default(),
            Err(_) => Verdict::unheard(event),
        }
    }

    /// The same with a timeout. The hooks continue after it.
    pub async fn invoke_within(
        self: &Arc<Self>,
        handle: &Arc<AgentHandle>,
        invocation: HookInvocation,
        at_most: Duration,
    ) -> Option<Verdict> {
        let told = self.invoke(handle, invocation);
        tokio::time::timeout(at_most, told).await.ok()
    }

    /// Invokes hooks without waiting for them.
    pub fn tell(self: &Arc<Self>, handle: &Arc<AgentHandle>, invocation: HookInvocation) {
        drop(self.begin_invocation(handle, invocation));
    }

    fn begin_invocation(
        self: &Arc<Self>,
        handle: &Arc<AgentHandle>,
        invocation: HookInvocation,
    ) -> Heard {
        let mut invoked = self.hooks.invoked.lock();
        let invoked = invoked.as_mut().unwrap_or_else(PoisonError::get_mut);
        if let Some(heard) = invoked.get(&invocation.id) {
            return heard.clone();
        }
        let (say, heard) = watch::channel(None);
        invoked.insert(invocation.id, heard.clone());
        let (daemon, handle) = (Arc::clone(self), Arc::clone(handle));
        spawn("invoke hooks", async move {
            let event = invocation.hook_input.event;
            let verdict = match caught("invoke hooks", tell(&daemon, &handle, &invocation)).await {
                Ok(Ok(verdict)) => verdict,
                Ok(Err(problem)) => {
                    tracing::error!(agent = %handle.id, %event, %problem, "hooks not invoked");
                    Verdict::unheard(event)
                }
                Err(Died) => Verdict::unheard(event),
            };
            let invoked = daemon.hooks.invoked.lock();
            invoked
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&invocation.id);
            say.send_replace(Some(verdict));
        });
        heard
    }
}

async fn tell(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    invocation: &HookInvocation,
) -> Result<Verdict> {
    let event = invocation.hook_input.event;
    let is_known = handle.lock().await.state.hooks.get(invocation.id).is_some();
    if is_known && !failpoint::injected_bug("hook_twice") {
        adopt::adopt(daemon, handle, invocation.id, &invocation.hook_input).await;
    } else {
        let (jobs, hookless) = begin(daemon, handle, invocation).await?;
        if jobs.is_empty() {
            let unread = unread(daemon, handle, event).await;
            return Ok(Verdict {
                hookless,
                ..Verdict::of(event, unread)
            });
        }
        let mut waited = Vec::new();
        for job in jobs {
            let is_async = job.chosen.handler.is_async;
            let running = spawn(
                "hook",
                carry_out(Arc::clone(daemon), Arc::clone(handle), job),
            );
            if !is_async {
                waited.push(running);
            }
        }
        for running in waited {
            if let Err(error) = running.await {
                tracing::error!(agent = %handle.id, %error, "hook not awaited: task aborted");
            }
        }
    }
    let mut answers = record::answers(daemon, handle, invocation.id).await?;
    answers.extend(unread(daemon, handle, event).await);
    let verdict = Verdict::of(event, answers);
    revise(handle, invocation, &verdict).await?;
    Ok(verdict)
}

/// A hooks file that cannot be read might contain a hook that refuses the call, so the user is asked.
async fn unread(
    daemon: &Daemon,
    handle: &AgentHandle,
    event: HookEvent,
) -> Option<(HookOutcome, Answer)> {
    if event != HookEvent::PreToolUse {
        return None;
    }
    let guard = handle.lock().await;
    let spec = &guard.state.spec;
    let cwd = run::work_dir(spec.cwd.as_deref(), daemon.layout.home());
    let why = sources::broken(&sources::of_agent(daemon, spec, &cwd))?;
    Some((HookOutcome::Unknown, Answer::no_one(why)))
}

/// Records the arguments that a hook has changed, before the call runs.
async fn revise(
    handle: &AgentHandle,
    invocation: &HookInvocation,
    verdict: &Verdict,
) -> Result<()> {
    let call = invocation.hook_input.fields.get("tool_use_id");
    let call = call.and_then(Value::as_str).map(CallId::new);
    let (Some(call), Some(arguments)) = (call, verdict.updated_input.clone()) else {
        return Ok(());
    };
    if verdict.is_no() {
        return Ok(());
    }
    let mut guard = handle.lock().await;
    let Some(current) = guard.state.tree.current() else {
        return Ok(());
    };
    let revised = CallRevised { call, arguments };
    let lines = vec![(current, revised.into())];
    guard.append_in(invocation.turn, lines).await.map(drop)
}

/// Selects the handlers of an invocation and records that they start.
async fn begin(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    invocation: &HookInvocation,
) -> Result<(Vec<Job>, bool)> {
    let Some(mut scene) = scene(daemon, handle, invocation).await else {
        return Ok((Vec::new(), false));
    };
    let hookless = scene.sources.is_empty();
    let layers: Vec<_> = std::mem::take(&mut scene.sources)
        .into_iter()
        .filter_map(sources::Source::usable)
        .collect();
    let chosen: Vec<Chosen> = chosen(&layers, &invocation.hook_input);
    if chosen.is_empty() {
        return Ok((Vec::new(), hookless));
    }
    let transcript = daemon.transcripts.need(handle.id, scene.conversation).await;
    match transcript {
        Ok(path) => scene.setting.transcript_path = Some(path.display().to_string()),
        Err(error) => tracing::warn!(agent = %handle.id, %error, "transcript not available"),
    }
    let boot = Some(daemon.boot);
    let jobs: Vec<Job> = chosen
        .into_iter()
        .map(|chosen| job(daemon, handle, invocation, &scene, chosen))
        .collect();
    for job in &jobs {
        // Before the journal has it: a new daemon finds the directory of every hook that the journal has.
        job.make_dir(&daemon.layout);
    }
    let lines = jobs.iter().map(|job| {
        let started = started(invocation, job, boot);
        (scene.conversation, started.into())
    });
    let mut guard = handle.lock().await;
    failpoint::hit("before", "hook_started");
    guard.append_in(invocation.turn, lines.collect()).await?;
    failpoint::hit("after", "hook_started");
    daemon.transcripts.touched(handle.id);
    Ok((jobs, hookless))
}

fn started(invocation: &HookInvocation, job: &Job, boot: Option<BootId>) -> HookStarted {
    let call = invocation.hook_input.fields.get("tool_use_id");
    HookStarted {
        hook: job.hook,
        invocation: invocation.id,
        event: invocation.hook_input.event,
        layer: job.chosen.layer,
        handler: job.chosen.digest.clone(),
        way: match job.chosen.handler.run {
            Run::Command { .. } => HookWay::Command,
            Run::Http { .. } => HookWay::Http,
        },
        is_async: job.chosen.handler.is_async,
        fails_closed: job.chosen.blocks_on_failure(),
        boot,
        op: invocation.op,
        call: call.and_then(Value::as_str).map(CallId::new),
    }
}

fn job(
    daemon: &Daemon,
    handle: &AgentHandle,
    invocation: &HookInvocation,
    scene: &Scene,
    chosen: Chosen,
) -> Job {
    let hook = HookId::new(clock::new_id());
    // The user's own hooks run without a sandbox; those of a project or an agent file run in the agent's sandbox.
    let confined = match chosen.layer {
        Layer::User => Ok(None),
        Layer::Spec | Layer::Project => scene.confined.clone(),
    };
    let mut env = scene.env.clone();
    if matches!(confined, Ok(Some(_))) {
        sandbox::adapt(
            &mut env,
            scene.conversation,
            &daemon.layout.tool_socket(handle.id),
        );
    }
    let input = invocation
        .hook_input
        .input(&scene.setting, chosen.tool_name.as_deref());
    Job {
        hook,
        agent: Some(handle.id),
        dir: daemon.layout.hook_dir(hook),
        hook_input: invocation.hook_input.clone(),
        input: input.to_string(),
        env,
        secrets: scene.secrets.clone(),
        cwd: scene.cwd.clone(),
        confined,
        chosen,
    }
}

async fn carry_out(daemon: Arc<Daemon>, handle: Arc<AgentHandle>, job: Job) {
    let done = caught("hook", run::run(&daemon, &job)).await;
    let done = done.unwrap_or_else(|Died| Done::unknown());
    record::end(&daemon, &handle, job.hook, done).await;
    job.remove_dir();
}

/// The result of a handler.
#[derive(Clone, Debug)]
pub struct Done {
    pub outcome: HookOutcome,
    pub exit: Option<i32>,
    pub timed_out: bool,
    pub answer: Answer,
    pub duration_ms: u64,
}

impl Done {
    /// The result of a handler whose outcome is unknown.
    pub fn unknown() -> Self {
        Self {
            outcome: HookOutcome::Unknown,
            exit: None,
            timed_out: false,
            answer: Answer::default(),
            duration_ms: 0,
        }
    }
}

/// Whether the invocation would run any handler.
pub fn has_any(
    daemon: &Daemon,
    guard: &crate::agent_handle::AgentGuard<'_>,
    invocation: &HookInvocation,
) -> bool {
    let state = &guard.state;
    if state.is_held() {
        return false;
    }
    let cwd = run::work_dir(state.spec.cwd.as_deref(), daemon.layout.home());
    let sources = sources::of_agent(daemon, &state.spec, &cwd).into_iter();
    let layers: Vec<(Layer, _)> = sources.filter_map(sources::Source::usable).collect();
    !chosen(&layers, &invocation.hook_input).is_empty()
}
