//! The last one-shot agent of a directory, and a fork of it: `agentd run --continue`.

use crate::described::{Described, settle_provider};
use crate::error::{Error, Exit};
use crate::providers;
use agentd_client::api::{AgentLine, Created, Fork, List, NewAttachment};
use agentd_client::{Client, Kind};
use agentd_core::event::Mode;
use agentd_core::spec::AgentSpec;
use agentd_core::state::Phase;

/// How many agents are looked at, most recently used first.
const LOOKED_AT: usize = 500;

/// A one-shot agent that continues the conversation of the last one with this prompt. The options change its settings.
pub async fn fork(
    client: &Client,
    options: &Described,
    prompt: String,
    attachments: Vec<NewAttachment>,
) -> Result<Created, Error> {
    let (last, stored) = find(client, &options.dir()?).await?;
    check_over(&last)?;
    let catalog = providers::catalog()?;
    let mut spec = stored.clone();
    options.apply(&mut spec)?;
    settle_provider(&mut spec, &catalog, &providers::stored())?;
    let passed = providers::env_names(&spec);
    let fork = Fork {
        mode: Some(Mode::Oneshot),
        spec: (spec != stored).then(|| Box::new(spec)),
        prompt: Some(prompt),
        attachments,
        env: providers::env(&catalog, &passed),
        ..Fork::default()
    };
    let forked = client.fork(&last.id.to_string(), &fork).await?;
    Ok(Created {
        agent: forked.agent,
        prompt: forked.prompt,
    })
}

/// The most recently used one-shot agent of this directory, and its settings. Archived agents and subagents do not count.
async fn find(client: &Client, dir: &str) -> Result<(AgentLine, AgentSpec), Error> {
    let list = List {
        mode: Some(Mode::Oneshot),
        limit: Some(LOOKED_AT),
        ..List::default()
    };
    let found = client.agents(&list).await?.agents;
    let is_full = found.len() == LOOKED_AT;
    for agent in found.into_iter().filter(|agent| agent.parent.is_none()) {
        match client.spec(&agent.id.to_string()).await {
            Ok(spec) if spec.cwd.as_deref() == Some(dir) => return Ok((agent, spec)),
            Ok(_) => {}
            // It was purged in the meantime.
            Err(agentd_client::Error::Problem(problem)) if problem.kind == Kind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    let what = match is_full {
        true => format!("none of the last {LOOKED_AT} one-shot agents worked in {dir}"),
        false => format!("no one-shot agent has worked in {dir}"),
    };
    Err(Error::new(Exit::NotFound, what)
        .next("`agentd run` without --continue begins a conversation; `agentd list` shows others"))
}

/// Refuses a turn that is not over: two agents would do the same work.
fn check_over(last: &AgentLine) -> Result<(), Error> {
    if matches!(last.phase, Phase::Idle | Phase::Stopped | Phase::Failed) {
        return Ok(());
    }
    let (name, phase) = (&last.name, last.phase.name());
    let what = format!("{name}, the last one-shot agent of this directory, is {phase}");
    Err(Error::new(Exit::Refused, what).next(match last.phase {
        Phase::AwaitingApproval => {
            format!("`agentd approve {name}` or `agentd deny {name}`; `agentd chat {name}` asks you and shows the rest")
        }
        Phase::Waiting => format!("`agentd continue {name}`, or `agentd interrupt {name}`"),
        _ => format!("`agentd wait {name}`, or `agentd interrupt {name}`"),
    }))
}
