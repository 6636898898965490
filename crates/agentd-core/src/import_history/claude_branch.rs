//! Which records of a claude-code file belong to the conversation that its user saw last. Each record names the one
//! before it, so a file is a tree: an edited prompt begins a branch, and so does each result of parallel calls.

use super::record::{is_true, text};
use crate::digest::uuid_of;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// One record that has an id. Ids are kept as numbers: a file may have very many.
struct Node {
    number: u64,
    id: u128,
    parent: Option<u128>,
    /// The reply that it is a part of, or the part whose call it answers.
    reply: Option<u128>,
    answers: Option<u128>,
    is_sidechain: bool,
    /// Its parent is not in the tree that it belongs to, but before it in the file.
    begins_again: bool,
}

#[derive(Default)]
pub(super) struct Branch {
    nodes: Vec<Node>,
    /// The records of the conversation, after [`Self::choose`].
    chosen: HashSet<u64>,
    is_sidechain: bool,
}

/// The number of an id. Most are UUIDs.
fn key(id: &str) -> u128 {
    match id.parse::<Uuid>() {
        Ok(id) => id.as_u128(),
        Err(_) => uuid_of(&[id.as_bytes()]).as_u128(),
    }
}

impl Branch {
    pub(super) fn add(&mut self, number: u64, record: &Value) {
        let Some(id) = text(record, "uuid").map(key) else {
            return;
        };
        let parent = text(record, "parentUuid").or_else(|| text(record, "logicalParentUuid"));
        let message = record.get("message");
        let reply = message.and_then(|message| text(message, "id")).map(key);
        let is_reply = text(record, "type") == Some("assistant");
        let answers = text(record, "sourceToolAssistantUUID").map(key);
        self.nodes.push(Node {
            number,
            id,
            parent: parent.map(key),
            reply: reply.filter(|_| is_reply),
            answers,
            is_sidechain: is_true(record, "isSidechain"),
            begins_again: text(record, "subtype") == Some("compact_boundary")
                || is_true(record, "isCompactSummary"),
        });
    }

    /// Whether all records are a subagent's.
    pub(super) fn is_sidechain(&self) -> bool {
        !self.nodes.is_empty() && self.nodes.iter().all(|node| node.is_sidechain)
    }

    pub(super) fn choose(&mut self) {
        self.is_sidechain = self.is_sidechain();
        let is_sidechain = self.is_sidechain;
        self.nodes.retain(|node| is_sidechain || !node.is_sidechain);
        let path = self.path();
        let on_path = |index: &usize| path.contains(index);
        let indexed = || self.nodes.iter().enumerate();
        let replies: HashSet<u128> = indexed()
            .filter(|(index, _)| on_path(index))
            .filter_map(|(_, node)| node.reply)
            .collect();
        // A reply is written in parts. Results of parallel calls are branches of their own.
        let parts = indexed().filter(|(index, node)| {
            on_path(index) || node.reply.is_some_and(|reply| replies.contains(&reply))
        });
        let parts: HashMap<u128, u64> = parts.map(|(_, node)| (node.id, node.number)).collect();
        let answers = self.nodes.iter().filter(|node| {
            let of = node.answers.as_ref();
            of.is_some_and(|of| parts.contains_key(of))
        });
        self.chosen = answers.map(|node| node.number).collect();
        self.chosen.extend(parts.into_values());
        self.nodes = Vec::new();
    }

    /// The way from the last record back to the first, as positions in `nodes`.
    fn path(&self) -> HashSet<usize> {
        let known: HashMap<u128, usize> = self
            .nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (node.id, index))
            .collect();
        let mut path = HashSet::new();
        let mut next = self.nodes.len().checked_sub(1);
        while let Some(index) = next {
            if !path.insert(index) {
                break;
            }
            let Some(node) = self.nodes.get(index) else {
                break;
            };
            let before = index.checked_sub(1);
            next = match node.parent {
                // A record that points forward or is missing was damaged: what comes before it is the best guess.
                Some(parent) => known
                    .get(&parent)
                    .copied()
                    .filter(|of| *of < index)
                    .or(before),
                None if node.begins_again => before,
                None => None,
            };
        }
        path
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.chosen.contains(&number)
    }

    /// Whether a record that is not chosen is a subagent's.
    pub(super) fn is_of_subagent(&self, record: &Value) -> bool {
        !self.is_sidechain && is_true(record, "isSidechain")
    }
}
