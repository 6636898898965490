//! The agent's process dies while a command runs.

use super::{Scene, is_dead};
use crate::demo::claims::Claims;
use crate::demo::evidence::is_so;
use crate::error::{Error, Exit};
use agentd_process::Exit as Ended;

const PROMPT: &str = "run `sleep 1; echo once >> effects.txt; echo the work is done`";

pub async fn tell(claims: &mut Claims<'_>, scene: &mut Scene) -> Result<(), Error> {
    claims.step("Kill it while a command runs")?;
    claims.remark(PROMPT)?;
    let mut worker = scene.worker(&["--resume", &scene.home.to_string_lossy(), PROMPT])?;
    loop {
        let Some(line) = worker.next().await else {
            let what = "the agent's process ended before its command began";
            return Err(Error::new(Exit::Failed, what));
        };
        scene.hear(&line);
        if line.kind() == "tool_started" {
            break;
        }
    }
    let ended = worker.kill()?;
    claims.check(
        "it is dead, and had no chance to tidy up",
        is_dead(&worker, ended)?,
    )?;
    // What it said before it died, and nobody had read yet, counts as well.
    while let Some(line) = worker.next().await {
        scene.hear(&line);
    }

    claims.step("Resume it")?;
    let home = scene.home.to_string_lossy().into_owned();
    claims.remark("agentd agent --resume … --continue")?;
    let worker = scene.worker(&["--resume", &home, "--continue"])?;
    let (result, ended) = scene.finish(worker).await?;
    let effects = scene.read("effects.txt");
    // A command that had not begun when the kill came never will; then it has had no effect.
    let times = effects.lines().count();
    claims.check(
        "the command was not run a second time",
        is_so(
            times <= 1,
            format!("{times} time"),
            format!("{times} times"),
        ),
    )?;
    claims.check(
        "the turn that was cut off went on by itself, and completed",
        is_so(
            result.status() == "completed" && ended == Ended::Code(0),
            "",
            format!("the turn is {}, the process {ended:?}", result.status()),
        ),
    )?;
    let told = result.text().contains("the work is done");
    claims.check(
        "the model was told what really came of it",
        is_so(
            told || times == 0,
            "",
            format!("the answer is {:?}", result.text()),
        ),
    )?;
    scene.journal_is_whole(claims).await
}
