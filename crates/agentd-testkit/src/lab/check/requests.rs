//! Matches each request that the model received with a request on record.
//!
//! They arrive in the order in which they are on record. A request on record may not have been sent, and a
//! request that is on record as completed was sent. If several matchings are possible, any will do.

use super::evidence::{Evidence, Journal, ModelRequest};
use super::story::{Request, Story};
use super::words;
use std::collections::BTreeMap;

/// The requests that the model received from this agent while the power was on.
pub fn of_agent<'a>(evidence: &'a Evidence, journal: &Journal) -> Vec<&'a ModelRequest> {
    let is_alone = evidence.journals.len() == 1;
    let own = |request: &&ModelRequest| match &request.agent {
        Some(agent) => evidence.id(agent) == journal.agent,
        None if is_alone => true,
        None => opens_like(journal, request),
    };
    let on = evidence.model.iter().filter(|it| !evidence.is_off(it.at));
    on.filter(own).collect()
}

/// Whether a request begins with text that a user sent to this agent.
fn opens_like(journal: &Journal, request: &ModelRequest) -> bool {
    let words = words::of_request(&request.body);
    let Some(first) = words.first() else {
        return false;
    };
    let mut prompts = journal.events.iter().filter(|event| event.is("prompt"));
    prompts.any(|event| words::texts(&event.body["blocks"]).contains(first))
}

pub enum Matched {
    /// For each request that the model received, the one on record.
    All(Vec<usize>),
    /// There is no possible matching; why.
    Not(Vec<(String, Vec<u64>)>),
}

/// Finds a matching.
pub fn matched(journal: &Journal, story: &Story<'_>, got: &[&ModelRequest]) -> Matched {
    let sent = &story.requests;
    let told: Vec<Vec<String>> = sent
        .iter()
        .map(|request| words::of_window(journal, request.conversation, request.sent))
        .collect();
    let all = every_word(journal);
    let all = counts(&all);
    let heard: Vec<Vec<String>> = got.iter().map(|it| words::of_request(&it.body)).collect();
    let may = |i: usize, j: usize| {
        (got[i].finished || !is_completed(&sent[j]))
            && misfit(&sent[j], &told[j], &heard[i], &all).is_none()
    };
    let (m, n) = (got.len(), sent.len());
    // reach[i][j]: the first i requests received are among the first j on record.
    let mut reach = vec![vec![false; n + 1]; m + 1];
    reach[0][0] = true;
    for j in 1..=n {
        for i in 0..=m {
            let not_left = reach[i][j - 1] && !is_completed(&sent[j - 1]);
            let came = i > 0 && reach[i - 1][j - 1] && may(i - 1, j - 1);
            reach[i][j] = not_left || came;
        }
    }
    if !reach[m][n] {
        return Matched::Not(why(story, got, &told, &heard, &all));
    }
    let mut pairs = vec![0; m];
    let (mut i, mut j) = (m, n);
    while j > 0 {
        // The earliest possible one.
        if reach[i][j - 1] && !is_completed(&sent[j - 1]) {
            j -= 1;
        } else {
            (i, j) = (i - 1, j - 1);
            pairs[i] = j;
        }
    }
    Matched::All(pairs)
}

fn is_completed(request: &Request<'_>) -> bool {
    request
        .ended
        .iter()
        .any(|(_, outcome)| *outcome == "completed")
}

/// Text that a request should contain and does not, or the other way round.
fn misfit(
    request: &Request<'_>,
    told: &[String],
    heard: &[String],
    all: &BTreeMap<&str, usize>,
) -> Option<String> {
    if request.purpose != "compact" {
        let mut free: Vec<&String> = heard.iter().collect();
        for word in told {
            let same = free.iter().position(|heard| *heard == word);
            let same = same.or_else(|| free.iter().position(|heard| heard.contains(word)));
            match same {
                Some(at) => drop(free.swap_remove(at)),
                None => return Some(format!("does not contain `{word}`")),
            }
        }
    }
    let told = counts(told);
    for (word, times) in counts(heard) {
        if all.contains_key(word) && times > told.get(word).copied().unwrap_or(0) {
            return Some(format!("contains `{word}`, which does not belong there"));
        }
    }
    None
}

fn counts(words: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for word in words {
        *counts.entry(word.as_str()).or_default() += 1;
    }
    counts
}

/// All text of the journal, whether the model ever sees it or not.
fn every_word(journal: &Journal) -> Vec<String> {
    let mut words = Vec::new();
    for event in &journal.events {
        match event.kind.as_str() {
            "prompt" => words.extend(words::shown(&event.body["blocks"])),
            "message" | "result" => words.extend(words::texts(&event.body["blocks"])),
            "notice" => words.push(event.text("text").trim().to_owned()),
            _ => {}
        }
    }
    words
}

/// Reports the violation as precisely as possible.
fn why(
    story: &Story<'_>,
    got: &[&ModelRequest],
    told: &[Vec<String>],
    heard: &[Vec<String>],
    all: &BTreeMap<&str, usize>,
) -> Vec<(String, Vec<u64>)> {
    let mut found = Vec::new();
    let sent = &story.requests;
    for (i, request) in got.iter().enumerate() {
        let misfits = sent.iter().zip(told);
        let misfits: Vec<_> = misfits
            .map(|(sent, told)| (sent.sent, misfit(sent, told, &heard[i], all)))
            .collect();
        if misfits.iter().all(|(_, misfit)| misfit.is_some()) {
            // The nearest one: as many came before it.
            let nearest = misfits.get(i).or(misfits.last());
            let (at, why) = nearest.cloned().unwrap_or_default();
            let why = why.unwrap_or_else(|| "matches none on record".to_owned());
            let n = request.n;
            found.push((
                format!("request {n} to the model is not on record: it {why}"),
                vec![at],
            ));
        }
    }
    for (request, told) in sent.iter().zip(told).filter(|(sent, _)| is_completed(sent)) {
        let mut whole = got.iter().zip(heard).filter(|(got, _)| got.finished);
        if whole.all(|(_, heard)| misfit(request, told, heard, all).is_some()) {
            let what = format!(
                "request {} is completed, but the model never answered it",
                request.id
            );
            found.push((what, vec![request.sent]));
        }
    }
    if found.is_empty() && got.len() == sent.len() {
        // As many arrived as are on record: then each is most likely the one at its position.
        for (i, (request, told)) in sent.iter().zip(told).enumerate() {
            if let Some(why) = misfit(request, told, &heard[i], all) {
                let (n, id) = (got[i].n, &request.id);
                let what = format!("request {n} to the model, which should be {id}, {why}");
                found.push((what, vec![request.sent]));
            }
        }
    }
    if found.is_empty() {
        let (got, sent) = (got.len(), sent.len());
        let what = format!(
            "the model received {got} requests that do not match the {sent} on record, in order: one \
             of them was sent twice, or sent without being on record"
        );
        found.push((
            what,
            story.requests.iter().map(|request| request.sent).collect(),
        ));
    }
    found
}
