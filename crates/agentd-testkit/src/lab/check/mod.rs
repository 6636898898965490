//! The checker: reads the directory of a run and reports which promises were violated.
//!
//! It shares no code with the product, so that a bug there is not repeated here: what it knows of events is what
//! `docs/journal.md` says, and it reads them as plain JSON. Each promise is one file. Each check is as strict as
//! the evidence allows, and silent about what is permitted.
//!
//! - [`evidence`]: the directory as it was written; [`lines`]: its files; [`journal`]: an exported journal; [`traces`]: what
//!   processes wrote into it.
//! - [`backed_up`]: backups, and the homes that were restored from them.
//! - [`story`]: one agent's journal, sorted by what it is about.
//! - `p01`…`p18`: the promises.

mod apart;
pub mod backed_up;
pub mod evidence;
pub mod journal;
pub mod lines;
mod outer;
mod requests;
pub mod story;
pub mod traces;
mod withdrawn;
mod words;

mod p01_prompts;
mod p02_events;
mod p03_requests;
mod p04_commands;
mod p04_tools;
mod p05_text;
mod p06_interrupts;
mod p07_turns;
mod p08_crashes;
mod p09_processes;
mod p10_approvals;
mod p11_notices;
mod p12_resets;
mod p13_hooks;
mod p14_subagents;
mod p15_files;
mod p15_kept;
mod p15_restores;
mod p16_schedules;
mod p17_webhooks;
mod p18_backups;

#[cfg(test)]
mod tests;

use evidence::Evidence;
use std::io;
use std::path::Path;
use story::Story;

/// A promise that was violated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// `P1` to `P18`.
    pub promise: &'static str,
    /// The id of the agent that it happened to.
    pub agent: Option<String>,
    pub what: String,
    /// The events of that agent's journal that it is about.
    pub at: Vec<u64>,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.promise, self.what)?;
        if !self.at.is_empty() {
            let at: Vec<String> = self.at.iter().map(u64::to_string).collect();
            write!(f, " (event {})", at.join(", "))?;
        }
        Ok(())
    }
}

/// Checks the directory of a run. An error is about the directory, never about the product.
pub fn check(run: &Path) -> io::Result<Vec<Violation>> {
    Ok(judge(&Evidence::read(run)?))
}

/// One run, with each agent's journal sorted.
struct Case<'a> {
    evidence: &'a Evidence,
    stories: Vec<Story<'a>>,
}

impl Case<'_> {
    /// The story of an agent by its id or its name.
    fn story(&self, agent: &str) -> Option<&Story<'_>> {
        let id = self.evidence.id(agent);
        self.stories.iter().find(|story| story.agent == id)
    }
}

#[derive(Default)]
struct Found {
    violations: Vec<Violation>,
}

impl Found {
    fn add(&mut self, promise: &'static str, agent: &str, what: String, at: &[u64]) {
        self.violations.push(Violation {
            promise,
            agent: Some(agent.to_owned()),
            what,
            at: at.to_vec(),
        });
    }

    fn add_of_run(&mut self, promise: &'static str, what: String) {
        self.violations.push(Violation {
            promise,
            agent: None,
            what,
            at: Vec::new(),
        });
    }
}

fn judge(evidence: &Evidence) -> Vec<Violation> {
    let stories = evidence.journals.iter();
    let stories = stories.map(|journal| Story::of(&journal.agent, &journal.events));
    let case = Case {
        evidence,
        stories: stories.collect(),
    };
    let mut found = Found::default();
    p01_prompts::check(&case, &mut found);
    p02_events::check(&case, &mut found);
    p03_requests::check(&case, &mut found);
    p04_tools::check(&case, &mut found);
    p05_text::check(&case, &mut found);
    p06_interrupts::check(&case, &mut found);
    p07_turns::check(&case, &mut found);
    p08_crashes::check(&case, &mut found);
    p09_processes::check(&case, &mut found);
    p10_approvals::check(&case, &mut found);
    p11_notices::check(&case, &mut found);
    p12_resets::check(&case, &mut found);
    p13_hooks::check(&case, &mut found);
    p14_subagents::check(&case, &mut found);
    p15_files::check(&case, &mut found);
    p16_schedules::check(&case, &mut found);
    p17_webhooks::check(&case, &mut found);
    p18_backups::check(&case, &mut found);
    found.violations
}
