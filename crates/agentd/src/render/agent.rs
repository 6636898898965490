//! One agent: in a line, or as an aligned list.

use crate::render::{approval, count, limit, plan, schedule, table, time, usage, word};
use agentd_client::api::{Agent, Approval, Child, LastTurn, ProcessState};
use agentd_core::event::PauseReason;
use agentd_core::state::Phase;
use agentd_core::time::Timestamp;

/// `coder is idle`, with the error if there is one.
pub fn line(agent: &Agent) -> String {
    let phase = match agent.phase {
        Phase::AwaitingApproval => "waiting for your approval".to_owned(),
        phase => phase.name().to_owned(),
    };
    let mut line = format!("{} is {phase}", agent.name);
    if let Some(error) = &agent.error
        && agent.phase != Phase::AwaitingApproval
    {
        line.push_str(&format!(": {error}"));
    }
    line
}

/// Why the next turn of an agent cannot begin yet, on one line: a limit of the home is reached.
pub fn held_back(agent: &Agent) -> Option<String> {
    let is_ready = matches!(agent.phase, Phase::Idle | Phase::Running) && agent.turn.is_none();
    let why = agent.error.as_deref().filter(|_| is_ready)?;
    Some(why.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What to do about an agent that waits for the user.
pub fn next(agent: &Agent) -> Option<String> {
    let name = &agent.name;
    match agent.phase {
        Phase::AwaitingApproval => {
            let yes = match agent.approvals.first().and_then(fields_to_fill_in) {
                Some(fields) => format!("`agentd answer {name} {fields}`"),
                None => format!("`agentd approve {name}`"),
            };
            Some(format!("{yes} or `agentd deny {name}`"))
        }
        Phase::Waiting if agent.paused == Some(PauseReason::MissingKey) => Some(format!(
            "`agentd secret set` with its key, or `agentd continue {name}` in a shell that has it"
        )),
        Phase::Waiting => Some(format!("`agentd continue {name}`")),
        Phase::Stopped | Phase::Failed => Some(format!("`agentd start {name}`")),
        _ => None,
    }
}

/// How the last turn continues if it ended at a limit and no turn has begun since.
pub fn continues(agent: &Agent) -> Option<String> {
    let last = agent.last_turn.as_ref().filter(|_| agent.turn.is_none())?;
    let (_, key) = limit::meaning(last.limit?);
    let name = &agent.name;
    Some(format!(
        "raise the limit with `agentd set {name} {key}=…`, then `agentd continue {name}`"
    ))
}

/// The status of the last turn, with the limit that it reached: `limited (cost of one turn)`.
pub fn last_status(turn: &LastTurn) -> String {
    let status = word(turn.status);
    match turn.limit.map(limit::meaning) {
        Some((what, _)) => format!("{status} ({what})"),
        None => status,
    }
}

/// The fields of a question that must be filled in, as `agentd answer` takes them. An approval without input would be refused.
fn fields_to_fill_in(approval: &Approval) -> Option<String> {
    let named = approval.question.as_ref()?.to_fill_in();
    (!named.is_empty()).then(|| named.join(" "))
}

/// `coder.1 (reviewer, in the background): completed`.
fn child(child: &Child) -> String {
    let background = child.background.then_some("in the background");
    let about: Vec<&str> = child
        .kind
        .as_deref()
        .into_iter()
        .chain(background)
        .collect();
    let about = match about.is_empty() {
        true => String::new(),
        false => format!(" ({})", about.join(", ")),
    };
    let state = child.outcome.map_or_else(|| "running".to_owned(), word);
    format!("{}{about}: {state}", child.name)
}

pub fn list(agent: &Agent, now: Timestamp) -> Vec<String> {
    let at = |at: Timestamp| format!("{} ({})", time::clock(at), time::ago(at, now));
    let process = match (agent.process.state, agent.process.pid) {
        (ProcessState::Up, Some(pid)) => format!("up (pid {pid})"),
        (ProcessState::Adopted, Some(pid)) => {
            format!("up (pid {pid}), started by an earlier daemon")
        }
        (state, _) => word(state),
    };
    let conversation = agent.conversation.as_ref().map(|current| {
        let turns = count(current.turns.into(), "turn");
        format!("{} ({turns})", current.ordinal)
    });
    let used_here = agent.conversation.as_ref();
    let used_here = used_here.map(|current| usage::all(&current.usage));
    let last_turn = agent.last_turn.as_ref();
    let untrusted = agent.untrusted_hooks.as_ref();
    let untrusted = untrusted
        .map(|path| format!("ignored: {path} is not trusted in its current state (agentd trust)"));
    let some = |text: &str| Some(text.to_owned());
    let many = |n: u64| (n > 0).then(|| n.to_string());
    let listed = |items: Vec<String>| (!items.is_empty()).then(|| items.join("\n"));
    table::pairs(&[
        ("name", some(&agent.name)),
        ("id", Some(agent.id.to_string())),
        ("aliases", listed(agent.aliases.clone())),
        ("mode", Some(word(agent.mode))),
        ("phase", some(agent.phase.name())),
        ("error", agent.error.clone()),
        ("tools", agent.no_tools.clone()),
        (
            "hooks",
            listed(
                agent
                    .broken_hooks
                    .iter()
                    .cloned()
                    .chain(untrusted)
                    .collect(),
            ),
        ),
        (
            "missing env",
            (!agent.missing_env.is_empty()).then(|| agent.missing_env.join(", ")),
        ),
        ("missing", listed(agent.missing_services.clone())),
        ("archived", agent.archived.then(|| "yes".to_owned())),
        ("process", Some(process)),
        ("provider", agent.provider.clone()),
        ("model", agent.model.clone()),
        ("directory", agent.cwd.clone()),
        ("conversation", conversation),
        ("title", agent.title.clone()),
        ("generation", Some(agent.generation.to_string())),
        ("turn", agent.turn.map(|turn| turn.to_string())),
        ("queued", many(agent.queued)),
        (
            "approvals",
            listed(
                agent
                    .approvals
                    .iter()
                    .map(|asked| approval::lines(asked).join("\n"))
                    .collect(),
            ),
        ),
        (
            "plan",
            agent.plan.as_ref().and_then(|set| listed(plan::lines(set))),
        ),
        (
            "tasks",
            listed(agent.tasks.iter().map(ToString::to_string).collect()),
        ),
        (
            "schedules",
            listed(
                agent
                    .schedules
                    .iter()
                    .map(|it| schedule::line(it, now))
                    .collect(),
            ),
        ),
        (
            "parent",
            agent.parent.as_ref().map(|parent| match &parent.name {
                Some(name) => name.clone(),
                None => format!("{} (not in this home)", parent.id),
            }),
        ),
        (
            "subagents",
            listed(agent.children.iter().map(child).collect()),
        ),
        (
            "last turn",
            last_turn.map(|turn| format!("{}, {}", last_status(turn), turn.id)),
        ),
        ("to continue", continues(agent)),
        ("used", used_here),
        ("used in all", Some(usage::all(&agent.usage))),
        ("created", Some(at(agent.created_at))),
        ("started", agent.started_at.map(at)),
        ("completed", agent.completed_at.map(at)),
        (
            "summary",
            agent
                .summary
                .as_ref()
                .map(|text| text.trim_end().to_owned()),
        ),
    ])
}
