//! `agentd mcp`.

use crate::error::{Error, Exit};
use crate::output::Output;
use crate::render::table::{Head, table};
use crate::{complete, connect, keys};
use agentd_client::Client;
use agentd_client::api::{McpAsk, McpCall, McpEntry, McpOffer, McpServers};
use agentd_core::event::McpLifeCycle;
use agentd_core::mcp::Source;
use agentd_core::plain::only_plain;
use clap::Subcommand;
use serde_json::{Map, Value, json};
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  agentd mcp list coder
  agentd mcp check coder
  agentd mcp tools coder files
  agentd mcp call coder files read_file '{\"path\": \"README.md\"}'

The servers are in `mcp` of the agent file, in `[agents.mcp]` of config.toml, and in a trusted `.mcp.json` of the project. \
They run in the sandbox of the agent's tools.";

/// Characters of a description that are shown.
const DESCRIPTION: usize = 60;

/// List, check and use the MCP servers of an agent
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the servers in the settings of an agent, and what is known about them; starts none
    #[command(
        after_help = "Examples:\n  agentd mcp list coder\n  agentd mcp list coder --json | jq '.servers[].name'"
    )]
    List(Of),
    /// Start each server of an agent, or one of them, and report whether it works
    #[command(
        after_help = "Examples:\n  agentd mcp check coder\n  agentd mcp check coder files\n\nExit: 0 all servers work, 1 at least one does not."
    )]
    Check {
        #[command(flatten)]
        of: Of,
        /// The server [default: all servers of the agent]
        #[arg(add = complete::mcp_servers())]
        server: Option<String>,
    },
    /// Start a server and list its tools
    #[command(
        after_help = "Examples:\n  agentd mcp tools coder files\n  agentd mcp tools coder files --json | jq '.tools[].parameters'"
    )]
    Tools {
        #[command(flatten)]
        of: Of,
        /// The server
        #[arg(add = complete::mcp_servers())]
        server: String,
    },
    /// Call a tool of a server; the model does not see it
    #[command(
        after_help = "Examples:\n  agentd mcp call coder files read_file '{\"path\": \"README.md\"}'\n\nExit: 0 the call succeeded, 1 the tool reports an error, 4 the server cannot be used."
    )]
    Call {
        #[command(flatten)]
        of: Of,
        /// The server
        #[arg(add = complete::mcp_servers())]
        server: String,
        /// The tool, by the server's own name
        tool: String,
        /// The arguments, a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
    },
}

#[derive(Debug, clap::Args)]
struct Of {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    match &args.verb {
        Verb::List(of) => list(of, out).await,
        Verb::Check { of, server } => check(of, server.as_deref(), out).await,
        Verb::Tools { of, server } => tools(of, server, out).await,
        Verb::Call {
            of,
            server,
            tool,
            arguments,
        } => call(of, server, tool, arguments, out).await,
    }
}

async fn list(of: &Of, out: &mut Output) -> Result<(), Error> {
    let servers = connect::client().await?.mcp_servers(&of.name).await?;
    match of.json {
        true => out.json(&servers),
        false => print(&servers, &of.name, out),
    }
}

fn print(servers: &McpServers, name: &str, out: &mut Output) -> Result<(), Error> {
    for file in &servers.untrusted {
        let dir = Path::new(file).parent().unwrap_or(Path::new("."));
        out.aside(format_args!(
            "{}: its servers are not used, because it is not trusted\n  next: look at it, then `agentd trust {}`",
            only_plain(file),
            only_plain(&dir.display().to_string())
        ))?;
    }
    for skipped in &servers.skipped {
        out.aside(format_args!("skipped: {}", only_plain(skipped)))?;
    }
    if servers.servers.is_empty() {
        return out.line(format_args!("{name} has no MCP servers"));
    }
    let rows: Vec<_> = servers.servers.iter().map(row).collect();
    let head = [
        Head::Kept("SERVER"),
        Head::Kept("FROM"),
        Head::Kept("TOOLS"),
        Head::Spare("TARGET", 0),
        Head::Spare("PROBLEM", 1),
    ];
    for line in table(&head, &rows, out.width()) {
        out.line(line)?;
    }
    Ok(())
}

fn row(entry: &McpEntry) -> Vec<String> {
    let source = match entry.source {
        Source::Agent => "agent",
        Source::Project => ".mcp.json",
        Source::Lent => "editor",
    };
    let tools = entry.tools.map(|tools| tools.to_string());
    let text = |text: &Option<String>| only_plain(text.as_deref().unwrap_or("-"));
    vec![
        entry.name.clone(),
        source.to_owned(),
        tools.unwrap_or_else(|| "-".to_owned()),
        text(&entry.target),
        text(&entry.problem),
    ]
}

