//! An agent does something, with real tools.

use super::Scene;
use crate::demo::claims::Claims;
use crate::demo::evidence::is_so;
use crate::error::Error;
use agentd_process::Exit as Ended;

const PROMPT: &str = "write notes.txt: three small words; then run `wc -w < notes.txt`";

pub async fn tell(claims: &mut Claims<'_>, scene: &mut Scene) -> Result<(), Error> {
    claims.step("An agent at work")?;
    claims.remark(&format!("agentd agent --provider demo \"{PROMPT}\""))?;
    let worker = scene.worker(&["--provider", "demo", PROMPT])?;
    let (result, ended) = scene.finish(worker).await?;
    claims.check(
        "it wrote a file and ran a command, and answered",
        is_so(
            result.status() == "completed" && ended == Ended::Code(0),
            "",
            format!("the turn is {}, the process {ended:?}", result.status()),
        ),
    )?;
    let written = scene.read("notes.txt");
    claims.check(
        "the file is there, and its words were counted",
        is_so(
            written.trim_end() == "three small words" && result.text().contains('3'),
            "3 words",
            format!(
                "it holds {written:?}, and the answer is {:?}",
                result.text()
            ),
        ),
    )
}
