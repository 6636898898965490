//! Asks an MCP server of an agent for the user: what it offers, or one call. A process of its own does it, with the code and
//! the sandbox of the agent's runtime, and takes the server with it when it ends. It ends with the daemon. Nothing of it is in
//! the journal.

use super::run_command::CommandScene;
use super::worker::{self, WorkDir};
use crate::clock;
use crate::daemon::{AgentHandle, Daemon};
use crate::error::{Error, Kind, Result};
use crate::project;
use crate::spawn::{blocking, spawn};
use agentd_client::api::{
    Env, LendServers, McpAsk, McpCall, McpCalled, McpEntry, McpGet, McpOffer, McpPrompt, McpRead,
    McpResource, McpServers, McpToolInfo,
};
use agentd_core::id::AgentId;
use agentd_core::mcp::file::Found;
use agentd_core::mcp::work::{ARGUMENT, Ask, Report, Work};
use agentd_core::mcp::{self, Server};
use agentd_core::spec::AgentSpec;
use std::path::PathBuf;
use std::sync::Arc;

/// Besides the time limit of a call: to start the server, perhaps three times, and to end it.
const EXTRA_MS: u64 = 180_000;

/// The servers in the agent's settings, and what its conversation knows about them.
pub async fn list(handle: &AgentHandle) -> Result<McpServers> {
    let (spec, env) = {
        let guard = handle.lock().await;
        (guard.state.spec.clone(), (*guard.env).clone())
    };
    let (daemon, id) = (handle.daemon.clone(), handle.id);
    let look = move || {
        let untrusted = untrusted(&daemon, &spec);
        (servers(&daemon, id, &spec, &env), untrusted)
    };
    let ((servers, skipped), untrusted) = blocking(look).await;
    let window = handle.daemon.store.load(handle.id).await?.window;
    let entries = servers.into_iter().map(|server| {
        let list = window.mcp_list(&server.known());
        let told = window.mcp_problem(&server.known()).map(str::to_owned);
        McpEntry {
            tools: list.map(|list| list.tools.len()),
            target: server.transport.as_ref().ok().map(ToString::to_string),
            problem: server.transport.err().or(told),
            source: server.source,
            name: server.name,
        }
    });
    Ok(McpServers {
        servers: entries.collect(),
        untrusted,
        skipped,
    })
}

/// The files of the project that would bring servers if they were trusted.
fn untrusted(daemon: &Daemon, spec: &AgentSpec) -> Vec<String> {
    let cwd = PathBuf::from(spec.cwd.clone().unwrap_or_default());
    let files = match spec.tools {
        None => project::mcp::untrusted(&daemon.layout, &cwd),
        Some(_) => Vec::new(),
    };
    let names = files.iter().map(|path| path.display().to_string());
    names.collect()
}

/// The agent's servers, and the entries of the project that cannot be used.
fn servers(
    daemon: &Daemon,
    agent: AgentId,
    spec: &AgentSpec,
    env: &Env,
) -> (Vec<Server>, Vec<String>) {
    let cwd = PathBuf::from(spec.cwd.clone().unwrap_or_default());
    // As in the agent's runtime: a list of tools is a restriction.
    let of_project = match spec.tools {
        None => project::mcp::servers(&daemon.layout, &cwd),
        Some(_) => Found::default(),
    };
    let value_of = |name: &str| env.get(name).filter(|it| !it.is_empty()).cloned();
    let withheld = mcp::withheld(spec, daemon.secret_names(agent));
    let lent = daemon.lent.of(agent);
    let servers = mcp::resolve(&spec.mcp, &lent, &of_project.servers, &withheld, &value_of);
    (servers, of_project.skipped)
}

/// Lends servers to an agent until the result is dropped.
pub async fn lend(handle: &AgentHandle, lend: LendServers) -> Result<Lease> {
    mcp::check_lent(&lend.servers).map_err(|why| {
        Error::new(Kind::Invalid, "these MCP servers cannot be lent").because(why)
    })?;
    let (daemon, agent) = (Arc::clone(&handle.daemon), handle.id);
    let number = daemon.lent.lend(agent, lend.servers);
    let lease = Lease {
        daemon,
        agent,
        number,
    };
    handle.lock().await.reconcile();
    Ok(lease)
}

/// Servers that a client lends. They are taken back when this is dropped.
pub struct Lease {
    daemon: Arc<Daemon>,
    agent: AgentId,
    number: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.daemon.lent.take_back(self.agent, self.number);
        let (daemon, agent) = (Arc::clone(&self.daemon), self.agent);
        // A process between two turns is replaced by one without them.
        spawn("lent servers", async move {
            if let Ok(handle) = daemon.any(&agent.to_string()).await {
                handle.lock().await.reconcile();
            }
        });
    }
}

