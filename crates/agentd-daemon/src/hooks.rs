//! Hooks: users' programs that run when an event happens to an agent. Each runs at most once per event, and its result
//! is recorded in the journal. Commands run under a shim, so they outlive the daemon, and a new daemon adopts them.
//!
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
pub mod trial;

use crate::clock;
use crate::daemon::invocations::Heard;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::Result;
use crate::hook_sources;
use crate::spawn::{Died, blocking, caught, spawn};
use agentd_core::event::{CallRevised, HookOutcome, HookStarted, HookWay};
use agentd_core::hook::{
    Answer, Chosen, HookEvent, HookInput, HookInvocation, Layer, Run, Verdict, chosen,
};
use agentd_core::id::{BootId, CallId, HookId};
use agentd_failpoint as failpoint;
use run::Job;
use scene::{Scene, scene};
use serde_json::Value;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// How many handlers of one invocation run at the same time. A patch of many files invokes the same handler many times.
const AT_ONCE: usize = 16;

impl AgentHandle {
    /// Invokes hooks and waits for their verdict. A repeated id runs no hook again and returns the recorded verdict.
    pub async fn invoke(&self, invocation: HookInvocation) -> Verdict {
        let event = invocation.hook_input.event;
        let mut heard = self.begin_invocation(invocation);
        let heard = heard.wait_for(Option::is_some).await;
        match heard {
            Ok(verdict) => verdict.clone().unwrap_or_default(),
            Err(_) => Verdict::unheard(event),
        }
    }

    /// The same with a timeout. The hooks continue after it.
    pub async fn invoke_within(
        &self,
        invocation: HookInvocation,
        at_most: Duration,
    ) -> Option<Verdict> {
        let told = self.invoke(invocation);
        tokio::time::timeout(at_most, told).await.ok()
    }

    /// Invokes hooks without waiting for them.
    pub fn tell(&self, invocation: HookInvocation) {
        drop(self.begin_invocation(invocation));
    }

    fn begin_invocation(&self, invocation: HookInvocation) -> Heard {
        let mut running = self.daemon.hooks.running.lock();
        let running = running.as_mut().unwrap_or_else(PoisonError::get_mut);
        if let Some(heard) = running.get(&invocation.id) {
            return heard.clone();
        }
        let (say, heard) = watch::channel(None);
        running.insert(invocation.id, heard.clone());
        let handle = self.clone();
        spawn("invoke hooks", async move {
            let event = invocation.hook_input.event;
            let verdict = match caught("invoke hooks", tell(&handle, &invocation)).await {
                Ok(Ok(verdict)) => verdict,
                Ok(Err(error)) => {
                    tracing::error!(agent = %handle.id, %event, %error, "hooks not invoked");
                    Verdict::unheard(event)
                }
                Err(Died) => Verdict::unheard(event),
            };
            let running = handle.daemon.hooks.running.lock();
            running
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&invocation.id);
            say.send_replace(Some(verdict));
        });
        heard
    }
}

