//! P2: no event that any client saw is missing; no gap in the sequence; a client that comes back with
//! its cursor sees each event once, in order.

use super::evidence::{Client, Event};
use super::{Case, Found};
use serde_json::Value;
use std::collections::BTreeMap;

const P: &str = "P2";

pub fn check(case: &Case<'_>, found: &mut Found) {
    for named in &case.evidence.run.agents {
        if case.story(&named.id).is_none() {
            let what = format!("`{}` could not be exported", named.name);
            found.add(P, &named.id, what, &[]);
        }
    }
    for journal in &case.evidence.journals {
        if let Some(damage) = &journal.damage {
            found.add(
                P,
                &journal.agent,
                format!("its export is damaged: {damage}"),
                &[],
            );
        }
        let mut expected = 1;
        for event in &journal.events {
            if event.seq != expected {
                let what = format!("event {} is where {expected} should be", event.seq);
                found.add(P, &journal.agent, what, &[event.seq]);
            }
            expected = event.seq + 1;
        }
    }
    for client in &case.evidence.clients {
        Reader::new(case, client).read(found);
    }
}

/// What a client saw of one agent.
#[derive(Default)]
struct Cursor {
    /// The last event that it saw, or after which it asked to continue.
    last: Option<u64>,
    /// It has just connected.
    fresh: bool,
}

struct Reader<'a> {
    case: &'a Case<'a>,
    client: &'a Client,
    cursors: BTreeMap<String, Cursor>,
}

impl<'a> Reader<'a> {
    fn new(case: &'a Case<'a>, client: &'a Client) -> Self {
        let mut cursors = BTreeMap::new();
        if let (Some(agent), Some(from)) = (&client.head.agent, client.head.from) {
            let (last, fresh) = (Some(from), true);
            cursors.insert(case.evidence.id(agent).to_owned(), Cursor { last, fresh });
        }
        Self {
            case,
            client,
            cursors,
        }
    }

    fn read(mut self, found: &mut Found) {
        for line in &self.client.saw {
            match line["saw"].as_str().unwrap_or_default() {
                "connected" => self.connected(line),
                "event" => {
                    let event = if line["event"].is_object() {
                        &line["event"]
                    } else {
                        line
                    };
                    self.event(event, found);
                }
                "line" => {
                    // A line that a command printed, if it is an event.
                    let printed = line["text"].as_str().unwrap_or_default();
                    let printed: Value = serde_json::from_str(printed).unwrap_or_default();
                    if printed["seq"].is_u64() && printed["kind"].is_string() {
                        self.event(&printed, found);
                    }
                }
                _ => {}
            }
        }
    }

    fn connected(&mut self, line: &Value) {
        let Some(agent) = &self.client.head.agent else {
            // A cursor into all agents' events says nothing about a single agent.
            return;
        };
        let cursor = self
            .cursors
            .entry(self.case.evidence.id(agent).to_owned())
            .or_default();
        cursor.last = line["from"].as_u64().or(cursor.last);
        cursor.fresh = true;
    }

    fn event(&mut self, seen: &Value, found: &mut Found) {
        let own = self.client.head.agent.as_deref();
        let agent = seen["agent"].as_str().or(own).unwrap_or_default();
        let agent = self.case.evidence.id(agent).to_owned();
        let seq = seen["seq"].as_u64().unwrap_or_default();
        let name = &self.client.name;
        let story = self.case.story(&agent);
        let kept = story.and_then(|story| story.event(seq));
        match kept {
            None => {
                let what = format!("client {name} saw event {seq}, which does not exist");
                found.add(P, &agent, what, &[seq]);
            }
            Some(kept) if !is_same(kept, seen) => {
                let what = format!("client {name} saw event {seq} with other content");
                found.add(P, &agent, what, &[seq]);
            }
            Some(_) => {}
        }
        let clears_log = story.is_some_and(|story| {
            let mut resets = story.events.iter().filter(|event| event.is("reset_began"));
            resets.any(|event| event.body["clear_log"] == true)
        });
        let cursor = self.cursors.entry(agent.clone()).or_default();
        if let Some(last) = cursor.last {
            // A log that was cleared begins later.
            let may_skip = self.client.head.filtered || (cursor.fresh && clears_log);
            let may_skip = may_skip || self.client.head.client == "cli";
            if seq <= last {
                let what = format!("client {name} saw event {seq} after event {last}");
                found.add(P, &agent, what, &[last, seq]);
            } else if seq != last + 1 && !may_skip {
                let what = format!("client {name} saw event {seq} directly after event {last}");
                found.add(P, &agent, what, &[last, seq]);
            }
        }
        (cursor.last, cursor.fresh) = (Some(seq), false);
    }
}

fn is_same(kept: &Event, seen: &Value) -> bool {
    let same = |key: &str, value: &str| seen[key].is_null() || seen[key].as_str() == Some(value);
    let same_turn = seen["turn"].as_str() == kept.turn.as_deref();
    let same_body = seen
        .get("body")
        .is_none_or(|body| kept.body.is_null() || *body == kept.body);
    same("kind", &kept.kind) && same("conversation", &kept.conversation) && same_turn && same_body
}
