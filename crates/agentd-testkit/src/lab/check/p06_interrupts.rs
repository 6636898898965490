//! P6: after an interrupt the next prompt is answered; nothing new starts once it was acknowledged; a
//! queued prompt is still there.

use super::story::{Place, Story};
use super::{Case, Found};

const P: &str = "P6";

/// What a turn does while it runs, and never afterwards.
const WORK: &[&str] = &[
    "request_sent",
    "request_ended",
    "message",
    "tool_started",
    "tool_ended",
    "result",
    "approval_requested",
    "prompts_taken",
    "turn_paused",
    "turn_continued",
    "compacted",
    "summary",
];

pub fn check(case: &Case<'_>, found: &mut Found) {
    for story in &case.stories {
        started_by_somebody(story, found);
        over_is_over(story, found);
        effects(case, story, found);
    }
    for status in &case.evidence.status {
        if let Some(story) = case.story(&status.agent) {
            queue(story, &status.show, found);
        }
    }
}

/// A turn is an answer to somebody: the task that was cancelled does not go on by itself.
fn started_by_somebody(story: &Story<'_>, found: &mut Found) {
    for turn in &story.turns {
        let Some(started) = turn.started.first() else {
            continue;
        };
        let resumes = story
            .event(*started)
            .is_some_and(|event| event.body["resumes"].is_string());
        let mut prompts = story.prompts.values().flat_map(|prompt| &prompt.taken);
        let asked = prompts.any(|(_, by)| *by == turn.id);
        // Whoever was killed between the two leaves both undone, for they are one append.
        if !asked && !resumes {
            let what = format!("turn {} answers nobody", turn.id);
            found.add(P, story.agent, what, &[*started]);
        }
    }
}

fn over_is_over(story: &Story<'_>, found: &mut Found) {
    for turn in &story.turns {
        let Some((ended, status)) = turn.ended.first() else {
            continue;
        };
        let own = story
            .events
            .iter()
            .filter(|event| event.turn.as_deref() == Some(turn.id));
        let late = own.filter(|event| event.seq > *ended && WORK.contains(&event.kind.as_str()));
        for event in late {
            let what = format!(
                "turn {} is {status}, and goes on with `{}`",
                turn.id, event.kind
            );
            found.add(P, story.agent, what, &[*ended, event.seq]);
        }
    }
}

/// No process of an interrupted turn began after the interrupt was acknowledged.
fn effects(case: &Case<'_>, story: &Story<'_>, found: &mut Found) {
    let orders = case.evidence.orders.iter().filter(|order| {
        let own = case.evidence.id(&order.agent) == story.agent;
        own && order.verb == "interrupt" && order.acknowledged
    });
    let orders: Vec<_> = orders.collect();
    let interrupted =
        |ended: &[(u64, &str)]| ended.iter().any(|(_, status)| *status == "interrupted");
    let turns = story.turns.iter().filter(|turn| interrupted(&turn.ended));
    let turns: Vec<_> = turns.collect();
    // Which order ended which turn can be told where there are as many.
    if orders.len() != turns.len() {
        return;
    }
    for (order, turn) in orders.into_iter().zip(turns) {
        let Some(answered) = order.answered_at else {
            continue;
        };
        for effect in case
            .evidence
            .effects
            .iter()
            .filter(|effect| effect.what != "end")
        {
            let call = story.calls.get(effect.call.as_str());
            let of_turn = call.is_some_and(|call| call.turn == turn.id);
            let agent = effect.agent.as_deref().map(|agent| case.evidence.id(agent));
            let own = agent.map_or(case.stories.len() == 1, |agent| agent == story.agent);
            if of_turn && own && effect.at > answered {
                let call = &effect.call;
                let what = format!("call {call} began after the interrupt was acknowledged");
                let at: Vec<u64> = turn.ended.iter().map(|(seq, _)| *seq).collect();
                found.add(P, story.agent, what, &at);
            }
        }
    }
}

/// What waits is said to wait.
fn queue(story: &Story<'_>, show: &serde_json::Value, found: &mut Found) {
    let (Some(head), Some(told)) = (show["head"].as_u64(), show["queued"].as_u64()) else {
        return;
    };
    let then = story.up_to(head);
    let waiting = then
        .prompts
        .values()
        .filter(|prompt| prompt.place == Place::Waiting);
    let waiting = waiting.count() as u64;
    if told != waiting {
        let what = format!("{waiting} prompts wait, and {told} are said to");
        found.add(P, story.agent, what, &[head]);
    }
}
