//! A process that asks one MCP server for a user: `agentd mcp`. It is this program, started by the daemon as a task. It uses
//! the same code as an agent's runtime, so what it finds is what an agent would find.

use super::{BEGIN, BEGIN_WATCHED, Cut, Options, Servers};
use crate::worker;
use agentd_core::id::CallId;
use agentd_core::mcp::work::{ARGUMENT, Ask, Piece, Report, Work};
use agentd_core::secrets::Secrets;
use agentd_process::task::{Limits, ShimProgram};
use std::ffi::OsString;
use std::io;

/// If this process was started for this: does the work and never returns.
pub fn run_if_asked(args: impl IntoIterator<Item = OsString>) {
    worker::run_if_asked(args, ARGUMENT, report);
}

async fn report(work: Work) -> io::Result<Report> {
    let confined = work.confined.map(serde_json::from_value).transpose()?;
    let secrets = Secrets::new(work.secrets);
    let options = Options {
        cwd: work.cwd,
        state: work.state,
        env: work.env,
        confined,
        limits: Limits::default(),
        secrets: secrets.clone(),
        shim: ShimProgram::default(),
        lab: None,
        begin: match work.ask {
            Ask::Tools => BEGIN_WATCHED,
            _ => BEGIN,
        },
    };
    let name = work.server.name.clone();
    let servers = Servers::new(vec![work.server], options);
    // No question can be asked here: all are declined.
    drop(servers.news());
    let report = match work.ask {
        Ask::Tools => match servers.offer(&name).await {
            Ok(offer) => Report::Tools {
                life_cycle: offer.life_cycle,
                tools: offer.tools,
            },
            Err(error) => Report::Failed(secrets.redact(&error.to_string())),
        },
        Ask::Read { uri } => match servers.read(&name, &uri).await {
            Ok(pieces) => Report::Read(without_secrets(pieces, &secrets)),
            Err(error) => Report::Failed(secrets.redact(&error.to_string())),
        },
        Ask::Prompt {
            name: prompt,
            arguments,
        } => match servers.prompt(&name, &prompt, arguments).await {
            Ok(text) => Report::Prompt(secrets.redact(&text)),
            Err(error) => Report::Failed(secrets.redact(&error.to_string())),
        },
        Ask::Call { tool, arguments } => match servers.own_target(&name, &tool) {
            Ok(target) => match target
                .call(&CallId::new("mcp"), arguments, std::future::pending())
                .await
            {
                Ok(answer) => Report::Called {
                    is_error: answer.is_error,
                    text: secrets.redact(&answer.text),
                    images: answer.images.len(),
                },
                Err(Cut::Refused(text) | Cut::Unknown(text)) => {
                    Report::Failed(secrets.redact(&text))
                }
                Err(Cut::Cancelled) => Report::Failed("it was cancelled".to_owned()),
            },
            Err(error) => Report::Failed(error.to_string()),
        },
    };
    servers.close().await;
    Ok(report)
}

/// What a user attaches is in the journal.
fn without_secrets(mut pieces: Vec<Piece>, secrets: &Secrets) -> Vec<Piece> {
    for text in pieces.iter_mut().filter_map(|piece| piece.text.as_mut()) {
        *text = secrets.redact(text);
    }
    pieces
}
