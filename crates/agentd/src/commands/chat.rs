//! `agentd chat`.

use crate::connect::Connection;
use crate::described::{Described, name_of};
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::{ask, chat, complete, providers};
use agentd_client::Client;
use agentd_client::api::{Agent, Create, List};
use agentd_core::event::Mode;
use std::io::{self, IsTerminal as _};

const EXAMPLES: &str = "\
Examples:
  agentd chat
  agentd chat coder

Without NAME, opens the persistent agent that was used last in this directory, or offers to create one; so does \
`agentd` alone. Enter sends a prompt, and while a turn runs it joins the turn; Esc interrupts the turn; /help shows \
all keys and commands. Ctrl-D leaves the chat: the agent continues, and `agentd chat` shows what it did meanwhile.";

/// How many agents are looked at, most recently used first.
const LOOKED_AT: usize = 500;

/// Talk to an agent on a full screen
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent [default: the last one of this directory]
    #[arg(add = complete::agents())]
    name: Option<String>,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    check_terminal()?;
    let mut connection = Connection::open().await?;
    let agent = match &args.name {
        Some(name) => connection.client.agent(name).await?,
        None => of_directory(&connection.client, out).await?,
    };
    chat::run(&mut connection, agent, out).await
}

/// Whether a command without any argument can open the chat.
pub fn is_possible() -> bool {
    check_terminal().is_ok() && ask::is_possible()
}

fn check_terminal() -> Result<(), Error> {
    let term = providers::variable("TERM");
    let is_dumb = term.is_none_or(|term| term == "dumb");
    if io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb {
        return Ok(());
    }
    Err(Error::new(Exit::Usage, "`agentd chat` needs a terminal")
        .because("standard input or output is not one, or it cannot move its cursor (TERM)")
        .next("`agentd send NAME PROMPT` sends a prompt and prints the answer"))
}

/// The agent of this directory that was used last, or a new one.
async fn of_directory(client: &Client, out: &mut Output) -> Result<Agent, Error> {
    let dir = Described::default().dir()?;
    let list = List {
        mode: Some(Mode::Persistent),
        words: true,
        limit: Some(LOOKED_AT),
        ..List::default()
    };
    let agents = client.agents(&list).await?.agents;
    let mut here = agents
        .iter()
        .filter(|agent| agent.parent.is_none() && agent.cwd.as_deref() == Some(dir.as_str()));
    if let Some(last) = here.next() {
        return Ok(client.agent(&last.id.to_string()).await?);
    }
    let proposed = name_of(&dir);
    let question = format!("No agent works in {dir} yet. Name of a new one [{proposed}]:");
    let Some(given) = ask::line(&question).await? else {
        return Err(Error::interrupted());
    };
    let name = if given.is_empty() { proposed } else { given };
    let catalog = providers::catalog()?;
    let spec = Described::default().spec(&catalog, out).await?;
    let env = providers::env(&catalog, &providers::env_names(&spec));
    let create = Create {
        name: Some(name),
        mode: Some(Mode::Persistent),
        spec,
        env,
        ..Create::default()
    };
    Ok(client.create(&create).await?.agent)
}
