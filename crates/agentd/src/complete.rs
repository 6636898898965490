//! Completion of values that come from the daemon. It does not start a daemon: completion changes nothing.

use crate::render::line_of;
use crate::{connect, providers};
use agentd_client::Client;
use agentd_client::api::{Conversations, List, OneConversation, Task};
use agentd_core::outbox::binding::shown_text;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

/// The variable that makes this program complete a command line instead of running it.
pub const VARIABLE: &str = "AGENTD_COMPLETE";

/// Timeout of a completion.
const PATIENCE: Duration = Duration::from_secs(1);
const MOST: usize = 200;
/// How many agents of a directory are listed.
const MOST_HERE: usize = 8;
/// Words of the command line that are tried as the name of an agent.
const TRIED: usize = 4;

/// The names of agents that are not archived.
pub fn agents() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| names(current, false))
}

/// The names of all agents, archived ones included.
pub fn archived() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut all = names(current, false);
        all.extend(names(current, true));
        all
    })
}

/// The names of archived agents.
pub fn only_archived() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| names(current, true))
}

/// The names of providers, those of config.toml included.
pub fn providers() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let catalog = providers::catalog().unwrap_or_default();
        fitting(
            current,
            catalog.providers().map(|it| (it.name.clone(), None)),
        )
    })
}

/// The names of known models, and who makes them.
pub fn models() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let catalog = providers::catalog().unwrap_or_default();
        let models = catalog.models();
        fitting(
            current,
            models.map(|it| (it.name.clone(), it.provider.clone())),
        )
    })
}

/// Keys with the `=` that `agentd set` wants after them.
pub fn settings(keys: &'static [&'static str]) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        fitting(current, keys.iter().map(|key| (format!("{key}="), None)))
    })
}

pub fn paths() -> ArgValueCompleter {
    ArgValueCompleter::new(PathCompleter::any())
}

/// The numbers of the agent's conversations.
pub fn conversations() -> ArgValueCompleter {
    of_agent(async |client, agent| {
        let all = client.conversations(&agent).await.ok()?;
        let newest = all.conversations.into_iter().rev().take(MOST);
        Some(
            newest
                .map(|it| (it.ordinal.to_string(), it.title))
                .collect(),
        )
    })
}

/// The numbers of the turns of a conversation.
pub fn turns() -> ArgValueCompleter {
    of_agent(async |client, agent| Some(turns_of(&conversation(&client, &agent).await?)))
}

/// The labels and turns that a branch may begin from.
pub fn branch_points() -> ArgValueCompleter {
    of_agent(async |client, agent| {
        let one = conversation(&client, &agent).await?;
        let labels = one.conversation.labels.iter();
        let labels = labels.map(|(label, seq)| (label.clone(), Some(format!("event {seq}"))));
        Some(labels.chain(turns_of(&one)).collect())
    })
}

/// The ids of the agent's background tasks.
pub fn tasks() -> ArgValueCompleter {
    of_agent(async |client, agent| {
        let tasks = client.tasks(&agent).await.ok()?.tasks;
        Some(tasks.into_iter().map(task).collect())
    })
}

/// The numbers of the prompts that wait for the agent.
pub fn queued() -> ArgValueCompleter {
    of_agent(async |client, agent| {
        let queue = client.queue(&agent).await.ok()?.prompts.into_iter();
        let queue = queue.map(|it| {
            let text = shown_text(&it.text).into_owned();
            (it.position.to_string(), Some(text))
        });
        Some(queue.take(MOST).collect())
    })
}

/// The names of the agent's schedules.
pub fn schedules() -> ArgValueCompleter {
    of_agent(async |client, agent| {
        let all = client.schedules(&agent).await.ok()?.schedules.into_iter();
        Some(all.map(|it| (it.name, it.prompt)).take(MOST).collect())
    })
}

/// The ids of all background tasks, and the names of agents.
pub fn tasks_and_agents() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut all = names(current, false);
        let tasks = ask(async |client| Some(client.all_tasks().await.ok()?.tasks));
        let tasks = tasks.unwrap_or_default().into_iter().map(task);
        all.extend(fitting(current, tasks));
        all
    })
}

/// The ids of the approvals that the agent waits for.
pub fn approvals() -> ArgValueCompleter {
    of_agent(async |client, agent| {
        let waiting = client.agent(&agent).await.ok()?.approvals.into_iter();
        Some(
            waiting
                .map(|it| (it.id.to_string(), it.what.map(|call| call.tool)))
                .collect(),
        )
    })
}

/// The names of the agent's MCP servers.
pub fn mcp_servers() -> ArgValueCompleter {
    of_agent(async |client, agent| {
        let servers = client.mcp_servers(&agent).await.ok()?.servers;
        Some(servers.into_iter().map(|it| (it.name, it.target)).collect())
    })
}