async fn ask(client: &Client, name: &str) -> Result<McpAsk, Error> {
    let env = keys::env_of(client, name).await?;
    Ok(McpAsk { env })
}

async fn check(of: &Of, server: Option<&str>, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let ask = ask(&client, &of.name).await?;
    let servers = match server {
        Some(server) => vec![server.to_owned()],
        None => {
            let all = client.mcp_servers(&of.name).await?.servers;
            all.into_iter().map(|entry| entry.name).collect()
        }
    };
    let (mut checked, mut broken) = (Vec::new(), 0);
    for server in servers {
        if !of.json {
            out.progress(format_args!("{server}: starting …"))?;
        }
        let offer = client.mcp_tools(&of.name, &server, &ask).await;
        let offer = offer.map_err(|error| problem(&error));
        broken += usize::from(offer.is_err());
        if of.json {
            checked.push(match offer {
                Ok(offer) => json!({"server": server, "ok": true, "life_cycle": offer.life_cycle, "tools": offer.tools.len()}),
                Err(problem) => json!({"server": server, "ok": false, "problem": problem}),
            });
            continue;
        }
        match offer {
            Ok(offer) => out.line(format_args!(
                "{server}: ok, {} tools, {}",
                offer.tools.len(),
                revision(&offer)
            ))?,
            Err(problem) => out.line(format_args!("{server}: {}", only_plain(&problem)))?,
        }
    }
    if of.json {
        out.json(&json!({ "servers": checked }))?;
    }
    match broken {
        0 => Ok(()),
        broken => {
            let what = format!("{broken} of the MCP servers cannot be used");
            let error = Error::new(Exit::Failed, what);
            Err(if of.json { error.printed() } else { error })
        }
    }
}

/// What is wrong, with the reason.
fn problem(error: &agentd_client::Error) -> String {
    match error {
        agentd_client::Error::Problem(problem) => match &problem.detail {
            Some(why) => format!("{}: {why}", problem.title),
            None => problem.title.clone(),
        },
        error => error.to_string(),
    }
}

const fn revision(offer: &McpOffer) -> &'static str {
    match offer.life_cycle {
        McpLifeCycle::Stateless => "revision 2026-07-28",
        McpLifeCycle::Handshake => "an earlier revision, with a handshake",
    }
}

async fn tools(of: &Of, server: &str, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let ask = ask(&client, &of.name).await?;
    if !of.json {
        out.progress(format_args!("{server}: starting …"))?;
    }
    let offer = client.mcp_tools(&of.name, server, &ask).await?;
    if of.json {
        return out.json(&offer);
    }
    if offer.tools.is_empty() {
        return out.line(format_args!("{server} has no tools"));
    }
    let rows: Vec<Vec<String>> = offer
        .tools
        .iter()
        .map(|tool| {
            let line = only_plain(tool.description.lines().next().unwrap_or_default());
            let may = match tool.read_only {
                true => "read-only",
                false => "-",
            };
            vec![
                tool.tool.clone(),
                may.to_owned(),
                line.chars().take(DESCRIPTION).collect(),
            ]
        })
        .collect();
    let head = [
        Head::Kept("TOOL"),
        Head::Kept("MARKED"),
        Head::Spare("DESCRIPTION", 0),
    ];
    for line in table(&head, &rows, out.width()) {
        out.line(line)?;
    }
    Ok(())
}

async fn call(
    of: &Of,
    server: &str,
    tool: &str,
    arguments: &str,
    out: &mut Output,
) -> Result<(), Error> {
    let arguments: Map<String, Value> = serde_json::from_str(arguments).map_err(|error| {
        Error::new(Exit::Usage, "the arguments are not a JSON object").because(error)
    })?;
    let client = connect::client().await?;
    let env = ask(&client, &of.name).await?.env;
    let call = McpCall {
        tool: tool.to_owned(),
        arguments,
        env,
    };
    let called = client.mcp_call(&of.name, server, &call).await?;
    match of.json {
        true => out.json(&called)?,
        false => {
            out.line(only_plain(called.text.trim_end()))?;
            if called.images > 0 {
                out.aside(format_args!("{} images are not shown", called.images))?;
            }
        }
    }
    match called.is_error {
        false => Ok(()),
        true => {
            let error = Error::new(Exit::Failed, "the tool reports an error");
            Err(if of.json { error.printed() } else { error })
        }
    }
}
