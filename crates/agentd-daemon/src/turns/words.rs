//! The first words of the prompts that turns answer.

use crate::daemon::Daemon;
use crate::error::Result;
use agentd_client::api::EndedTurn;
use agentd_core::event::{Body, Kind, Prompt};
use agentd_core::id::{AgentId, PromptId, Seq, TurnId};
use agentd_core::title;
use agentd_store::{ReadQuery, Texts};
use std::collections::BTreeMap;

/// Events before the first turn in which a prompt is searched for that waited for other turns to end.
const BACK: u64 = 10_000;
/// Events that are read at a time.
const PAGE: usize = 1_000;
/// What is read: prompts, and which turn answers them.
const KINDS: &[Kind] = &[Kind::Prompt, Kind::PromptsTaken, Kind::PromptBlocked];

/// A prompt whose words are known, or where it is.
enum Said {
    Words(String),
    Long(Seq),
}

/// Adds to each turn the first words of the prompt that it answers. `before` is the end of the turn before the first.
pub(super) async fn add(
    daemon: &Daemon,
    agent: AgentId,
    turns: &mut [EndedTurn],
    before: Seq,
) -> Result<()> {
    let Some(through) = turns.iter().map(|turn| turn.seq).max() else {
        return Ok(());
    };
    let mut said: BTreeMap<PromptId, Said> = BTreeMap::new();
    let mut answered: BTreeMap<TurnId, PromptId> = BTreeMap::new();
    let mut next = Some(Seq(before.0.saturating_sub(BACK)));
    while let Some(after) = next.filter(|after| *after < through) {
        let query = ReadQuery {
            kinds: KINDS,
            texts: Texts::WithoutLong,
            ..ReadQuery::all(agent, after, PAGE)
        };
        let page = daemon.store.read(query).await?;
        for event in &page.events {
            match (&event.body, event.turn) {
                (Body::Prompt(prompt), _) => {
                    said.insert(prompt.prompt, words(prompt, event.seq));
                }
                (Body::PromptsTaken(taken), Some(turn)) => {
                    if let Some(first) = taken.prompts.first() {
                        answered.entry(turn).or_insert(*first);
                    }
                }
                (Body::PromptBlocked(blocked), Some(turn)) => {
                    answered.entry(turn).or_insert(blocked.prompt);
                }
                _ => {}
            }
        }
        next = page.next;
    }
    for turn in turns {
        let prompt = answered.get(&turn.id).and_then(|prompt| said.get(prompt));
        turn.prompt = match prompt {
            Some(Said::Words(words)) => Some(words.clone()),
            Some(Said::Long(seq)) => whole(daemon, agent, *seq).await?,
            None => None,
        };
    }
    Ok(())
}

/// A text that is stored separately is empty here.
fn words(prompt: &Prompt, seq: Seq) -> Said {
    title::of_blocks(&prompt.blocks).map_or(Said::Long(seq), Said::Words)
}

async fn whole(daemon: &Daemon, agent: AgentId, seq: Seq) -> Result<Option<String>> {
    let query = ReadQuery {
        kinds: &[Kind::Prompt],
        ..ReadQuery::all(agent, Seq(seq.0.saturating_sub(1)), 1)
    };
    let events = daemon.store.read(query).await?.events;
    Ok(events.first().and_then(|event| match &event.body {
        Body::Prompt(prompt) => title::of_blocks(&prompt.blocks),
        _ => None,
    }))
}
