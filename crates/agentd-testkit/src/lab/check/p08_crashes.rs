//! P8: a turn that crashes its runtime each time is given up after three tries, and reported; no
//! fourth model request.

use super::story::Story;
use super::{Case, Found};

const P: &str = "P8";

const TRIES: usize = 3;

pub fn check(case: &Case<'_>, found: &mut Found) {
    for story in &case.stories {
        let mut turn = Tries::default();
        for event in story.events {
            turn.event(story, event, found);
        }
    }
    if case.evidence.run.expects["crash_loop"] == true {
        reported(case, found);
    }
}

/// The failures of a turn since its last progress.
#[derive(Default)]
struct Tries {
    /// Requests that were lost with their process, and the crashes.
    lost: Vec<u64>,
    crashes: Vec<u64>,
    after_crash: bool,
}

impl Tries {
    fn event(&mut self, story: &Story<'_>, event: &super::evidence::Event, found: &mut Found) {
        match event.kind.as_str() {
            "turn_started" | "turn_continued" => *self = Self::default(),
            "incarnation_began" => {
                self.after_crash = event.text("after") == "crash";
                if self.after_crash {
                    self.crashes.push(event.seq);
                }
            }
            "request_ended" => match event.body["outcome"]["type"].as_str() {
                Some("completed") => *self = Self::default(),
                Some("lost") if self.after_crash => self.lost.push(event.seq),
                _ => {}
            },
            // A result that recovery writes for a call lost in a crash is not progress.
            "tool_ended" if !matches!(event.text("outcome"), "not_started" | "unknown") => {
                *self = Self::default();
            }
            "request_sent" if self.lost.len() >= TRIES => {
                let what = format!(
                    "a request was sent after {} attempts were lost",
                    self.lost.len()
                );
                let mut at = self.lost.clone();
                at.push(event.seq);
                found.add(P, story.agent, what, &at);
            }
            "turn_ended" => {
                if event.text("status") == "lost" && self.crashes.len() < TRIES {
                    let what = format!("a turn was given up after {} crashes", self.crashes.len());
                    found.add(P, story.agent, what, &[event.seq]);
                }
                *self = Self::default();
            }
            _ => {}
        }
    }
}

/// A scenario that crashes a turn each time: the turn ends as lost, and the sender is told.
fn reported(case: &Case<'_>, found: &mut Found) {
    let lost = |story: &&Story<'_>| {
        let mut ends = story.turns.iter().flat_map(|turn| &turn.ended);
        ends.any(|(_, status)| *status == "lost")
    };
    let Some(story) = case.stories.iter().find(lost) else {
        let what = "a turn that crashes each time was not given up".to_owned();
        found.add_of_run(P, what);
        return;
    };
    let told = case
        .evidence
        .prompts
        .iter()
        .filter(|sent| sent.acknowledged);
    let told: Vec<_> = told.filter_map(|sent| sent.status.as_deref()).collect();
    if !told.is_empty() && !told.contains(&"lost") {
        let what = format!("a turn was given up, but its sender was told {told:?}");
        found.add(P, story.agent, what, &[]);
    }
}
