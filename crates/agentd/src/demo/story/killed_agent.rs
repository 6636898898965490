//! The agent's process dies while a command of it runs.

use crate::demo::claims::Claims;
use crate::demo::daemon::{DemoDaemon, cannot, is_alive, kill, until};
use crate::demo::evidence::is_so;
use crate::error::Error;
use agentd_client::api::Status;
use agentd_core::event::Kind;
use agentd_process::Identity;

/// It waits for the demo, so that nobody has to hope for the right moment; and not for ever.
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
    let pid = until(async || Ok(demo.read("build.pid").trim().parse().ok())).await?;
    let command = Identity::of(pid).map_err(|error| cannot("look at the command", error))?;
    let before = demo.process().await?;
    kill(before).await?;
    claims.check(
        "the agent's process is dead, and had no chance to tidy up",
        is_so(
            !is_alive(before)?,
            format!("process {}, signal 9", before.pid),
            "it lives",
        ),
    )?;
    claims.check(
        "the command that it had started runs on",
        is_so(
            is_alive(command)? && demo.read("effects.txt").is_empty(),
            format!("process {pid}"),
            "it does not run any more",
        ),
    )?;

    let after = until(async || {
        let pid = demo.agent().await?.process.pid;
        Ok(pid.filter(|pid| *pid != before.pid))
    })
    .await?;
    claims.check(
        "the daemon has started another, without being asked",
        is_so(
            after != before.pid,
            format!("process {after}"),
            "it is the same",
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
        "the turn that was cut off went on by itself, and completed",
        is_so(
            answer.status == Status::Completed,
            "",
            format!("the turn is {:?}", answer.status),
        ),
    )?;
    claims.check(
        "the model was told what really came of it",
        is_so(
            answer.text.contains("the work is done"),
            "",
            format!("it says {:?}", answer.text),
        ),
    )
}
