//! P15: each file is whole at any instant. What a call replaces is kept in the commit of the call's start, before it. An
//! edit is complete or was not made, and its recorded outcome says which. What commands changed is recorded once, before
//! the next turn.

use super::evidence::Event;
use super::p15_kept::{has_named_content, hash, purged_through};
use super::p15_restores;
use super::story::Story;
use super::{Case, Found};
use std::collections::{BTreeMap, BTreeSet};

const P: &str = "P15";

/// What one call changes.
struct Change<'a> {
    seq: u64,
    call: &'a str,
    files: Vec<File<'a>>,
}

/// A file that a call changes: hashes, and none if there is no file.
struct File<'a> {
    before: Option<&'a str>,
    after: Option<&'a str>,
    /// What is kept of it, and therefore its path.
    kept: Vec<&'a Event>,
}

impl<'a> File<'a> {
    fn path(&self) -> Option<&'a str> {
        self.kept.first().map(|kept| kept.text("path"))
    }
}

pub fn check(case: &Case<'_>, found: &mut Found) {
    let mut all = Vec::new();
    for story in &case.stories {
        let changes = changes(story);
        for change in &changes {
            is_kept(story, change, found);
        }
        orphans(story, found);
        p15_restores::check(story, found);
        scans(story, found);
        all.push((story, changes));
    }
    contents(case, &all, found);
}

fn changes<'a>(story: &Story<'a>) -> Vec<Change<'a>> {
    let started = story.events.iter().filter(|it| it.is("tool_started"));
    let changes = started.map(|event| {
        let call = event.text("call");
        let mut kept = kept_by(story, call).into_iter().peekable();
        let one = Some(&event.body["change"]).filter(|it| it.is_object());
        let several = event.body["patched"].as_array().into_iter().flatten();
        let files = one.into_iter().chain(several);
        let files = files.map(|file| (file["before"].as_str(), file["after"].as_str()));
        let files = files.filter(|(before, after)| before != after);
        let files = files.map(|(before, after)| {
            let mut own: Vec<&Event> = kept.next().into_iter().collect();
            while let Some(part) = kept.next_if(|it| it.body["part"] != 0) {
                own.push(part);
            }
            File {
                before,
                after,
                kept: own,
            }
        });
        Change {
            seq: event.seq,
            call,
            files: files.collect(),
        }
    });
    changes.collect()
}

/// The kept parts of the files that a call changes.
fn kept_by<'a>(story: &Story<'a>, call: &str) -> Vec<&'a Event> {
    let kept = story.events.iter().filter(|it| it.is("file_kept"));
    kept.filter(|it| it.body["by"]["call"] == call).collect()
}

/// All parts, right before the start, with the content that the start names.
fn is_kept(story: &Story<'_>, change: &Change<'_>, found: &mut Found) {
    let before = story.events.iter().rev();
    let before = before.skip_while(|it| it.seq >= change.seq);
    let kept = before.take_while(|it| it.is("file_kept")).count() as u64;
    // The first files of a call may be purged, and the others not.
    if change.files.is_empty() || change.seq.saturating_sub(kept) <= purged_through(story) {
        return;
    }
    let mut wrong = |what: &str, at: &[u64]| {
        let what = format!("call {} changes a file, and {what}", change.call);
        found.add(P, story.agent, what, at);
    };
    if change.files.iter().any(|file| file.kept.is_empty()) {
        return wrong("what it was is not kept", &[change.seq]);
    }
    let kept = kept_by(story, change.call);
    let at: Vec<u64> = kept.iter().map(|it| it.seq).collect();
    let first = change.seq.saturating_sub(kept.len() as u64);
    let expected: Vec<u64> = (first..change.seq).collect();
    if at != expected {
        return wrong("what it was is not kept right before its start", &at);
    }
    for file in &change.files {
        let parts = file.kept.len() as u64;
        let is_whole = (0..parts).zip(&file.kept).all(|(part, it)| {
            it.body["part"].as_u64() == Some(part) && it.body["parts"].as_u64() == Some(parts)
        });
        if !is_whole {
            wrong("a part of what it was is missing", &at);
        }
        let is_it = file.kept.iter().all(|it| {
            let before = &it.body["before"];
            match file.before {
                None => before["type"] == "absent",
                Some(hash) => before["hash"] == hash,
            }
        });
        if !is_it {
            wrong("something else is kept than it was", &at);
        }
        if !has_named_content(&file.kept) {
            wrong(
                "the kept content does not have its recorded hash or size",
                &at,
            );
        }
    }
}

