//! Steps 2 and 3: a process that works for the agent, and its end.

use crate::demo::claims::Claims;
use crate::demo::evidence::is_so;
use crate::demo::telling::Telling;
use crate::demo::victim::Victim;
use crate::error::{Error, Exit};
use agentd_core::id::{AgentId, Seq, TryId};
use agentd_process::{Exit as Ended, Signal};
use std::path::Path;

/// A reply of which so many pieces have come is the long one.
const PIECES_BEFORE_THE_KILL: u32 = 20;

/// What was said to be safe.
#[derive(Default)]
pub struct Told {
    pub acknowledged: Vec<Seq>,
    /// The reply that was under way, and how much of it.
    pub reply: Option<(TryId, u64)>,
    pieces: u32,
}

impl Told {
    fn hear(&mut self, telling: Telling) {
        match telling {
            Telling::Committed { first, last } => {
                self.acknowledged.extend((first.0..=last.0).map(Seq));
                // Whatever was streamed has become a message.
                self.reply = None;
                self.pieces = 0;
            }
            Telling::Kept { request, bytes } => {
                self.reply = Some((request, bytes));
                self.pieces += 1;
            }
        }
    }
}

pub async fn tell(
    claims: &mut Claims<'_>,
    home: &Path,
    agent: AgentId,
    acknowledged: Vec<Seq>,
) -> Result<Told, Error> {
    claims.step("Let another process work for it, as fast as it can")?;
    let mut victim = Victim::start(home, agent)?;
    let pid = victim.pid();
    let mut told = Told {
        acknowledged,
        ..Told::default()
    };
    while told.pieces < PIECES_BEFORE_THE_KILL {
        let Some(telling) = victim.next().await else {
            let what = "the demo's second process ended by itself";
            let why = "it was done before it could be killed, or said above what stopped it";
            return Err(Error::new(Exit::Failed, what).because(why));
        };
        told.hear(telling);
        let events = told.acknowledged.len();
        claims
            .out
            .progress(format_args!("   … {events} events on disk"))?;
    }
    let events = told.acknowledged.len();
    claims.remark(&format!(
        "process {pid}: prompts, replies, tool calls; {events} events on disk, mid-reply now"
    ))?;

    claims.step("Kill it with SIGKILL, in the middle of that reply")?;
    let ended = victim.kill()?;
    let killed = Ended::Signal(Signal::KILL.as_raw());
    claims.check(
        "it is dead, and had no chance to tidy up",
        is_so(
            ended == killed && !victim.is_alive()?,
            format!("process {pid}, signal 9"),
            format!("it ended as {ended:?}"),
        ),
    )?;
    // What it said before it died, and nobody had read yet, counts as well.
    while let Some(telling) = victim.next().await {
        told.hear(telling);
    }
    Ok(told)
}