pub async fn tools(handle: &AgentHandle, server: &str, ask: &McpAsk) -> Result<McpOffer> {
    let (asked, report) = ask_server(handle, server, Ask::Tools, &ask.env).await?;
    let Report::Tools { life_cycle, tools } = report else {
        return Err(failed(server, "its answer was not understood"));
    };
    let names = mcp::tool_names(server, tools.iter().map(|tool| tool.name.as_str()));
    let tools = names
        .into_iter()
        .zip(tools)
        .map(|(name, tool)| McpToolInfo {
            read_only: asked.read_only.contains(&tool.name),
            name: tool.name,
            tool: name,
            description: tool.description,
            parameters: tool.parameters,
        });
    Ok(McpOffer {
        server: server.to_owned(),
        life_cycle,
        tools: tools.collect(),
    })
}

pub async fn call(handle: &AgentHandle, server: &str, call: McpCall) -> Result<McpCalled> {
    let ask = Ask::Call {
        tool: call.tool,
        arguments: call.arguments,
    };
    match ask_server(handle, server, ask, &call.env).await?.1 {
        Report::Called {
            is_error,
            text,
            images,
        } => Ok(McpCalled {
            is_error,
            text,
            images,
        }),
        _ => Err(failed(server, "its answer was not understood")),
    }
}

pub async fn read(handle: &AgentHandle, server: &str, read: McpRead) -> Result<McpResource> {
    let ask = Ask::Read { uri: read.uri };
    match ask_server(handle, server, ask, &read.env).await?.1 {
        Report::Read(pieces) => Ok(McpResource { pieces }),
        _ => Err(failed(server, "its answer was not understood")),
    }
}

pub async fn prompt(handle: &AgentHandle, server: &str, get: McpGet) -> Result<McpPrompt> {
    let ask = Ask::Prompt {
        name: get.prompt,
        arguments: get.arguments,
    };
    match ask_server(handle, server, ask, &get.env).await?.1 {
        Report::Prompt(text) => Ok(McpPrompt { text }),
        _ => Err(failed(server, "its answer was not understood")),
    }
}

async fn ask_server(
    handle: &AgentHandle,
    name: &str,
    ask: Ask,
    env: &Env,
) -> Result<(Server, Report)> {
    let mut scene = CommandScene::for_server(&mut handle.lock().await, env)?;
    let daemon = handle.daemon.clone();
    let dir = daemon
        .layout
        .mcp_ask_dir(handle.id, &clock::new_id().to_string());
    let work_dir = WorkDir::new(dir.clone());
    let (at, wanted, agent) = (dir.clone(), name.to_owned(), handle.id);
    let (server, order, work) = blocking(move || {
        let (all, _) = servers(&daemon, agent, scene.spec(), scene.env());
        let known: Vec<String> = all.iter().map(|server| server.name.clone()).collect();
        let server = all.into_iter().find(|server| server.name == wanted);
        let server = server.ok_or_else(|| {
            let what = format!("the agent has no MCP server `{wanted}`");
            let why = match known.is_empty() {
                true => "its settings name none".to_owned(),
                false => format!("it has: {}", known.join(", ")),
            };
            Error::new(Kind::NotFound, what).because(why)
        })?;
        let limit = server.timeout_ms.saturating_add(EXTRA_MS);
        // The order of a command has the environment and the sandbox of tools.
        let tools = scene.order(&daemon, "", limit)?;
        worker::make_dir(&at).map_err(|error| failed(&server.name, error))?;
        let work = Work {
            server: server.clone(),
            ask,
            cwd: tools.cwd.clone(),
            state: at.join("server"),
            env: tools.env,
            confined: tools.confined.and_then(|it| serde_json::to_value(it).ok()),
            secrets: [tools.redact, mcp::secrets(std::slice::from_ref(&server))].concat(),
        };
        let order = worker::order(ARGUMENT, limit);
        Ok::<_, Error>((server, order, work))
    })
    .await?;
    let report = worker::run::<Report>(&dir, order, &work).await;
    work_dir.remove().await;
    match report.map_err(|why| failed(name, why))? {
        Report::Failed(why) => Err(failed(name, why)),
        report => Ok((server, report)),
    }
}

/// Removes what questions to servers left that an earlier daemon did not end. Their processes end with their daemon.
pub async fn remove_left(daemon: &Daemon) {
    let layout = daemon.layout.clone();
    for dir in blocking(move || layout.all_mcp_asks()).await {
        worker::remove_when_ended(dir);
    }
}

fn failed(server: &str, why: impl std::fmt::Display) -> Error {
    let what = format!("the MCP server `{server}` cannot be used");
    Error::new(Kind::Unavailable, what).because(why)
}
