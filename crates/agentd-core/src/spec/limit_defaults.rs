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
    pub file_history_bytes: Option<u64>,
    pub task_memory_bytes: Option<u64>,
    pub task_processes: Option<u64>,
    pub task_open_files: Option<u64>,
    pub program_calls: Option<u64>,
    pub program_bytes: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub cpu_percent: Option<u32>,
}

/// One limit of either struct.
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

macro_rules! slot_of {
    ($($type:ty => $variant:ident),*) => {$(
        impl<'a> From<&'a mut $type> for Slot<'a> {
            fn from(value: &'a mut $type) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}

slot_of!(u32 => U32, u64 => U64, Option<u32> => Some32, Option<u64> => Some64, Option<MicroUsd> => Usd);

/// The limits of a struct with their keys. It is destructured by name, so that a new limit cannot be forgotten here.
macro_rules! slots {
    ($type:ident { $($field:ident),* } [ $($budget:ident),* ] of $limits:ident) => {{
        let $type { $($field,)* $($budget,)* } = $limits;
        [
            $((stringify!($field), Slot::from($field)),)*
            $(
                (concat!(stringify!($budget), ".tokens"), Slot::from(&mut $budget.tokens)),
                (concat!(stringify!($budget), ".usd"), Slot::from(&mut $budget.usd)),
                (concat!(stringify!($budget), ".wall_ms"), Slot::from(&mut $budget.wall_ms)),
            )*
        ]
    }};
    ($type:ident of $limits:ident) => {
        slots!($type {
            max_iterations,
            max_output_tokens,
            max_tasks,
            max_children,
            max_depth,
            max_queue,
            tool_output_bytes,
            task_output_bytes,
            kept_output_bytes,
            file_history_bytes,
            task_memory_bytes,
            task_processes,
            task_open_files,
            program_calls,
            program_bytes,
            memory_bytes,
            cpu_percent
        } [turn, conversation, day, subtree] of $limits)
    };
}

const ALL: usize = 29;

fn of_limits(limits: &mut Limits) -> [(&'static str, Slot<'_>); ALL] {
    slots!(Limits of limits)
}

fn of_defaults(defaults: &mut LimitDefaults) -> [(&'static str, Slot<'_>); ALL] {
    slots!(LimitDefaults of defaults)
}

impl Limits {
    /// Every limit with its value; `None` means that there is no limit. Amounts of money are in millionths of a dollar.
    pub fn entries(&self) -> Vec<(&'static str, Option<u64>)> {
        let mut copy = self.clone();
        let mut all: Vec<_> = of_limits(&mut copy)
            .into_iter()
            .map(|(key, slot)| (key, slot.get()))
            .collect();
        for (key, value) in &mut all {
            match *key {
                "kept_output_bytes" => *value = Some(self.kept_output_bytes()),
                "file_history_bytes" => *value = Some(self.file_history_bytes()),
                "program_calls" => *value = Some(self.program_calls()),
                "program_bytes" => *value = Some(self.program_bytes()),
                _ => {}
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
            .into_iter()
            .filter_map(|(key, slot)| Some((key, slot.get()?)))
            .collect()
    }

    /// Sets a limit by its key; an unknown key changes nothing.
    pub(crate) fn set(&mut self, key: &str, value: u64) {
        if let Some((_, slot)) = of_defaults(self)
            .into_iter()
            .find(|(known, _)| *known == key)
        {
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
