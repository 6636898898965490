//! A process that asks an agent's program to delete the session of a purged conversation. It is this program, started by
//! the daemon as a task. It starts the agent's program as the agent's runtime does, in the same sandbox, and ends it.

use super::rpc::{self, Arrived, Connection, Incoming, Waiter};
use crate::outer::start::{self, ChildOptions, How};
use crate::outer::talk::Bounds;
use crate::worker;
use agentd_core::outer::acp::work::{ARGUMENT, Report, Work};
use agentd_core::outer::acp::{self, Capabilities, Offer};
use agentd_core::secrets::Secrets;
use agentd_process::task::{ShimProgram, Task};
use serde_json::json;
use std::ffi::OsString;
use std::io;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a program may still run when its output has ended.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// If this process was started for this: does the work and never returns.
pub fn run_if_asked(args: impl IntoIterator<Item = OsString>) {
    worker::run_if_asked(args, ARGUMENT, report);
}

async fn report(work: Work) -> io::Result<Report> {
    let secrets = Secrets::new(work.secrets);
    let options = ChildOptions {
        program: work.program,
        args: work.args,
        env: work.env,
        cwd: work.cwd,
        dir: work.state,
        confined: work.confined.map(serde_json::from_value).transpose()?,
        limits: serde_json::from_value(work.limits)?,
        bounds: Bounds::default(),
        shim: ShimProgram::default(),
        lab: None,
        secrets: secrets.clone(),
    };
    let limit = Duration::from_millis(work.time_limit_ms);
    let report = delete(&options, &work.session, limit).await;
    Ok(report.unwrap_or_else(|why| Report::Failed(secrets.redact(&why))))
}

/// Starts the program, asks it, and ends it with all its processes. An error is for users.
async fn delete(options: &ChildOptions, session: &str, limit: Duration) -> Result<Report, String> {
    let attached = options.start(&[]).await?;
    let task = attached.task.clone();
    let (connection, incoming) = rpc::connect(&task, attached.stdin, attached.stdout);
    tokio::spawn(serve(connection.clone(), incoming));
    let asked = tokio::time::timeout(limit, ask(&connection, session)).await;
    let report = match asked {
        Err(_) => Err(format!(
            "the agent's program did not delete the session within {} s",
            limit.as_secs()
        )),
        Ok(Err(why)) if !connection.is_open() => {
            Err(how_it_ended(&task, options).await.unwrap_or(why))
        }
        Ok(report) => report,
    };
    let how = match report {
        Ok(_) => How::Ask,
        Err(_) => How::Kill,
    };
    start::end(&task, how).await;
    report
}

/// `None` if the program has closed its output and still runs.
async fn how_it_ended(task: &Task, options: &ChildOptions) -> Option<String> {
    let name = options.name();
    let ended = tokio::time::timeout(END_PATIENCE, start::ended(task, &name)).await;
    ended.ok().map(|(_, how)| how)
}

async fn ask(connection: &Connection, session: &str) -> Result<Report, String> {
    let hello = acp::initialize(env!("CARGO_PKG_VERSION"), Offer::Nothing);
    let answer = connection.request("initialize", hello).await;
    let unknown = Capabilities::default();
    let answer = answer.map_err(|error| acp::failure("initialize", &error, &unknown))?;
    acp::check_version(&answer)?;
    let capabilities = Capabilities::of(&answer);
    if !capabilities.delete {
        return Ok(Report::NotOffered);
    }
    let params = json!({"sessionId": session});
    let deleted = connection.request("session/delete", params).await;
    deleted.map_err(|error| acp::failure("session/delete", &error, &capabilities))?;
    Ok(Report::Deleted)
}

/// Passes answers on until the program's output ends. What the program itself asks for is refused.
async fn serve(connection: Connection, mut incoming: mpsc::Receiver<Arrived>) {
    while let Some(arrived) = incoming.recv().await {
        match arrived.message {
            Incoming::Answer { id, answer } => {
                if let Some(Waiter::Request(waiter)) = connection.take_waiter(id) {
                    let _gone = waiter.send(answer);
                }
            }
            Incoming::Request { id, .. } => {
                connection.refuse(&id, "agentd only deletes a session");
            }
            Incoming::Notification { .. } => {}
        }
    }
    connection.close();
}