/// What is kept belongs to the start that follows it.
fn orphans(story: &Story<'_>, found: &mut Found) {
    for (index, event) in story.events.iter().enumerate() {
        let call = event.body["by"]["call"].as_str();
        let Some(call) = call.filter(|_| event.is("file_kept")) else {
            continue;
        };
        let mut rest = story.events.iter().skip(index);
        let next = rest.find(|it| !it.is("file_kept"));
        if next.is_none_or(|next| !next.is("tool_started") || next.text("call") != call) {
            let what = format!("a file is kept for call {call}, which does not start then");
            found.add(P, story.agent, what, &[event.seq]);
        }
    }
}

/// A turn that ran commands, or other calls that may change files, is scanned once, after its end and before the next
/// turn. So may be a turn that ran none, if a background command was running at the end of the one that was scanned last.
fn scans(story: &Story<'_>, found: &mut Found) {
    let mut commands = BTreeSet::new();
    let mut tasks = BTreeSet::new();
    let mut unscanned: Option<(&str, u64)> = None;
    let mut may_be_scanned: Option<&str> = None;
    // At the end of the last turn, and at the end of the turn that was scanned last.
    let (mut has_background, mut had_background) = (false, false);
    for event in story.events {
        let turn = event.turn.as_deref().unwrap_or_default();
        match event.kind.as_str() {
            "tool_started"
                if event.body["task"].is_string() || event.body["may_change_files"] == true =>
            {
                commands.insert(turn);
            }
            "task_started" => drop(tasks.insert(event.text("task"))),
            "task_ended" => drop(tasks.remove(event.text("task"))),
            "turn_ended" => {
                if commands.contains(turn) {
                    unscanned = Some((turn, event.seq));
                }
                may_be_scanned = had_background.then_some(turn);
                has_background = !tasks.is_empty();
            }
            "turn_started" => {
                if let Some((turn, seq)) = unscanned {
                    let what = format!("a turn began before the scan of turn {turn} was recorded");
                    found.add(P, story.agent, what, &[seq, event.seq]);
                }
                may_be_scanned = None;
            }
            "files_scanned" => {
                let scanned = event.text("turn");
                let is_due = unscanned.take_if(|(turn, _)| *turn == scanned).is_some();
                let is_allowed = may_be_scanned.take_if(|turn| *turn == scanned).is_some();
                if !is_due && !is_allowed {
                    let what =
                        format!("turn {scanned} was scanned, but not after its end, or twice");
                    found.add(P, story.agent, what, &[event.seq]);
                }
                had_background = has_background;
            }
            _ => {}
        }
    }
}

/// What was in the files, compared with the journals.
fn contents(case: &Case<'_>, all: &[(&Story<'_>, Vec<Change<'_>>)], found: &mut Found) {
    let mut seen: BTreeMap<&str, Vec<(&str, Option<String>)>> = BTreeMap::new();
    for file in &case.evidence.files {
        let hash = file.text.as_deref().map(hash);
        let of = seen.entry(file.path.as_str()).or_default();
        of.push((file.when.as_str(), hash));
    }
    for (path, seen) in seen {
        let mut possible: BTreeSet<Option<String>> = BTreeSet::new();
        let first = seen.iter().filter(|(when, _)| *when == "first");
        possible.extend(first.map(|(_, hash)| hash.clone()));
        let mut whole = possible.clone();
        for (story, changes) in all {
            let edits = of_path(changes, path).map(|(change, file)| {
                let call = story.calls.get(change.call);
                let outcome = call.and_then(|call| call.ended.first()).map(|(_, it)| *it);
                // A patch that was stopped halfway.
                let outcome = outcome.filter(|it| *it != "error" || change.files.len() == 1);
                (change.seq, file.after.map(str::to_owned), outcome)
            });
            let mut steps: Vec<(u64, Option<String>, Option<&str>)> = edits.collect();
            steps.extend(p15_restores::steps(story, path));
            steps.sort_by_key(|(seq, ..)| *seq);
            for (_, after, outcome) in steps {
                whole.insert(after.clone());
                match outcome {
                    Some("ok") => possible = BTreeSet::from([after]),
                    Some("unknown") | None => drop(possible.insert(after)),
                    Some(_) => {}
                }
            }
        }
        for (when, hash) in &seen {
            if !whole.contains(hash) {
                let what = format!("{path} had a content that no change gave it ({when})");
                found.add_of_run(P, what);
            }
        }
        let last = seen.iter().rev().find(|(when, _)| *when == "last");
        if let Some((_, hash)) = last
            && !possible.contains(hash)
        {
            let what = format!("{path} is not as the recorded outcomes of its changes say");
            found.add_of_run(P, what);
        }
    }
}

/// The changes of one path.
fn of_path<'a, 'b>(
    changes: &'b [Change<'a>],
    path: &'b str,
) -> impl Iterator<Item = (&'b Change<'a>, &'b File<'a>)> {
    let files = changes
        .iter()
        .flat_map(|change| change.files.iter().map(move |file| (change, file)));
    files.filter(move |(_, file)| file.path() == Some(path))
}
