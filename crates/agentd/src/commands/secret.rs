//! `agentd secret`.

use crate::error::{Error, Exit};
use crate::output::Output;
use crate::render::table::{Head, table};
use crate::render::time;
use crate::{ask, complete, connect, providers};
use agentd_client::Client;
use agentd_client::api::{List, SetSecret, StoredSecret};
use agentd_core::catalog::Catalog;
use agentd_core::outbox::webhook::SigningKey;
use agentd_daemon::clock;
use agentd_daemon::secrets::MAX_VALUE_BYTES;
use clap::Subcommand;
use serde_json::{Value, json};
use std::io::{self, IsTerminal as _, Read as _};

const EXAMPLES: &str = "\
Examples:
  agentd secret set ANTHROPIC_API_KEY          Prompts for the value without echo
  pass show anthropic | agentd secret set ANTHROPIC_API_KEY
  agentd secret list
  agentd secret rm ANTHROPIC_API_KEY

A secret is stored in a file in the state directory that only you can read and that no sandbox contains. Agents can use \
it without a shell that has the variable, also after a reboot. A variable of the shell that sends a prompt takes \
precedence over the secret; the secret takes precedence over the environment of the daemon. Tools and hooks do not get \
it, and it is redacted in their output. `agentd agent`, which has no daemon, does not use it.";

/// Agents that are looked at; the most recently used ones.
const AGENTS: usize = 200;

/// Store provider keys for unattended agents
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Store or replace a secret; its value is read from standard input
    #[command(
        after_help = "Examples:\n  agentd secret set OPENAI_API_KEY\n  agentd secret set OPENAI_API_KEY < key.txt\n\nTurns that wait for this key continue."
    )]
    Set {
        /// The variable from which the provider reads its key
        #[arg(value_name = "NAME", add = complete::key_names())]
        variable: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List the names of stored secrets, when each was set, and which providers use it
    #[command(
        after_help = "Examples:\n  agentd secret list\n  agentd secret list --json | jq -r '.secrets[].name'"
    )]
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Remove a stored secret
    #[command(
        after_help = "Examples:\n  agentd secret rm OPENAI_API_KEY\n\nAn agent that is using the secret keeps it until its turn ends."
    )]
    Rm {
        /// The name of the secret
        #[arg(value_name = "NAME", add = complete::stored_secrets())]
        variable: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    match &args.verb {
        Verb::Set { variable, json } => set(variable, *json, out).await,
        Verb::List { json } => list(*json, out).await,
        Verb::Rm { variable, json } => rm(variable, *json, out).await,
    }
}

async fn set(name: &str, json: bool, out: &mut Output) -> Result<(), Error> {
    let catalog = providers::catalog()?;
    // Checked before the user types a key that would be refused.
    agentd_daemon::secrets::check_name(name).map_err(|error| {
        Error::new(Exit::Usage, "this name cannot be used for a secret").because(error)
    })?;
    let client = connect::client().await?;
    let value = value(name).await?;
    let is_webhook = value.starts_with("whsec_");
    let unusable = SigningKey::parse(&value).err();
    let stored = client.set_secret(name, &SetSecret { value }).await?;
    if json {
        return out.json(&shown(&stored, &catalog));
    }
    let mut users = providers::users_of(&catalog, name);
    let webhooks = webhooks_of(&client, &catalog, name).await;
    // The messages of these webhooks cannot be signed with it.
    let unusable = unusable.filter(|_| !webhooks.is_empty());
    users.extend(webhooks);
    match users.is_empty() {
        false => {
            out.line(format_args!(
                "{name} is stored and used by {}",
                users.join(", ")
            ))?;
            if let Some(why) = unusable {
                out.aside(format_args!("warning: {why}"))?;
            }
            Ok(())
        }
        true if is_webhook => out.line(format_args!("{name} is stored")),
        true => match agents_with(&client, name).await.as_slice() {
            [] => {
                out.line(format_args!("{name} is stored"))?;
                out.aside(format_args!(
                    "warning: no provider, no webhook and no agent uses {name}; `agentd config` shows which variables are used, and config.toml can add others"
                ))
            }
            agents => out.line(format_args!(
                "{name} is stored and used by the settings of {}",
                agents.join(", ")
            )),
        },
    }
}

