//! The agent's process is killed while one of its commands runs.

use crate::demo::claims::Claims;
use crate::demo::command;
use crate::demo::daemon::{DemoDaemon, cannot, is_alive, kill, until};
use crate::demo::evidence::is_so;
use crate::error::{Error, Exit};
use agentd_client::api::Status;
use agentd_core::event::Kind;
use agentd_process::Identity;

/// The command waits until the demo creates `go`, so that the kill does not depend on timing. The wait is limited.
const BUILD: &str = "\
echo $$ > build.pid.new && mv build.pid.new build.pid
n=0
until [ -e go ] || [ $n -gt 1000 ]; do sleep 0.02; n=$((n + 1)); done
echo built >> effects.txt
echo the work is done
";
const PROMPT: &str = "run `sh build.sh`";

pub async fn tell(claims: &mut Claims<'_>, demo: &mut DemoDaemon) -> Result<(), Error> {
    claims.step("kill -9 the agent's process while a command runs")?;
    demo.write("build.sh", BUILD)?;
    let sent = demo.send(claims, PROMPT).await?;
    demo.watch(claims, |event| event.kind() == Kind::ToolStarted)
        .await?;
    let own_pid = until(async || Ok(demo.read("build.pid").trim().parse().ok())).await?;
    let none = || {
        Error::new(
            Exit::Unavailable,
            "the demo cannot find the command's process",
        )
    };
    let pid = command::pid_of(own_pid, &demo.tree).ok_or_else(none)?;
    let command = Identity::of(pid).map_err(|error| cannot("identify the command", error))?;
    let before = demo.process().await?;
    kill(before).await?;
    claims.check(
        "the agent's process is dead and could not clean up",
        is_so(
            !is_alive(before)?,
            format!("process {}, signal 9", before.pid),
            "it is alive",
        ),
    )?;
    claims.check(
        "the command that it had started is still running",
        is_so(
            is_alive(command)? && demo.read("effects.txt").is_empty(),
            format!("process {pid}"),
            "it is not running any more",
        ),
    )?;

    let after = until(async || {
        let pid = demo.agent().await?.process.pid;
        Ok(pid.filter(|pid| *pid != before.pid))
    })
    .await?;
    claims.check(
        "the daemon has started a new process by itself",
        is_so(
            after != before.pid,
            format!("process {after}"),
            "it is the same process",
        ),
    )?;
    demo.write("go", "")?;
    let answer = demo.finish(claims, &sent).await?;
    let times = demo.read("effects.txt").lines().count();
    let journal = demo.journal(claims).await?;
    let started = journal.count(answer.turn, Kind::ToolStarted);
    claims.check(
        "the command was not run a second time",
        is_so(
            times == 1 && started == 1,
            "once",
            format!("it ran {times} times, and was started {started} times"),
        ),
    )?;
    claims.check(
        "the interrupted turn continued by itself and completed",
        is_so(
            answer.status == Status::Completed,
            "",
            format!("the turn is {:?}", answer.status),
        ),
    )?;
    claims.check(
        "the model received the real result of the command",
        is_so(
            answer.text.contains("the work is done"),
            "",
            format!("the answer is {:?}", answer.text),
        ),
    )
}
