//! Hooks: users' programs hear of what happens to an agent, each at most once, and what became of each is on
//! record. They run under a shim, so they outlive the daemon, and a new one finds out what became of them.
//!
//! - `sources`: the files that there are, and which of them are trusted; `trust`: who said so.
//! - `run`: one handler, as a command or over HTTP.
//! - `record`: what is written of it; `adopt`: what an earlier daemon left.
//! - `session`: what opens and ends conversations; `observe`: what is told of without being waited for.

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
use agentd_process::failpoint;
use run::Job;
use scene::{Scene, scene};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

type Heard = watch::Receiver<Option<Verdict>>;

/// What is being told now.
#[derive(Default)]
pub struct Hooks {
    invoked: Mutex<HashMap<InvocationId, Heard>>,
    /// Files about which it was said that they are not trusted.
    told: Mutex<HashSet<String>>,
    client: OnceLock<Option<reqwest::Client>>,
}

impl Daemon {
    /// Tells the hooks, and waits for what they say. Told the same again, nothing runs again.
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

    /// The same for so long; they go on after that.
    pub async fn invoke_within(
        self: &Arc<Self>,
        handle: &Arc<AgentHandle>,
        invocation: HookInvocation,
        at_most: Duration,
    ) -> Option<Verdict> {
        let told = self.invoke(handle, invocation);
        tokio::time::timeout(at_most, told).await.ok()
    }

    /// Nobody waits for what they say.
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
        spawn("hooks", async move {
            let event = invocation.hook_input.event;
            let verdict = match caught("hooks", tell(&daemon, &handle, &invocation)).await {
                Ok(Ok(verdict)) => verdict,
                Ok(Err(problem)) => {
                    tracing::error!(agent = %handle.id, %event, %problem, "hooks are not told");
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
        let jobs = begin(daemon, handle, invocation).await?;
        if jobs.is_empty() {
            return Ok(Verdict::of(event, unread(daemon, handle, event).await));
        }
        let mut waited = Vec::new();
        for job in jobs {
            let is_async = job.chosen.handler.is_async;
            let running = spawn(
                "a hook",
                carry_out(Arc::clone(daemon), Arc::clone(handle), job),
            );
            if !is_async {
                waited.push(running);
            }
        }
        for running in waited {
            if let Err(error) = running.await {
                tracing::error!(agent = %handle.id, %error, "a hook is not waited for");
            }
        }
    }
    let mut answers = record::answers(daemon, handle, invocation.id).await?;
    answers.extend(unread(daemon, handle, event).await);
    let verdict = Verdict::of(event, answers);
    revise(handle, invocation, &verdict).await?;
    Ok(verdict)
}

/// Hooks that nobody can read may be about to say no to a call.
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

/// Other arguments for a call are on record before anybody runs it.
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

/// Says in the journal what is about to run.
async fn begin(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    invocation: &HookInvocation,
) -> Result<Vec<Job>> {
    let Some(mut scene) = scene(daemon, handle, invocation).await else {
        return Ok(Vec::new());
    };
    let layers: Vec<_> = std::mem::take(&mut scene.sources)
        .into_iter()
        .filter_map(sources::Source::usable)
        .collect();
    let chosen: Vec<Chosen> = chosen(&layers, &invocation.hook_input);
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let transcript = daemon.transcripts.need(handle.id, scene.conversation).await;
    match transcript {
        Ok(path) => scene.setting.transcript_path = Some(path.display().to_string()),
        Err(error) => tracing::warn!(agent = %handle.id, %error, "hooks get no transcript"),
    }
    let boot = Some(daemon.boot);
    let jobs: Vec<Job> = chosen
        .into_iter()
        .map(|chosen| job(daemon, handle, invocation, &scene, chosen))
        .collect();
    for job in &jobs {
        // Before it is on record: so whatever is on record is found by a new daemon.
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
    Ok(jobs)
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
    // The user's own hooks run as the user; a project's and an agent file's are no more trusted than the agent's tools.
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
    let done = caught("a hook", run::run(&daemon, &job)).await;
    let done = done.unwrap_or_else(|Died| Done::unknown());
    record::end(&daemon, &handle, job.hook, done).await;
    job.remove_dir();
}

/// What became of a handler.
#[derive(Clone, Debug)]
pub struct Done {
    pub outcome: HookOutcome,
    pub exit: Option<i32>,
    pub timed_out: bool,
    pub answer: Answer,
    pub duration_ms: u64,
}

impl Done {
    /// Nobody knows what became of it.
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

/// Whether anything would run.
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
