//! Hooks: users' programs hear of what happens to an agent, each at most once, and what became of each is on
//! record. They run under a shim, so they outlive the daemon, and a new one finds out what became of them.
//!
//! - `sources`: the files that there are, and which of them are trusted; `trust`: who said so.
//! - `run`: one handler, as a command or over HTTP.
//! - `record`: what is written of it; `settle`: what an earlier daemon left.
//! - `session`: what opens and ends conversations; `observe`: what is told of without being waited for.

pub mod observe;
pub mod record;
pub mod run;
pub mod sandbox;
pub mod session;
pub mod settle;
pub mod sources;
pub mod trial;

use crate::clock;
use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::problem::Result;
use crate::spawn::{Died, caught, spawn};
use crate::title;
use agentd_core::event::{CallRevised, HookOutcome, HookStarted, HookWay};
use agentd_core::hook::{Answer, Chosen, Fire, HookEvent, Layer, Run, Setting, Verdict, chosen};
use agentd_core::id::{BootId, CallId, ConversationId, FireId, HookId};
use agentd_core::permission;
use agentd_core::secrets::Secrets;
use agentd_process::failpoint;
use agentd_process::task::Confined;
use run::Job;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

type Heard = watch::Receiver<Option<Verdict>>;

/// What is being told now.
#[derive(Default)]
pub struct Hooks {
    firing: Mutex<HashMap<FireId, Heard>>,
    /// Files about which it was said that they are not trusted.
    told: Mutex<HashSet<String>>,
    client: OnceLock<Option<reqwest::Client>>,
}

impl Daemon {
    /// Tells the hooks, and waits for what they say. Told the same again, nothing runs again.
    pub async fn fire(self: &Arc<Self>, desk: &Arc<Desk>, fire: Fire) -> Verdict {
        let event = fire.occasion.event;
        let mut heard = self.begin_fire(desk, fire);
        let heard = heard.wait_for(Option::is_some).await;
        match heard {
            Ok(verdict) => verdict.clone().unwrap_or_default(),
            Err(_) => Verdict::unheard(event),
        }
    }

    /// The same for so long; they go on after that.
    pub async fn fire_within(
        self: &Arc<Self>,
        desk: &Arc<Desk>,
        fire: Fire,
        at_most: Duration,
    ) -> Option<Verdict> {
        let told = self.fire(desk, fire);
        tokio::time::timeout(at_most, told).await.ok()
    }

    /// Nobody waits for what they say.
    pub fn tell(self: &Arc<Self>, desk: &Arc<Desk>, fire: Fire) {
        drop(self.begin_fire(desk, fire));
    }

    fn begin_fire(self: &Arc<Self>, desk: &Arc<Desk>, fire: Fire) -> Heard {
        let mut firing = self.hooks.firing.lock();
        let firing = firing.as_mut().unwrap_or_else(PoisonError::get_mut);
        if let Some(heard) = firing.get(&fire.id) {
            return heard.clone();
        }
        let (say, heard) = watch::channel(None);
        firing.insert(fire.id, heard.clone());
        let (daemon, desk) = (Arc::clone(self), Arc::clone(desk));
        spawn("hooks", async move {
            let event = fire.occasion.event;
            let verdict = match caught("hooks", tell(&daemon, &desk, &fire)).await {
                Ok(Ok(verdict)) => verdict,
                Ok(Err(problem)) => {
                    tracing::error!(agent = %desk.id, %event, %problem, "hooks are not told");
                    Verdict::unheard(event)
                }
                Err(Died) => Verdict::unheard(event),
            };
            let firing = daemon.hooks.firing.lock();
            firing
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&fire.id);
            say.send_replace(Some(verdict));
        });
        heard
    }
}

/// An agent as hooks see it.
struct Scene {
    sources: Vec<sources::Source>,
    conversation: ConversationId,
    setting: Setting,
    env: BTreeMap<String, String>,
    secrets: Secrets,
    cwd: PathBuf,
    /// What confines the hooks that are not the user's own.
    confined: std::result::Result<Option<Confined>, String>,
}

