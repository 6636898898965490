//! P6: after an interrupt the next prompt is answered; nothing new starts once it was acknowledged; a
//! queued prompt still exists.

use super::evidence::{Event, Order};
use super::story::{PromptStatus, Story, Turn};
use super::withdrawn::is_withdrawn;
use super::{Case, Found, outer};

const P: &str = "P6";
const MILLISECOND: u64 = 1000;

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
        has_cause(story, found);
        over_is_over(story, found);
        by_client(case, story, found);
        effects(case, story, found);
    }
    for status in &case.evidence.status {
        if let Some(story) = case.story(&status.agent) {
            queue(story, &status.show, found);
        }
    }
}

/// Every turn has a cause: cancelled work does not continue by itself.
fn has_cause(story: &Story<'_>, found: &mut Found) {
    for turn in &story.turns {
        let Some(started) = turn.started.first() else {
            continue;
        };
        // It continues another turn, or runs a compaction that was requested.
        let resumes = story
            .event(*started)
            .is_some_and(|event| event.body["resumes"].is_string() || compacts(story, event));
        let mut prompts = story.prompts.values().flat_map(|prompt| &prompt.taken);
        let asked = prompts.any(|(_, by)| *by == turn.id);
        // The two are one append: a crash leaves either both or none.
        if !asked && !resumes && !is_withdrawn(story, turn) {
            let what = format!("turn {} answers no prompt", turn.id);
            found.add(P, story.agent, what, &[*started]);
        }
    }
}

fn compacts(story: &Story<'_>, turn: &Event) -> bool {
    let op = turn.body["compacts"].as_str();
    let mut asked = story.events.iter().filter(|it| it.is("compaction_asked"));
    op.is_some() && asked.any(|it| it.body["op"].as_str() == op && it.seq < turn.seq)
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
                "turn {} is {status}, but continues with `{}`",
                turn.id, event.kind
            );
            found.add(P, story.agent, what, &[*ended, event.seq]);
        }
    }
}

/// When an event was written, in the clients' unit. The journal has milliseconds.
fn time(case: &Case<'_>, story: &Story<'_>, seq: u64) -> Option<u64> {
    let event = story.event(seq)?;
    Some((event.at * MILLISECOND).saturating_sub(case.evidence.run.began_unix_us))
}

/// The times of a turn that was interrupted: its beginning and its end.
fn span(case: &Case<'_>, story: &Story<'_>, turn: &Turn<'_>) -> Option<(u64, u64)> {
    let (ended, status) = turn.ended.first()?;
    (*status == "interrupted" && !is_withdrawn(story, turn)).then_some(())?;
    let began = time(case, story, *turn.started.first()?)?;
    Some((began, time(case, story, *ended)? + MILLISECOND))
}

/// When the first of its prompts was sent, or the compaction requested that it runs.
fn asked_at(case: &Case<'_>, story: &Story<'_>, turn: &Turn<'_>) -> Option<u64> {
    let began = turn.started.first().and_then(|seq| story.event(*seq));
    let op = began.and_then(|began| began.body["compacts"].as_str());
    if let Some(op) = op {
        let mut asked = story.events.iter().filter(|it| it.is("compaction_asked"));
        let asked = asked.find(|it| it.text("op") == op)?;
        return time(case, story, asked.seq);
    }
    let own = story.prompts.values().filter(|prompt| {
        let mut taken = prompt.taken.iter();
        taken.any(|(_, by)| *by == turn.id)
    });
    let first = own.filter_map(|prompt| prompt.queued.first()).min()?;
    time(case, story, first.0)
}

/// Whether a client requested an interrupt of this turn: before the turn was over, and not answered before it began.
/// The request of a client that was killed may have arrived at any later time.
fn may_be_of(order: &Order, (began, ended): (u64, u64)) -> bool {
    let answered = order.answered_at.filter(|_| order.acknowledged);
    order.at <= ended && answered.is_none_or(|answered| answered >= began)
}

fn interrupts<'a>(case: &'a Case<'_>, story: &'a Story<'_>) -> impl Iterator<Item = &'a Order> {
    let orders = case
        .evidence
        .orders
        .iter()
        .filter(|it| it.verb == "interrupt");
    orders.filter(|order| case.evidence.id(&order.agent) == story.agent)
}

/// A turn is interrupted because a client interrupted this turn, perhaps by SIGINT, or stopped, reset or removed
/// the agent: an interrupt never ends the turn after the one that it was meant for.
fn by_client(case: &Case<'_>, story: &Story<'_>, found: &mut Found) {
    for turn in &story.turns {
        let Some(span) = span(case, story, turn) else {
            continue;
        };
        if outer::ended_with_its_program(story, turn) {
            continue;
        }
        let began = turn.started.first().copied().unwrap_or_default();
        let ended = turn.ended.first().map_or(began, |(seq, _)| *seq);
        let by_reset = story.resets.iter().any(|reset| {
            let over = reset.ended.iter().map(|(seq, _, _)| *seq);
            let over = over
                .chain(reset.withdrawn.iter().map(|(seq, _)| *seq))
                .min();
            let from = reset.began.first().copied().unwrap_or(u64::MAX);
            from < ended && over.is_none_or(|over| over > began)
        });
        // The turn may have begun while the request was being answered.
        let until = story.up_to(ended);
        let by_stop = until.stopped || until.archived;
        // An interrupt that arrives while hooks run for the prompt applies to the turn that is about to begin.
        let since = asked_at(case, story, turn).unwrap_or(span.0);
        let by_signal = case.evidence.faults.iter().any(|it| {
            let is_int = it.role == "runtime" && it.what == "INT";
            is_int && it.at >= since && it.at <= span.1
        });
        let mut orders = interrupts(case, story);
        if !by_reset && !by_stop && !by_signal && !orders.any(|order| may_be_of(order, span)) {
            let what = format!(
                "turn {} was interrupted, but no client interrupted it",
                turn.id
            );
            found.add(P, story.agent, what, &[began, ended]);
        }
    }
}

/// No process of an interrupted turn began after the interrupt was acknowledged.
fn effects(case: &Case<'_>, story: &Story<'_>, found: &mut Found) {
    for turn in &story.turns {
        let Some(span) = span(case, story, turn) else {
            continue;
        };
        let orders = interrupts(case, story).filter(|order| order.acknowledged);
        let answers = orders.filter(|order| may_be_of(order, span));
        let Some(answered) = answers.filter_map(|order| order.answered_at).min() else {
            continue;
        };
        let begins = case.evidence.effects.iter().filter(|it| it.what != "end");
        for effect in begins {
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

/// Queued prompts are shown as queued.
fn queue(story: &Story<'_>, show: &serde_json::Value, found: &mut Found) {
    let (Some(head), Some(told)) = (show["head"].as_u64(), show["queued"].as_u64()) else {
        return;
    };
    let then = story.up_to(head);
    let waiting = then
        .prompts
        .values()
        .filter(|prompt| prompt.status == PromptStatus::Waiting);
    let waiting = waiting.count() as u64;
    if told != waiting {
        let what = format!("{waiting} prompts are queued, but {told} are shown");
        found.add(P, story.agent, what, &[head]);
    }
}