async fn tell(handle: &AgentHandle, invocation: &HookInvocation) -> Result<Verdict> {
    let event = invocation.hook_input.event;
    let is_known = handle.lock().await.state.hooks.get(invocation.id).is_some();
    if is_known && !failpoint::injected_bug("hook_twice") {
        adopt::adopt(handle, invocation.id, &invocation.hook_input).await;
    } else {
        let (jobs, hookless) = begin(handle, invocation).await?;
        if jobs.is_empty() {
            let unread = unread(handle, event).await;
            return Ok(Verdict {
                hookless,
                ..Verdict::of(event, unread)
            });
        }
        let mut waited = Vec::new();
        let room = Arc::new(Semaphore::new(AT_ONCE));
        for job in jobs {
            let is_async = job.chosen.handler.is_async;
            let (handle, room) = (handle.clone(), Arc::clone(&room));
            let running = spawn("hook", async move {
                let _permit = room.acquire().await;
                carry_out(handle, job).await;
            });
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
    let mut answers = record::answers(handle, invocation.id).await?;
    answers.extend(unread(handle, event).await);
    let verdict = Verdict::of(event, answers).of_call(invocation.hook_input.subject());
    revise(handle, invocation, &verdict).await?;
    Ok(verdict)
}

/// A hooks file that cannot be read might contain a hook that refuses the call, so the user is asked.
async fn unread(handle: &AgentHandle, event: HookEvent) -> Option<(HookOutcome, Answer)> {
    if event != HookEvent::PreToolUse {
        return None;
    }
    let spec = handle.lock().await.state.spec.clone();
    let why = hook_sources::of_agent(&handle.daemon, &spec)
        .await
        .broken()?;
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
    if guard.state.spec.is_outer() {
        // The program cannot be given other arguments. The runtime refuses the call.
        return Ok(());
    }
    let revised = CallRevised { call, arguments };
    let lines = vec![(current, revised.into())];
    guard.append_in(invocation.turn, lines).await.map(drop)
}

/// Selects the handlers of an invocation and records that they start.
async fn begin(handle: &AgentHandle, invocation: &HookInvocation) -> Result<(Vec<Job>, bool)> {
    let Some(mut scene) = scene(handle, invocation).await else {
        return Ok((Vec::new(), false));
    };
    let sources = hook_sources::of_agent(&handle.daemon, &scene.spec).await;
    let (hookless, cwd) = (sources.all.is_empty(), sources.cwd.clone());
    let chosen: Vec<Chosen> = chosen(&sources.usable(), &invocation.hook_input, &cwd);
    if chosen.is_empty() {
        return Ok((Vec::new(), hookless));
    }
    let transcripts = &handle.daemon.transcripts;
    match transcripts.need(handle.id, scene.conversation).await {
        Ok(path) => scene.setting.transcript_path = Some(path.display().to_string()),
        Err(error) => tracing::warn!(agent = %handle.id, %error, "transcript not available"),
    }
    let boot = Some(handle.daemon.boot);
    // Locked until the start is recorded, so that a purge does not remove the files that are prepared here.
    let mut guard = handle.lock().await;
    let (prepared, hook_input) = (handle.clone(), invocation.hook_input.clone());
    let (jobs, scene) = blocking(move || {
        scene.enter(&prepared, cwd);
        let jobs = chosen.into_iter();
        let jobs: Vec<Job> = jobs
            .map(|chosen| job(&prepared, &hook_input, &scene, chosen))
            .collect();
        for job in &jobs {
            // Created before the start is recorded, so that a new daemon finds the directory of every recorded hook.
            job.make_dir(&prepared.daemon.layout);
        }
        (jobs, scene)
    })
    .await;
    let lines = jobs.iter().map(|job| {
        let started = started(invocation, job, boot);
        (scene.conversation, started.into())
    });
    failpoint::hit("before", "hook_started");
    guard.append_in(invocation.turn, lines.collect()).await?;
    failpoint::hit("after", "hook_started");
    handle.daemon.transcripts.touched(handle.id);
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

fn job(handle: &AgentHandle, hook_input: &HookInput, scene: &Scene, chosen: Chosen) -> Job {
    let hook = HookId::new(clock::new_id());
    // The user's own hooks run without a sandbox; those of a project or an agent file run in the agent's sandbox.
    let confined = match chosen.layer {
        Layer::User => Ok(None),
        Layer::Spec | Layer::Project => scene.confined.clone(),
    };
    let mut env = scene.env.clone();
    if matches!(confined, Ok(Some(_))) {
        env.retain(|name, _| !scene.unusable.contains(name));
        sandbox::adapt(
            &mut env,
            scene.conversation,
            &handle.daemon.layout.tool_socket(handle.id),
        );
    }
    let input = hook_input.input(&scene.setting, chosen.call.as_ref());
    Job {
        hook,
        agent: Some(handle.id),
        dir: handle.daemon.layout.hook_dir(hook),
        hook_input: hook_input.clone(),
        input: input.to_string(),
        env,
        secrets: scene.secrets.clone(),
        cwd: scene.cwd.clone(),
        confined,
        chosen,
    }
}

async fn carry_out(handle: AgentHandle, job: Job) {
    let done = caught("hook", run::run(&handle.daemon, &job)).await;
    let done = done.unwrap_or_else(|Died| Done::unknown());
    record::end(&handle, job.hook, done).await;
    blocking(move || job.remove_dir()).await;
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
async fn has_any(guard: &AgentGuard<'_>, invocation: &HookInvocation) -> bool {
    if guard.state.is_held() {
        return false;
    }
    let sources = hook_sources::of_agent(&guard.handle.daemon, &guard.state.spec).await;
    let cwd = sources.cwd.clone();
    !chosen(&sources.usable(), &invocation.hook_input, &cwd).is_empty()
}
