//! Lists, checks and tests hooks.

use super::run::{self, Job};
use super::sandbox;
use crate::clock;
use crate::daemon::Daemon;
use crate::error::{Error, Kind, Result};
use crate::hook_sources::{self, Source};
use crate::spawn::{blocking, spawn};
use agentd_client::api::{
    CheckedHooks, HookLine, HookList, HookSource, HookState, HooksQuery, TestHooks, TestedHook,
    TestedHooks,
};
use agentd_core::hook::{Config, HookInput, Layer, Setting, Verdict, chosen};
use agentd_core::id::HookId;
use agentd_core::permission;
use agentd_core::secrets::Secrets;
use agentd_core::spec::{AgentSpec, Runtime};
use std::sync::Arc;

/// Whose hooks are listed or tested: an agent's, or those of a directory.
struct Whose {
    spec: AgentSpec,
    cwd: Option<String>,
    agent: Option<(String, String)>,
    env: Arc<agentd_client::api::Env>,
    secrets: Secrets,
}

async fn whose(daemon: &Arc<Daemon>, agent: Option<&str>, cwd: Option<&str>) -> Result<Whose> {
    let Some(name) = agent else {
        return Ok(Whose {
            spec: AgentSpec::default(),
            cwd: cwd.map(str::to_owned),
            agent: None,
            env: daemon.envs.own(),
            secrets: daemon.own_secrets(),
        });
    };
    let handle = daemon.any(name).await?;
    let guard = handle.lock().await;
    let spec = (*guard.state.spec).clone();
    Ok(Whose {
        cwd: cwd.map(str::to_owned).or_else(|| spec.cwd.clone()),
        agent: Some((guard.state.name.clone(), guard.state.id.to_string())),
        env: Arc::clone(&guard.env),
        secrets: guard.secrets(),
        spec,
    })
}

pub async fn list(daemon: &Arc<Daemon>, query: &HooksQuery) -> Result<HookList> {
    let whose = whose(daemon, query.agent.as_deref(), query.cwd.as_deref()).await?;
    let sources = hook_sources::of(daemon, &whose.spec.hooks, whose.cwd.as_deref()).await;
    let mut hooks: Vec<HookLine> = Vec::new();
    for source in &sources.all {
        for group in &source.config.groups {
            for handler in &group.handlers {
                let shown = handler.run.shown();
                let is_known = hooks.iter().any(|known| {
                    let is_same = known.event == group.event && known.run == shown;
                    is_same && known.state == HookState::Active && known.matcher == group.pattern
                });
                let runtimes = [Runtime::Native, Runtime::Acp, Runtime::Command];
                let limit = handler.timeout_ms.unwrap_or(group.event.time_limit_ms());
                hooks.push(HookLine {
                    event: group.event,
                    matcher: group.pattern.clone(),
                    layer: source.layer,
                    run: shown,
                    handler: handler.digest(),
                    timeout_ms: limit,
                    is_async: handler.is_async,
                    on_failure: handler.on_failure,
                    state: match (source.is_trusted, is_known) {
                        (false, _) => HookState::Untrusted,
                        (true, true) => HookState::Repeated,
                        (true, false) => HookState::Active,
                    },
                    can_block: group.event.can_block(),
                    runtimes: runtimes
                        .into_iter()
                        .filter(|runtime| group.event.can_invoke_for(*runtime))
                        .collect(),
                });
            }
        }
    }
    let sources = sources.all.iter().map(shown).collect();
    Ok(HookList { sources, hooks })
}

fn shown(source: &Source) -> HookSource {
    HookSource {
        layer: source.layer,
        path: source.path.as_ref().map(|path| path.display().to_string()),
        hash: source.hash.clone(),
        trusted: source.is_trusted,
        problems: source.config.problems.clone(),
    }
}

pub fn check(text: &str) -> CheckedHooks {
    let config = Config::parse(text);
    let handlers = config.groups.iter().map(|group| group.handlers.len());
    CheckedHooks {
        handlers: handlers.sum::<usize>() as u64,
        ok: !config.has_errors(),
        problems: config.problems,
    }
}

/// Runs the handlers that an event would run, and writes nothing to a journal.
pub async fn test(daemon: &Arc<Daemon>, ask: TestHooks) -> Result<TestedHooks> {
    if let Some(name) = &ask.agent {
        let handle = daemon.any(name).await?;
        handle.lock().await.check_released()?;
    }
    let whose = whose(daemon, ask.agent.as_deref(), ask.cwd.as_deref()).await?;
    let mut hook_input = HookInput::sample(ask.event);
    hook_input.fields.extend(ask.fields);
    let sources = hook_sources::of(daemon, &whose.spec.hooks, whose.cwd.as_deref()).await;
    if let Some(broken) = sources.broken() {
        return Err(Error::new(Kind::Invalid, broken).next("`agentd hooks check` shows where"));
    }
    let cwd = sources.cwd.clone();
    let layers = sources.usable();
    let setting = Setting {
        session_id: Some(clock::new_id().to_string()),
        cwd: cwd.display().to_string(),
        permission_mode: Some(permission::mode(&whose.spec.permissions).to_owned()),
        agent: whose.agent.clone(),
        ..Setting::default()
    };
    let home = daemon.layout.home();
    let mut running = Vec::new();
    for chosen in chosen(&layers, &hook_input, &cwd) {
        let hook = HookId::new(clock::new_id());
        let dir = daemon.layout.hook_dir(hook);
        let confined = match chosen.layer {
            Layer::User => Ok(None),
            Layer::Spec | Layer::Project => {
                let own = dir.join("sandbox");
                sandbox::in_dir(daemon, &own, None, &whose.spec, &whose.env, &cwd)
            }
        };
        let job = Job {
            hook,
            agent: None,
            dir,
            confined,
            input: hook_input.input(&setting, chosen.call.as_ref()).to_string(),
            hook_input: hook_input.clone(),
            env: run::environment(ask.event, &whose.env, &whose.spec.env, home, &setting, None),
            secrets: whose.secrets.clone(),
            cwd: cwd.clone(),
            chosen,
        };
        let daemon = Arc::clone(daemon);
        running.push(spawn("hook test", async move {
            let job = job.with_dir(&daemon.layout).await;
            let done = run::run(&daemon, &job).await;
            let tested = TestedHook {
                layer: job.chosen.layer,
                run: job.chosen.handler.run.shown(),
                outcome: done.outcome,
                exit: done.exit,
                timed_out: done.timed_out,
                duration_ms: done.duration_ms,
                answer: done.answer,
            };
            blocking(move || job.remove_dir()).await;
            tested
        }));
    }
    let mut runs = Vec::new();
    for one in running {
        let Ok(Ok(run)) = one.await else {
            return Err(Error::new(Kind::Internal, "a hook could not be tested"));
        };
        runs.push(run);
    }
    let answers = runs.iter().map(|run| (run.outcome, run.answer.clone()));
    Ok(TestedHooks {
        input: hook_input.input(&setting, None),
        verdict: Verdict::of(ask.event, answers),
        runs,
    })
}