/// The agents whose settings, such as `env` and `mcp`, refer to the secret as `${NAME}`.
async fn agents_with(client: &Client, name: &str) -> Vec<String> {
    let list = List {
        limit: Some(AGENTS),
        ..List::default()
    };
    let Ok(found) = client.agents(&list).await else {
        return Vec::new();
    };
    let reference = format!("${{{name}}}");
    let mut users = Vec::new();
    for agent in found.agents {
        let Ok(spec) = client.spec(&agent.name).await else {
            continue;
        };
        if serde_json::to_string(&spec).is_ok_and(|text| text.contains(&reference)) {
            users.push(agent.name);
        }
    }
    users
}

/// The webhooks of notifications and of bindings whose messages this secret signs.
async fn webhooks_of(client: &Client, catalog: &Catalog, name: &str) -> Vec<String> {
    let webhooks = catalog.notify().webhooks.iter();
    let webhooks = webhooks.filter(|(_, webhook)| webhook.secret == name);
    let mut users: Vec<String> = webhooks.map(|(it, _)| format!("webhook `{it}`")).collect();
    // The secret is stored already: an answer that cannot be had is no error.
    let bindings = client.bindings().await.map(|answer| answer.bindings);
    let bindings = bindings.unwrap_or_default().into_iter();
    let bindings = bindings.filter(|binding| binding.secret == name);
    users.extend(bindings.map(|binding| format!("binding `{}`", binding.address)));
    users
}

/// Reads the value from the terminal without echo, or else all of standard input.
async fn value(name: &str) -> Result<String, Error> {
    let none = || Error::new(Exit::Usage, format!("no value was given for {name}"));
    if io::stdin().is_terminal() {
        let typed = ask::hidden(&format!("{name}:")).await?;
        return typed.filter(|value| !value.is_empty()).ok_or_else(none);
    }
    let read = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        let mut stdin = io::stdin().take(MAX_VALUE_BYTES as u64 + 2);
        stdin.read_to_end(&mut bytes).map(|_| bytes)
    });
    let read = read.await.map_err(io::Error::other).flatten();
    let bytes = read.map_err(|error| {
        Error::new(Exit::Unavailable, "standard input cannot be read").because(error)
    })?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| Error::new(Exit::Usage, "the value is not valid UTF-8"))?;
    match text.trim() {
        "" => Err(none().next(format!("`agentd secret set {name} < FILE`"))),
        value => Ok(value.to_owned()),
    }
}

fn shown(secret: &StoredSecret, catalog: &Catalog) -> Value {
    let set_at = agentd_client::api::time::rfc3339(secret.set_at);
    let providers = providers::users_of(catalog, &secret.name);
    json!({ "name": secret.name, "set_at": set_at, "providers": providers })
}

async fn list(json: bool, out: &mut Output) -> Result<(), Error> {
    let catalog = providers::catalog()?;
    let stored = connect::client().await?.secrets().await?.secrets;
    if json {
        let secrets: Vec<Value> = stored.iter().map(|it| shown(it, &catalog)).collect();
        return out.json(&json!({ "secrets": secrets }));
    }
    if stored.is_empty() {
        return out.line("no secrets");
    }
    let now = clock::now();
    let rows = stored.iter().map(|secret| {
        let users = providers::users_of(&catalog, &secret.name);
        let users = match users.is_empty() {
            true => "-".to_owned(),
            false => users.join(", "),
        };
        vec![secret.name.clone(), time::ago(secret.set_at, now), users]
    });
    let rows: Vec<_> = rows.collect();
    for line in table(&["NAME", "SET", "PROVIDERS"].map(Head::Kept), &rows, None) {
        out.line(line)?;
    }
    Ok(())
}

async fn rm(name: &str, json: bool, out: &mut Output) -> Result<(), Error> {
    let catalog = providers::catalog()?;
    let removed = connect::client().await?.remove_secret(name).await?;
    match json {
        true => out.json(&shown(&removed, &catalog)),
        false => out.line(format_args!("{name} is no longer stored")),
    }
}
