//! The part of P15 about restores: each that began has ended once, and no turn began meanwhile. What it replaced is kept in
//! the commit of its begin, and its recorded outcome says what is in the files.

use super::evidence::Event;
use super::story::Story;
use super::{Found, p15_kept};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const P: &str = "P15";

pub fn check(story: &Story<'_>, found: &mut Found) {
    let mut open: Option<(&str, u64)> = None;
    let mut ended = BTreeSet::new();
    for event in story.events {
        match event.kind.as_str() {
            "files_restore_began" => {
                if let Some((op, seq)) = open.replace((event.text("op"), event.seq)) {
                    let what = format!("a restore began before restore {op} had ended");
                    found.add(P, story.agent, what, &[seq, event.seq]);
                }
                is_kept(story, event, found);
            }
            "files_restore_ended" => {
                let op = event.text("op");
                let is_open = open.take_if(|(known, _)| *known == op).is_some();
                if !is_open || !ended.insert(op) {
                    let what = format!("restore {op} ended twice, or never began");
                    found.add(P, story.agent, what, &[event.seq]);
                }
            }
            "turn_started" => {
                if let Some((op, seq)) = open {
                    let what = format!("a turn began before restore {op} had ended");
                    found.add(P, story.agent, what, &[seq, event.seq]);
                }
            }
            _ => {}
        }
    }
    if let Some((op, seq)) = open {
        let what = format!("restore {op} has not ended");
        found.add(P, story.agent, what, &[seq]);
    }
}

/// Every file of the plan is kept, right after it.
fn is_kept(story: &Story<'_>, began: &Event, found: &mut Found) {
    let op = began.text("op");
    let Some(plan) = plan(story, op) else {
        return;
    };
    let kept = story.events.iter().filter(|it| it.is("file_kept"));
    let kept = kept.filter(|it| it.body["by"]["op"] == op);
    let mut kept_files: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
    for it in kept {
        kept_files.entry(it.text("path")).or_default().push(it);
    }
    let files = plan.body["files"].as_array().into_iter().flatten();
    let files = files.filter_map(|file| Some((file["path"].as_str()?, &file["expected"])));
    let planned: BTreeMap<&str, &Value> = files.collect();
    // The limit may have deleted some since.
    let is_purged = p15_kept::purged_through(story) > plan.seq;
    let is_all = kept_files.keys().all(|path| planned.contains_key(path))
        && (is_purged || kept_files.len() == planned.len());
    if !is_all {
        let what = format!("restore {op} replaces other files than it keeps");
        found.add(P, story.agent, what, &[began.seq]);
    }
    for (path, kept) in kept_files {
        let expected = planned.get(path);
        let is_it = |kept: &&Event| expected.is_some_and(|it| is_state(&kept.body["before"], it));
        if !kept.iter().all(is_it) || !p15_kept::has_named_content(&kept) {
            let what = format!("restore {op} keeps something else than what {path} was");
            found.add(P, story.agent, what, &[began.seq]);
        }
    }
}

/// Whether what is kept is the state that a plan replaces.
fn is_state(before: &Value, expected: &Value) -> bool {
    let keys = ["type", "mode", "hash", "target"];
    keys.iter().all(|key| before[key] == expected[key])
}

fn plan<'a>(story: &Story<'a>, op: &str) -> Option<&'a Event> {
    let mut plans = story.events.iter().filter(|it| it.is("files_plan"));
    plans.find(|it| it.text("op") == op)
}

/// What restores did to a path: the position, the hash of the content that they gave it, and the outcome.
pub fn steps<'a>(story: &Story<'a>, path: &str) -> Vec<(u64, Option<String>, Option<&'a str>)> {
    let mut steps = Vec::new();
    for event in story.events.iter().filter(|it| it.is("files_plan")) {
        let mut files = event.body["files"].as_array().into_iter().flatten();
        let Some(file) = files.find(|file| file["path"] == path) else {
            continue;
        };
        let op = event.text("op");
        steps.push((
            event.seq,
            target(story, &file["target"]),
            outcome(story, op, path),
        ));
    }
    steps
}

/// The hash of the content that a plan gives a path; none if it removes the file.
fn target(story: &Story<'_>, target: &Value) -> Option<String> {
    let seq = match target["type"].as_str() {
        // The plan itself names the state that it gives the path.
        Some("kept") if target["state"].is_object() => {
            return target["state"]["hash"].as_str().map(str::to_owned);
        }
        Some("kept") => target["at"]["seq"].as_u64(),
        _ => return target["hash"].as_str().map(str::to_owned),
    };
    let kept = story.events.iter().find(|it| Some(it.seq) == seq)?;
    kept.body["before"]["hash"].as_str().map(str::to_owned)
}

/// `ok` if the file was restored; none if that is not recorded.
fn outcome<'a>(story: &Story<'a>, op: &str, path: &str) -> Option<&'a str> {
    let mut restored = story.events.iter().filter(|it| it.is("files_restored"));
    let restored = restored.find(|it| it.text("op") == op)?;
    let files = restored.body["files"].as_array()?;
    let file = files.iter().find(|file| file["path"] == path)?;
    match file["outcome"]["type"].as_str() {
        Some("restored") => Some("ok"),
        Some("conflict") => Some("conflict"),
        _ => None,
    }
}
