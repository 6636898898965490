//! Step 4: what is left.

use super::kill::Told;
use super::verified;
use crate::demo::claims::Claims;
use crate::demo::evidence::{self, Verdict, is_so};
use crate::demo::model::{numbers, text_of};
use crate::demo::pen::{failed, read_draft};
use crate::error::Error;
use agentd_core::id::{AgentId, Seq, TurnId};
use agentd_store::{Draft, ReadQuery, SqliteStore, Store as _};

/// What the crash cut off.
pub struct Cut {
    pub turn: Option<TurnId>,
    pub text: String,
}

pub async fn tell(
    claims: &mut Claims<'_>,
    store: &SqliteStore,
    agent: AgentId,
    told: &Told,
) -> Result<Cut, Error> {
    claims.step("Open its journal again")?;
    let journal = all_events(store, agent).await?;
    let there = evidence::all_there(&told.acknowledged, &journal);
    claims.check("every event that was acknowledged is there", there)?;
    claims.check(
        "they are numbered without a gap",
        evidence::without_gaps(&journal),
    )?;
    claims.check(
        "every checksum holds: `verify` finds nothing",
        verified(store).await?,
    )?;

    let loaded = store.load(agent).await.map_err(failed)?;
    let turn = loaded.state.turn;
    let draft = store.draft(agent).await.map_err(failed)?;
    let in_flight = turn.as_ref().and_then(|turn| turn.in_flight);
    claims.check(
        "the turn is open still, and waits for the reply to its request",
        is_so(
            in_flight.is_some() && in_flight.map(|sent| sent.request) == of(draft.as_ref()),
            "",
            format!(
                "in flight is {in_flight:?}, the draft is of {:?}",
                of(draft.as_ref())
            ),
        ),
    )?;
    let text = text_of(&read_draft(store, agent).await?.cut());
    let kept = is_kept(draft.as_ref(), told, &text);
    claims.check("what had come of that reply is there", kept)?;
    Ok(Cut {
        turn: turn.map(|turn| turn.id),
        text,
    })
}

fn of(draft: Option<&Draft>) -> Option<agentd_core::id::TryId> {
    draft.map(|draft| draft.request)
}

/// At least as much as was acknowledged, and nothing but the words themselves.
fn is_kept(draft: Option<&Draft>, told: &Told, text: &str) -> Verdict {
    let length = |draft: &Draft| (draft.request, draft.bytes.len() as u64);
    let acknowledged = told.reply.ok_or("the reply had ended when the kill came")?;
    let there = draft.map(length).ok_or("there is no draft")?;
    if there.0 != acknowledged.0 || there.1 < acknowledged.1 {
        return Err(format!(
            "{acknowledged:?} was acknowledged, {there:?} is there"
        ));
    }
    let last = numbers(text).last().copied().unwrap_or(0);
    evidence::counts_to(last, &[text])?;
    is_so(
        last > 0,
        format!("\"1 2 3 … {last}\""),
        "there are no words",
    )
}

async fn all_events(store: &SqliteStore, agent: AgentId) -> Result<Vec<Seq>, Error> {
    let mut seqs = Vec::new();
    let mut after = Some(Seq::ZERO);
    while let Some(from) = after {
        let page = store.read(ReadQuery::all(agent, from, 500)).await;
        let page = page.map_err(failed)?;
        seqs.extend(page.events.iter().map(|event| event.seq));
        after = page.next;
    }
    Ok(seqs)
}
