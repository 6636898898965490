//! P1: every acknowledged prompt ran exactly once, or ended in a reported terminal state, or was
//! reported as set aside or removed.

use super::evidence::SentPrompt;
use super::story::{Prompt, PromptStatus, Story};
use super::{Case, Found};
use std::collections::BTreeMap;

const P: &str = "P1";

pub fn check(case: &Case<'_>, found: &mut Found) {
    for sent in &case.evidence.prompts {
        match case.story(&sent.agent) {
            Some(story) => acknowledged(sent, story, found),
            None if sent.acknowledged => {
                let what = format!("`{}` was accepted, but its agent has no journal", sent.text);
                found.add(P, case.evidence.id(&sent.agent), what, &[]);
            }
            None => {}
        }
    }
    for story in &case.stories {
        once(story, found);
        for (id, prompt) in &story.prompts {
            came_to_something(id, prompt, story, found);
        }
    }
}

/// An accepted prompt is in the journal, with its text and its files.
fn acknowledged(sent: &SentPrompt, story: &Story<'_>, found: &mut Found) {
    if !sent.acknowledged {
        return;
    }
    let known = match (&sent.prompt, &sent.key) {
        (Some(id), _) => story.prompts.get(id.as_str()),
        (None, Some(key)) => story.prompts.values().find(|it| it.key == Some(key)),
        (None, None) => story
            .prompts
            .values()
            .find(|it| it.words.join("\n") == sent.text.trim()),
    };
    let Some(known) = known.filter(|known| !known.queued.is_empty()) else {
        let what = format!("`{}` was accepted but is not in the journal", sent.text);
        found.add(P, story.agent, what, &[]);
        return;
    };
    let at: Vec<u64> = known.queued.iter().map(|(seq, _)| *seq).collect();
    if !sent.text.is_empty() && known.words.join("\n") != sent.text.trim() {
        let words = known.words.join("\n");
        let what = format!(
            "`{}` was accepted but is in the journal as `{words}`",
            sent.text
        );
        found.add(P, story.agent, what, &at);
    }
    if known.files != sent.files {
        let names = |files: &[(String, String)]| {
            let names = files.iter().map(|(name, content)| {
                let bytes = content.len();
                format!("{name} ({bytes} bytes)")
            });
            names.collect::<Vec<_>>().join(", ")
        };
        let what = format!(
            "`{}` was accepted with the files [{}] but is in the journal with [{}]",
            sent.text,
            names(&sent.files),
            names(&known.files)
        );
        found.add(P, story.agent, what, &at);
    }
    if sent.status.as_deref() == Some("removed") && known.removed.is_empty() {
        let what = format!("`{}` was reported as removed, but is not", sent.text);
        found.add(P, story.agent, what, &at);
    }
    if sent.status.as_deref() == Some("set_aside") && known.aside.is_empty() {
        let what = format!(
            "`{}` was reported as set aside, but nothing set it aside",
            sent.text
        );
        found.add(P, story.agent, what, &at);
    }
}

/// A key delivers one prompt, and a prompt is taken once.
fn once(story: &Story<'_>, found: &mut Found) {
    let mut keys: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (id, prompt) in &story.prompts {
        let first = prompt.queued.first().map_or(0, |(seq, _)| *seq);
        if let Some(key) = prompt.key {
            keys.entry(key).or_default().push(first);
        }
        if prompt.taken.len() > 1 {
            let at: Vec<u64> = prompt.taken.iter().map(|(seq, _)| *seq).collect();
            let times = at.len();
            found.add(
                P,
                story.agent,
                format!("prompt {id} was taken {times} times"),
                &at,
            );
        }
        if prompt.queued.is_empty() {
            let at: Vec<u64> = prompt.taken.iter().map(|(seq, _)| *seq).collect();
            found.add(
                P,
                story.agent,
                format!("prompt {id} was never accepted"),
                &at,
            );
        }
    }
    for (key, at) in keys {
        if at.len() > 1 {
            let what = format!("the key `{key}` was delivered {} times", at.len());
            found.add(P, story.agent, what, &at);
        }
    }
}

/// It was answered, or its end was reported, or it rightly waits.
fn came_to_something(id: &str, prompt: &Prompt<'_>, story: &Story<'_>, found: &mut Found) {
    match prompt.status {
        PromptStatus::Aside => {}
        PromptStatus::Removed => {
            if !prompt.taken.is_empty() || prompt.removed.len() > 1 {
                let taken = prompt.taken.iter().map(|(seq, _)| *seq);
                let at: Vec<u64> = taken.chain(prompt.removed.iter().copied()).collect();
                let what = format!("prompt {id} was removed after it was taken or removed");
                found.add(P, story.agent, what, &at);
            }
        }
        PromptStatus::Waiting => {
            let at: Vec<u64> = prompt.queued.iter().map(|(seq, _)| *seq).collect();
            if !story.waits_for_user() {
                let what = format!("prompt {id} was never taken, and nothing blocks it");
                found.add(P, story.agent, what, &at);
            }
        }
        PromptStatus::Taken => {
            let Some((taken, turn)) = prompt.taken.last() else {
                return;
            };
            let Some(turn) = story.turn(turn) else {
                found.add(
                    P,
                    story.agent,
                    format!("prompt {id} was taken by no turn"),
                    &[*taken],
                );
                return;
            };
            match turn.ended.first() {
                None if story.waits_for_user() => {}
                None => {
                    let what = format!("prompt {id} was taken, but its turn never ended");
                    found.add(P, story.agent, what, &[*taken]);
                }
                Some((ended, "completed")) => {
                    let mut since = story.events.iter().filter(|event| event.seq > *taken);
                    let answered = since.any(|event| {
                        let of_turn = event.turn.as_deref() == Some(turn.id);
                        of_turn && event.is("message") && event.text("status") == "complete"
                    });
                    if !answered {
                        let what = format!("prompt {id} has no answer, but its turn is completed");
                        found.add(P, story.agent, what, &[*taken, *ended]);
                    }
                }
                Some(_) => {}
            }
        }
    }
}
