//! Instruction files that change while a conversation lasts: the model is told before its next request.

use super::live::Looked;
use super::plan::Move;
use super::{Effect, Machine};
use crate::event::Body;
use crate::system_prompt::{self, Present, ToldFiles};
use std::collections::BTreeMap;

/// Paths, with the digests of what the model knows; none if it no longer applies.
type Told<'a> = BTreeMap<&'a str, Option<&'a str>>;

impl Machine {
    /// What comes before a request: a notice that a compaction took away, or a look at the files.
    pub(super) fn instructions_first(&mut self) -> Option<Move> {
        // Without a context, the next request is the first: its system prompt contains the files.
        if self.policy.context.kept.is_none() || self.window.context().is_none() {
            return None;
        }
        let lost: Vec<Body> = self.window.lost_instructions().map(Body::from).collect();
        if !lost.is_empty() {
            self.live.outbox.backlog.extend(lost);
            return Some(Move::Append);
        }
        match self.live.turn.instructions {
            Looked::Done => None,
            Looked::Asked => Some(Move::Wait),
            Looked::NotYet => {
                self.live.turn.instructions = Looked::Asked;
                let (_, files) = self.told_skills_and_files();
                let skills = self.window.known_skills().iter();
                let told = ToldFiles {
                    instructions: files.into_keys().map(str::to_owned).collect(),
                    skills: skills.map(|skill| skill.path.clone()).collect(),
                };
                Some(Move::Do(vec![Effect::ReadInstructions { told }]))
            }
        }
    }

    /// The files as they are now; none if they could not be read.
    pub(super) fn instructions_read(&mut self, present: Option<&Present>) {
        // The turn may have ended meanwhile.
        if self.live.turn.instructions != Looked::Asked {
            return;
        }
        self.live.turn.instructions = Looked::Done;
        if let Some(present) = present {
            let room = system_prompt::MOST_BYTES.saturating_sub(self.window.told_bytes());
            let (skills, files) = self.told_skills_and_files();
            let known = self.window.known_skills();
            let of_skills = system_prompt::skill_changes(known, &skills, &present.unusable);
            let mut changes = system_prompt::changes(&files, &present.instructions, room);
            changes.extend(of_skills);
            let changes = changes.into_iter().map(Body::from);
            self.live.outbox.backlog.extend(changes);
        }
    }

    /// What the model was told about skills, and the instruction files that it knows.
    fn told_skills_and_files(&self) -> (Told<'_>, Told<'_>) {
        let skills = self.window.known_skills();
        let is_skill = |path: &str| skills.iter().any(|skill| skill.path == path);
        let known = self.window.known_instructions().into_iter();
        known.partition(|(path, _)| is_skill(path))
    }
}