/// The variables from which providers read their keys.
pub fn key_names() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let catalog = providers::catalog();
        let names = catalog.map(|catalog| catalog.key_names());
        beginning_with(current, names.unwrap_or_default())
    })
}

/// The names of stored secrets.
pub fn stored_secrets() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| beginning_with(current, providers::stored()))
}

/// The addresses that are bound to agents.
pub fn addresses() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let all = ask(async |client| Some(client.bindings().await.ok()?.bindings));
        let all = all.unwrap_or_default().into_iter();
        fitting(current, all.map(|it| (it.address, it.agent.name)))
    })
}

fn beginning_with(current: &OsStr, names: BTreeSet<String>) -> Vec<CompletionCandidate> {
    fitting(current, names.into_iter().map(|name| (name, None)))
}

/// A value, and what a shell shows beside it.
type Value = (String, Option<String>);

/// The values that continue what was typed. The help may come from a model: a shell shows it on one line.
fn fitting(current: &OsStr, values: impl IntoIterator<Item = Value>) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let values = values.into_iter();
    let fitting = values.filter(|(value, _)| value.starts_with(&*current));
    let candidate = |(value, help): Value| {
        let help = help.map(|help| plain(&help).into());
        CompletionCandidate::new(value).help(help)
    };
    fitting.map(candidate).collect()
}

fn plain(help: &str) -> String {
    let is_plain = |c: &char| agentd_core::plain::is_plain(*c);
    line_of(help).chars().filter(is_plain).collect()
}

fn numbered(number: impl Display, words: Option<&String>) -> Value {
    (number.to_string(), words.cloned())
}

/// Newest first.
fn turns_of(one: &OneConversation) -> Vec<Value> {
    let ended = one.ended.iter().rev().take(MOST);
    ended
        .map(|turn| numbered(turn.number, turn.prompt.as_ref()))
        .collect()
}

fn task(task: Task) -> Value {
    (task.id.to_string(), task.command)
}

/// Completes values of the agent that the command line names before them.
fn of_agent(
    values: impl AsyncFn(Client, String) -> Option<Vec<Value>> + Send + Sync + 'static,
) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let found = ask(async |client| {
            let agent = named(&client).await?;
            values(client, agent).await
        });
        // Without an answer there is nothing to complete, and no way to report an error.
        fitting(current, found.unwrap_or_default())
    })
}

/// The words of the command line that is completed, after the program and the verb.
fn words() -> Vec<String> {
    let words = std::env::args().skip_while(|word| word != "--");
    words.skip(3).collect()
}

/// The first word that is the name of an agent.
async fn named(client: &Client) -> Option<String> {
    let words = words().into_iter();
    let words = words.filter(|word| !word.starts_with('-') && !word.is_empty());
    for word in words.take(TRIED) {
        if client.agent(&word).await.is_ok() {
            return Some(word);
        }
    }
    None
}

/// The conversation that `--conversation` names, or the current one.
async fn conversation(client: &Client, agent: &str) -> Option<OneConversation> {
    let words = words();
    let option = words.iter().position(|word| word == "--conversation");
    let given = option.and_then(|n| words.get(n + 1)).cloned();
    let which = match given {
        Some(given) => given,
        None => {
            let Conversations { current, .. } = client.conversations(agent).await.ok()?;
            current?.to_string()
        }
    };
    client.conversation(agent, &which).await.ok()
}

/// The names of the agents that work in the current directory, most recently used first; without a daemon, none.
pub fn agents_here() -> Vec<String> {
    let Ok(dir) = std::env::current_dir().and_then(|dir| dir.canonicalize()) else {
        return Vec::new();
    };
    let list = List {
        words: true,
        limit: Some(MOST),
        ..List::default()
    };
    let found = ask(async |client| Some(client.agents(&list).await.ok()?.agents));
    let here = found.unwrap_or_default().into_iter();
    let here = here.filter(|it| {
        it.parent.is_none() && it.cwd.as_deref().map(Path::new) == Some(dir.as_path())
    });
    here.map(|it| it.name).take(MOST_HERE).collect()
}

fn names(current: &OsStr, archived: bool) -> Vec<CompletionCandidate> {
    let list = List {
        prefix: Some(current.to_string_lossy().into_owned()),
        by_name: true,
        limit: Some(MOST),
        archived,
        ..List::default()
    };
    let found = ask(async |client| Some(client.agents(&list).await.ok()?.agents));
    let found = found.unwrap_or_default().into_iter();
    let phase = |phase: agentd_core::state::Phase| Some(phase.name().to_owned());
    fitting(current, found.map(|agent| (agent.name, phase(agent.phase))))
}

/// Asks the daemon, if one is running.
fn ask<T>(request: impl AsyncFnOnce(Client) -> Option<T>) -> Option<T> {
    let client: Client = connect::client_of_any().ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let asked = async { tokio::time::timeout(PATIENCE, request(client)).await };
    runtime.block_on(asked).ok()?
}
