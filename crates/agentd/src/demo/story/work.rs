//! An agent works with real tools.

use crate::demo::claims::Claims;
use crate::demo::daemon::{DemoDaemon, NAME};
use crate::demo::evidence::is_so;
use crate::error::Error;
use agentd_client::api::Status;
use agentd_core::event::Kind;

const POEM: &str = "A turn may break, a process die;\nthe words stay where they are.\n";
const PROMPT: &str =
    "write notes.txt: short; then list the files here and count the lines of the largest";

pub async fn tell(claims: &mut Claims<'_>, demo: &mut DemoDaemon) -> Result<(), Error> {
    claims.step("Start a daemon and give an agent a task")?;
    let daemon = demo.client().daemon().await?;
    claims.check(
        "the daemon is running: it is this same program",
        is_so(
            daemon.home == demo.home.display().to_string(),
            format!("process {}", daemon.pid),
            format!("its state directory is {}", daemon.home),
        ),
    )?;
    demo.write("poem.txt", POEM)?;
    claims.say(&format!("agentd create {NAME} --provider demo"))?;
    demo.create().await?;
    let sent = demo.send(claims, PROMPT).await?;
    let answer = demo.finish(claims, &sent).await?;
    let journal = demo.journal(claims).await?;
    let tools = journal.count(answer.turn, Kind::ToolStarted);
    claims.check(
        "the agent used three tools and answered",
        is_so(
            answer.status == Status::Completed && tools == 3,
            "",
            format!("the turn is {:?}, {tools} tools", answer.status),
        ),
    )?;
    let written = demo.read("notes.txt");
    let counted = format!("{} poem.txt", POEM.lines().count());
    claims.check(
        "the file that it wrote exists, and its count is correct",
        is_so(
            written.trim_end() == "short" && answer.text.contains(&counted),
            counted.as_str(),
            format!("the file is {written:?}, the answer is {:?}", answer.text),
        ),
    )
}