async fn tell(daemon: &Arc<Daemon>, desk: &Arc<Desk>, fire: &Fire) -> Result<Verdict> {
    let event = fire.occasion.event;
    let is_known = desk.lock().await.state.hooks.get(fire.id).is_some();
    if is_known && !failpoint::mutant("hook_twice") {
        settle::settle(daemon, desk, fire.id, &fire.occasion).await;
    } else {
        let jobs = begin(daemon, desk, fire).await?;
        if jobs.is_empty() {
            return Ok(Verdict::of(event, unread(daemon, desk, event).await));
        }
        let mut waited = Vec::new();
        for job in jobs {
            let is_async = job.chosen.handler.is_async;
            let running = spawn(
                "a hook",
                carry_out(Arc::clone(daemon), Arc::clone(desk), job),
            );
            if !is_async {
                waited.push(running);
            }
        }
        for running in waited {
            if let Err(error) = running.await {
                tracing::error!(agent = %desk.id, %error, "a hook is not waited for");
            }
        }
    }
    let mut answers = record::answers(daemon, desk, fire.id).await?;
    answers.extend(unread(daemon, desk, event).await);
    let verdict = Verdict::of(event, answers);
    revise(desk, fire, &verdict).await?;
    Ok(verdict)
}

/// Hooks that nobody can read may be about to say no to a call.
async fn unread(daemon: &Daemon, desk: &Desk, event: HookEvent) -> Option<(HookOutcome, Answer)> {
    if event != HookEvent::PreToolUse {
        return None;
    }
    let guard = desk.lock().await;
    let spec = &guard.state.spec;
    let cwd = run::work_folder(spec.cwd.as_deref(), daemon.layout.home());
    let why = sources::broken(&sources::of_agent(daemon, spec, &cwd))?;
    Some((HookOutcome::Unknown, Answer::no_one(why)))
}

/// Other arguments for a call are on record before anybody runs it.
async fn revise(desk: &Desk, fire: &Fire, verdict: &Verdict) -> Result<()> {
    let call = fire.occasion.fields.get("tool_use_id");
    let call = call.and_then(Value::as_str).map(CallId::new);
    let (Some(call), Some(arguments)) = (call, verdict.updated_input.clone()) else {
        return Ok(());
    };
    if verdict.is_no() {
        return Ok(());
    }
    let mut guard = desk.lock().await;
    let Some(current) = guard.state.tree.current() else {
        return Ok(());
    };
    let revised = CallRevised { call, arguments };
    let lines = vec![(current, revised.into())];
    guard.append_in(fire.turn, lines).await.map(drop)
}

/// Says in the journal what is about to run.
async fn begin(daemon: &Arc<Daemon>, desk: &Arc<Desk>, fire: &Fire) -> Result<Vec<Job>> {
    let Some(mut scene) = scene(daemon, desk, fire).await else {
        return Ok(Vec::new());
    };
    let layers: Vec<_> = std::mem::take(&mut scene.sources)
        .into_iter()
        .filter_map(sources::Source::usable)
        .collect();
    let chosen: Vec<Chosen> = chosen(&layers, &fire.occasion);
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let transcript = daemon.transcripts.need(desk.id, scene.conversation).await;
    match transcript {
        Ok(path) => scene.setting.transcript_path = Some(path.display().to_string()),
        Err(error) => tracing::warn!(agent = %desk.id, %error, "hooks get no transcript"),
    }
    let boot = Some(daemon.boot);
    let jobs: Vec<Job> = chosen
        .into_iter()
        .map(|chosen| job(daemon, desk, fire, &scene, chosen))
        .collect();
    for job in &jobs {
        // Before it is on record: so whatever is on record is found by a new daemon.
        job.make_folder(&daemon.layout);
    }
    let lines = jobs.iter().map(|job| {
        let started = started(fire, job, boot);
        (scene.conversation, started.into())
    });
    let mut guard = desk.lock().await;
    failpoint::hit("before", "hook_started");
    guard.append_in(fire.turn, lines.collect()).await?;
    failpoint::hit("after", "hook_started");
    daemon.transcripts.touched(desk.id);
    Ok(jobs)
}

