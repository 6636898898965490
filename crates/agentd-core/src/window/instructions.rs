//! The instruction files that the model knows, and what it was told about them.

use super::Window;
use crate::event::{InstructionsChanged, KnownSkill};
use std::collections::BTreeMap;

impl Window {
    /// The instruction files that the model knows, with the digests of their texts.
    pub fn known_instructions(&self) -> BTreeMap<&str, Option<&str>> {
        let kept = self.context().and_then(|context| context.kept.as_ref());
        let kept = kept.map_or(&[][..], |kept| &kept.files).iter();
        let kept = kept.map(|file| (file.path.as_str(), file.digest.as_deref()));
        let told = self.told.values();
        let told = told.map(|it| (it.value.path.as_str(), it.value.digest.as_deref()));
        kept.chain(told).collect()
    }

    /// The skills that the system prompt of the conversation names.
    pub fn known_skills(&self) -> &[KnownSkill] {
        let kept = self.context().and_then(|context| context.kept.as_ref());
        kept.map_or(&[][..], |kept| &kept.skills)
    }

    /// Whether the model was told that an instruction file or a skill no longer applies.
    pub fn was_told_to_ignore(&self, path: &str) -> bool {
        let told = self.told.get(path);
        told.is_some_and(|it| it.value.digest.is_none())
    }

    /// The size of everything that the model was told about instruction files.
    pub fn told_bytes(&self) -> usize {
        self.told.values().map(|it| it.value.text.len()).sum()
    }

    /// What the model was told about instruction files and no longer sees, because a summary has replaced it.
    pub fn lost_instructions(&self) -> impl Iterator<Item = InstructionsChanged> {
        let told = self.told.values();
        let lost = told.filter(|it| !self.items.iter().any(|item| item.source == it.source));
        lost.map(|it| it.value.clone())
    }
}
