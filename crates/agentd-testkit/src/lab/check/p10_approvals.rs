//! P10: pending approvals survive every fault and are answered once, the first answer wins; no process in a
//! tool's tree can answer.

use super::evidence::Order;
use super::story::{Approval, Story};
use super::{Case, Found};
use serde_json::Value;
use std::collections::BTreeMap;

const P: &str = "P10";

/// What a process that a tool started may not request.
const FORBIDDEN: &[&str] = &[
    "approve", "deny", "reset", "undo", "redo", "rewind", "rename", "rm", "archive", "purge",
    "set", "edit", "apply", "spec",
];

pub fn check(case: &Case<'_>, found: &mut Found) {
    for story in &case.stories {
        for (id, approval) in &story.approvals {
            answered_once(id, approval, story, found);
            obeyed(id, approval, story, found);
        }
    }
    orders(case, found);
    by_client(case, found);
    for status in &case.evidence.status {
        if let Some(story) = case.story(&status.agent) {
            shown(story, &status.show, found);
        }
    }
}

fn answered_once(id: &str, approval: &Approval<'_>, story: &Story<'_>, found: &mut Found) {
    let answers: Vec<u64> = approval.answers.iter().map(|(seq, _)| *seq).collect();
    if answers.len() > 1 {
        let what = format!("question {id} was answered {} times", answers.len());
        found.add(P, story.agent, what, &answers);
    }
    if approval.asked.len() != 1 {
        let what = format!("question {id} was asked {} times", approval.asked.len());
        found.add(P, story.agent, what, &answers);
    }
    let asked = approval.asked.first().copied().unwrap_or_default();
    if answers.first().is_some_and(|answer| *answer < asked) {
        found.add(
            P,
            story.agent,
            format!("question {id} was answered before it was asked"),
            &answers,
        );
    }
}

/// The call runs only with approval; and only an interrupt withdraws the question.
fn obeyed(id: &str, approval: &Approval<'_>, story: &Story<'_>, found: &mut Found) {
    let mut wrong = |what: String, at: &[u64]| found.add(P, story.agent, what, at);
    let Some(call) = story.calls.get(approval.call) else {
        wrong(format!("question {id} is about no call"), &approval.asked);
        return;
    };
    let answer = approval.answers.first();
    if let Some(started) = call.started.first() {
        let allowed = answer.is_some_and(|(seq, decision)| *decision == "allow" && seq < started);
        if !allowed {
            wrong(
                format!(
                    "call {} began without the approval that it needed",
                    approval.call
                ),
                &[*started],
            );
        }
    }
    let Some((ended, outcome)) = call.ended.first() else {
        let turn = story
            .turn(approval.turn)
            .and_then(|turn| turn.ended.first());
        if let Some((seq, status)) = turn {
            let what = format!("question {id} was lost: its turn is {status}");
            wrong(what, &[*seq]);
        }
        return;
    };
    match answer {
        None if *outcome != "interrupted" => {
            let what = format!("question {id} was never answered, but its call is {outcome}");
            wrong(what, &[*ended]);
        }
        Some((_, "deny")) if !matches!(*outcome, "denied" | "interrupted") => {
            wrong(
                format!("call {} was denied, but is {outcome}", approval.call),
                &[*ended],
            );
        }
        Some((_, "allow")) if *outcome == "denied" => {
            wrong(
                format!("call {} was allowed, but is {outcome}", approval.call),
                &[*ended],
            );
        }
        _ => {}
    }
}

/// What clients were told about their answers.
fn orders(case: &Case<'_>, found: &mut Found) {
    let mut accepted: BTreeMap<&str, Vec<&Order>> = BTreeMap::new();
    for order in case
        .evidence
        .orders
        .iter()
        .filter(|order| order.acknowledged)
    {
        let agent = case.evidence.id(&order.agent);
        if order.from_tool && FORBIDDEN.contains(&order.verb.as_str()) {
            let what = format!("a process of a tool was allowed to `{}`", order.verb);
            found.add(P, agent, what, &[]);
        }
        let about = order.approval.as_deref().or(order.op.as_deref());
        if let (true, Some(id)) = (matches!(order.verb.as_str(), "approve" | "deny"), about) {
            accepted.entry(id).or_default().push(order);
        }
    }
    for (id, orders) in accepted {
        let Some(story) = case.story(&orders[0].agent) else {
            continue;
        };
        if orders.len() > 1 {
            let what = format!("{} answers to question {id} were accepted", orders.len());
            found.add(P, story.agent, what, &[]);
        }
        let kept = story
            .approvals
            .get(id)
            .and_then(|approval| approval.answers.first());
        let said = if orders[0].verb == "approve" {
            "allow"
        } else {
            "deny"
        };
        match kept {
            None => {
                let what = format!("the answer to question {id} was accepted but is not on record");
                found.add(P, story.agent, what, &[]);
            }
            Some((seq, decision)) if orders.len() == 1 && *decision != said => {
                let what =
                    format!("question {id} was answered {said}, but {decision} is on record");
                found.add(P, story.agent, what, &[*seq]);
            }
            Some(_) => {}
        }
    }
}

/// An answer on record was given by a client, and not by a tool.
fn by_client(case: &Case<'_>, found: &mut Found) {
    for story in &case.stories {
        for (decision, verb) in [("allow", "approve"), ("deny", "deny")] {
            let answers = story.approvals.values().flat_map(|it| &it.answers);
            let at: Vec<u64> = answers
                .filter(|(_, given)| *given == decision)
                .map(|(seq, _)| *seq)
                .collect();
            let given = case.evidence.orders.iter().filter(|order| {
                let own = case.evidence.id(&order.agent) == story.agent;
                own && order.verb == verb && !order.from_tool
            });
            let given = given.count();
            if at.len() > given {
                let what = format!(
                    "{} answers on record say {decision}, but {given} were given",
                    at.len()
                );
                found.add(P, story.agent, what, &at);
            }
        }
    }
}

/// Exactly the questions that wait for an answer are shown.
fn shown(story: &Story<'_>, show: &Value, found: &mut Found) {
    let (Some(head), Some(shown)) = (show["head"].as_u64(), show["approvals"].as_array()) else {
        return;
    };
    let then = story.up_to(head);
    let mut due: Vec<&str> = then.pending_approvals().map(|(id, _)| *id).collect();
    let mut shown: Vec<&str> = shown.iter().filter_map(|it| it["id"].as_str()).collect();
    due.sort_unstable();
    shown.sort_unstable();
    if due != shown {
        let what = format!("the questions {due:?} wait, but {shown:?} are shown");
        found.add(P, story.agent, what, &[head]);
    }
}