fn started(fire: &Fire, job: &Job, boot: Option<BootId>) -> HookStarted {
    let call = fire.occasion.fields.get("tool_use_id");
    HookStarted {
        hook: job.hook,
        fire: fire.id,
        event: fire.occasion.event,
        layer: job.chosen.layer,
        handler: job.chosen.digest.clone(),
        way: match job.chosen.handler.run {
            Run::Command { .. } => HookWay::Command,
            Run::Http { .. } => HookWay::Http,
        },
        is_async: job.chosen.handler.is_async,
        fails_closed: job.chosen.blocks_on_failure(),
        boot,
        op: fire.op,
        call: call.and_then(Value::as_str).map(CallId::new),
    }
}

fn job(daemon: &Daemon, desk: &Desk, fire: &Fire, scene: &Scene, chosen: Chosen) -> Job {
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
            &daemon.layout.tool_socket(desk.id),
        );
    }
    let input = fire
        .occasion
        .input(&scene.setting, chosen.tool_name.as_deref());
    Job {
        hook,
        agent: Some(desk.id),
        folder: daemon.layout.hook_folder(hook),
        occasion: fire.occasion.clone(),
        input: input.to_string(),
        env,
        secrets: scene.secrets.clone(),
        cwd: scene.cwd.clone(),
        confined,
        chosen,
    }
}

/// None where there is nothing to tell it of.
async fn scene(daemon: &Daemon, desk: &Desk, fire: &Fire) -> Option<Scene> {
    let guard = desk.lock().await;
    let state = &guard.state;
    if state.is_held() {
        return None;
    }
    let conversation = fire.conversation.or(state.tree.current())?;
    let cwd = run::work_folder(state.spec.cwd.as_deref(), daemon.layout.home());
    let sources = sources::of_agent(daemon, &state.spec, &cwd);
    let tasks = state
        .tasks
        .running()
        .map(|(id, task)| json!({"id": id, "tool": task.tool, "started_at": task.started_at}));
    let is_start = fire.occasion.event == HookEvent::SessionStart;
    let session_title = match (is_start, &state.spec.title) {
        (true, Some(title)) => Some(title.clone()),
        (true, None) => title::of(daemon, state, conversation).await,
        _ => None,
    };
    let turn = fire.turn.or(state.turn.as_ref().map(|turn| turn.id));
    let setting = Setting {
        session_id: Some(conversation.to_string()),
        transcript_path: None,
        cwd: cwd.display().to_string(),
        permission_mode: Some(permission::mode(&state.spec.permissions).to_owned()),
        agent: Some((state.name.clone(), state.id.to_string())),
        generation: Some(state.generation()),
        turn: turn.map(|turn| turn.to_string()),
        op: fire.op.map(|op| op.to_string()),
        session_title,
        background_tasks: tasks.collect(),
    };
    let env_file = is_start.then(|| daemon.layout.env_file(desk.id, conversation));
    let env = run::environment(
        fire.occasion.event,
        &guard.env,
        &state.spec.env,
        daemon.layout.home(),
        &setting,
        env_file.as_deref(),
    );
    Some(Scene {
        sources,
        conversation,
        setting,
        env,
        secrets: daemon.secrets_of(&guard),
        confined: sandbox::of_agent(daemon, desk.id, &state.spec, &guard.env, &cwd),
        cwd,
    })
}

async fn carry_out(daemon: Arc<Daemon>, desk: Arc<Desk>, job: Job) {
    let done = caught("a hook", run::run(&daemon, &job)).await;
    let done = done.unwrap_or_else(|Died| Done::unknown());
    record::end(&daemon, &desk, job.hook, done).await;
    job.remove_folder();
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
pub fn has_any(daemon: &Daemon, guard: &crate::desk::Guard<'_>, fire: &Fire) -> bool {
    let state = &guard.state;
    if state.is_held() {
        return false;
    }
    let cwd = run::work_folder(state.spec.cwd.as_deref(), daemon.layout.home());
    let sources = sources::of_agent(daemon, &state.spec, &cwd).into_iter();
    let layers: Vec<(Layer, _)> = sources.filter_map(sources::Source::usable).collect();
    !chosen(&layers, &fire.occasion).is_empty()
}
