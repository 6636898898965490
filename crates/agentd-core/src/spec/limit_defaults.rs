//! Limits as defaults: only some of them, for agents that do not set their own.

use super::{Budget, Limits};
use crate::usage::MicroUsd;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Some of the [`Limits`]. An absent field sets nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitDefaults {
    pub max_iterations: Option<u32>,
    pub max_output_tokens: Option<u64>,
    pub turn: Budget,
    pub conversation: Budget,
    pub day: Budget,
    pub subtree: Budget,
    pub max_tasks: Option<u32>,
    pub max_children: Option<u32>,
    pub max_depth: Option<u32>,
    pub max_queue: Option<u32>,
    pub tool_output_bytes: Option<u64>,
    pub task_output_bytes: Option<u64>,
    pub kept_output_bytes: Option<u64>,
    pub task_memory_bytes: Option<u64>,
    pub task_processes: Option<u64>,
    pub task_open_files: Option<u64>,
}

/// One limit of either struct, so that all limits are listed once.
enum Slot<'a> {
    U32(&'a mut u32),
    U64(&'a mut u64),
    Some32(&'a mut Option<u32>),
    Some64(&'a mut Option<u64>),
    Usd(&'a mut Option<MicroUsd>),
}

impl Slot<'_> {
    fn get(&self) -> Option<u64> {
        match self {
            Self::U32(value) => Some(u64::from(**value)),
            Self::U64(value) => Some(**value),
            Self::Some32(value) => value.map(u64::from),
            Self::Some64(value) => **value,
            Self::Usd(value) => value.map(|MicroUsd(micros)| micros),
        }
    }

    fn set(self, new: u64) {
        let short = u32::try_from(new).unwrap_or(u32::MAX);
        match self {
            Self::U32(value) => *value = short,
            Self::U64(value) => *value = new,
            Self::Some32(value) => *value = Some(short),
            Self::Some64(value) => *value = Some(new),
            Self::Usd(value) => *value = Some(MicroUsd(new)),
        }
    }
}

const BUDGETS: usize = 12;
const ALL: usize = 12 + BUDGETS;

fn budgets<'a>(
    turn: &'a mut Budget,
    conversation: &'a mut Budget,
    day: &'a mut Budget,
    subtree: &'a mut Budget,
) -> [(&'static str, Slot<'a>); BUDGETS] {
    [
        ("turn.tokens", Slot::Some64(&mut turn.tokens)),
        ("turn.usd", Slot::Usd(&mut turn.usd)),
        ("turn.wall_ms", Slot::Some64(&mut turn.wall_ms)),
        (
            "conversation.tokens",
            Slot::Some64(&mut conversation.tokens),
        ),
        ("conversation.usd", Slot::Usd(&mut conversation.usd)),
        (
            "conversation.wall_ms",
            Slot::Some64(&mut conversation.wall_ms),
        ),
        ("day.tokens", Slot::Some64(&mut day.tokens)),
        ("day.usd", Slot::Usd(&mut day.usd)),
        ("day.wall_ms", Slot::Some64(&mut day.wall_ms)),
        ("subtree.tokens", Slot::Some64(&mut subtree.tokens)),
        ("subtree.usd", Slot::Usd(&mut subtree.usd)),
        ("subtree.wall_ms", Slot::Some64(&mut subtree.wall_ms)),
    ]
}

// The structs are destructured by name, so that a new limit cannot be forgotten here.

fn of_limits(limits: &mut Limits) -> impl Iterator<Item = (&'static str, Slot<'_>)> {
    let Limits {
        max_iterations,
        max_output_tokens,
        turn,
        conversation,
        day,
        subtree,
        max_tasks,
        max_children,
        max_depth,
        max_queue,
        tool_output_bytes,
        task_output_bytes,
        kept_output_bytes,
        task_memory_bytes,
        task_processes,
        task_open_files,
    } = limits;
    let others: [_; ALL - BUDGETS] = [
        ("max_iterations", Slot::U32(max_iterations)),
        ("max_output_tokens", Slot::Some64(max_output_tokens)),
        ("max_tasks", Slot::U32(max_tasks)),
        ("max_children", Slot::U32(max_children)),
        ("max_depth", Slot::U32(max_depth)),
        ("max_queue", Slot::U32(max_queue)),
        ("tool_output_bytes", Slot::U64(tool_output_bytes)),
        ("task_output_bytes", Slot::U64(task_output_bytes)),
        ("kept_output_bytes", Slot::Some64(kept_output_bytes)),
        ("task_memory_bytes", Slot::Some64(task_memory_bytes)),
        ("task_processes", Slot::Some64(task_processes)),
        ("task_open_files", Slot::Some64(task_open_files)),
    ];
    let budgets = budgets(turn, conversation, day, subtree);
    others.into_iter().chain(budgets)
}

fn of_defaults(defaults: &mut LimitDefaults) -> impl Iterator<Item = (&'static str, Slot<'_>)> {
    let LimitDefaults {
        max_iterations,
        max_output_tokens,
        turn,
        conversation,
        day,
        subtree,
        max_tasks,
        max_children,
        max_depth,
        max_queue,
        tool_output_bytes,
        task_output_bytes,
        kept_output_bytes,
        task_memory_bytes,
        task_processes,
        task_open_files,
    } = defaults;
    let others: [_; ALL - BUDGETS] = [
        ("max_iterations", Slot::Some32(max_iterations)),
        ("max_output_tokens", Slot::Some64(max_output_tokens)),
        ("max_tasks", Slot::Some32(max_tasks)),
        ("max_children", Slot::Some32(max_children)),
        ("max_depth", Slot::Some32(max_depth)),
        ("max_queue", Slot::Some32(max_queue)),
        ("tool_output_bytes", Slot::Some64(tool_output_bytes)),
        ("task_output_bytes", Slot::Some64(task_output_bytes)),
        ("kept_output_bytes", Slot::Some64(kept_output_bytes)),
        ("task_memory_bytes", Slot::Some64(task_memory_bytes)),
        ("task_processes", Slot::Some64(task_processes)),
        ("task_open_files", Slot::Some64(task_open_files)),
    ];
    let budgets = budgets(turn, conversation, day, subtree);
    others.into_iter().chain(budgets)
}

impl Limits {
    /// Every limit with its value; `None` means that there is no limit. Amounts of money are in millionths of a dollar.
    pub fn entries(&self) -> Vec<(&'static str, Option<u64>)> {
        let mut copy = self.clone();
        let mut all: Vec<_> = of_limits(&mut copy)
            .map(|(key, slot)| (key, slot.get()))
            .collect();
        for (key, value) in &mut all {
            if *key == "kept_output_bytes" {
                *value = Some(self.kept_output_bytes());
            }
        }
        all
    }
}

impl LimitDefaults {
    /// The limits that are set, with their values. Amounts of money are in millionths of a dollar.
    pub fn entries(&self) -> Vec<(&'static str, u64)> {
        let mut copy = self.clone();
        of_defaults(&mut copy)
            .filter_map(|(key, slot)| Some((key, slot.get()?)))
            .collect()
    }

    /// Sets a limit by its key; an unknown key changes nothing.
    pub(crate) fn set(&mut self, key: &str, value: u64) {
        if let Some((_, slot)) = of_defaults(self).find(|(known, _)| *known == key) {
            slot.set(value);
        }
    }

    /// Sets these limits, except those that are in `given`, as `limits.KEY`.
    pub fn apply(&self, limits: &mut Limits, given: &BTreeSet<String>) {
        let set = self.entries();
        for (key, slot) in of_limits(limits) {
            let found = set.iter().find(|(set, _)| *set == key);
            if let Some((_, value)) = found
                && !given.contains(&format!("limits.{key}"))
            {
                slot.set(*value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_can_be_a_default() {
        let limits: Vec<&str> = Limits::default()
            .entries()
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        assert_eq!(limits.len(), ALL);
        let mut all = LimitDefaults::default();
        for key in &limits {
            all.set(key, 7);
        }
        let set: Vec<&str> = all.entries().into_iter().map(|(key, _)| key).collect();
        assert_eq!(set, limits);
        let mut applied = Limits::default();
        all.apply(&mut applied, &BTreeSet::new());
        assert!(applied.entries().iter().all(|(_, value)| *value == Some(7)));
    }

    #[test]
    fn a_limit_that_was_given_stays() {
        let mut defaults = LimitDefaults::default();
        defaults.set("max_iterations", 5);
        defaults.set("turn.usd", 1_000_000);
        let mut limits = Limits::default();
        let given = BTreeSet::from(["limits.max_iterations".to_owned()]);
        defaults.apply(&mut limits, &given);
        assert_eq!(limits.max_iterations, 100);
        assert_eq!(limits.turn.usd, Some(MicroUsd(1_000_000)));
    }
}
