//! The prompts that were sent before, for the prompt line.

/// A prompt is not added again if it is among so many of the newest: it comes back as an event.
const RECENT: usize = 10;

#[derive(Default)]
pub struct Past {
    /// Oldest first.
    prompts: Vec<String>,
    /// How many prompts the user has gone back; 0 if the prompt line has what the user typed.
    back: usize,
    /// What the user typed before going back.
    typed: String,
}

impl Past {
    pub fn add(&mut self, prompt: &str) {
        self.back = 0;
        let mut recent = self.prompts.iter().rev().take(RECENT);
        if !prompt.trim().is_empty() && !recent.any(|known| known == prompt) {
            self.prompts.push(prompt.to_owned());
        }
    }

    /// Adds prompts that were sent before all others, oldest first.
    pub fn add_older(&mut self, prompts: impl IntoIterator<Item = String>) {
        self.prompts.splice(0..0, prompts);
    }

    /// The prompt before the one that is shown.
    pub fn older(&mut self, typed: impl FnOnce() -> String) -> Option<&str> {
        if self.back >= self.prompts.len() {
            return None;
        }
        if self.back == 0 {
            self.typed = typed();
        }
        self.back += 1;
        self.at(self.back)
    }

    /// The prompt after the one that is shown, and at last what the user typed.
    pub fn newer(&mut self) -> Option<&str> {
        self.back = self.back.checked_sub(1)?;
        match self.back {
            0 => Some(&self.typed),
            back => self.at(back),
        }
    }

    /// The user typed something else.
    pub const fn leave(&mut self) {
        self.back = 0;
    }

    fn at(&self, back: usize) -> Option<&str> {
        let index = self.prompts.len().checked_sub(back)?;
        self.prompts.get(index).map(String::as_str)
    }

    /// The newest prompt that contains the words, at least so far back; and how far back it is.
    pub fn find(&self, words: &str, from: usize) -> Option<(usize, &str)> {
        let words = words.to_lowercase();
        let prompts = self.prompts.iter().rev().enumerate();
        let mut found = prompts
            .map(|(n, prompt)| (n + 1, prompt.as_str()))
            .skip(from.saturating_sub(1))
            .filter(|(_, prompt)| prompt.to_lowercase().contains(&words));
        found.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(prompts: &[&str]) -> Past {
        let mut past = Past::default();
        prompts.iter().for_each(|prompt| past.add(prompt));
        past
    }

    #[test]
    fn going_back_and_forth_ends_with_what_was_typed() {
        let mut past = past(&["one", "two"]);
        let typed = || "draft".to_owned();
        assert_eq!(past.older(typed), Some("two"));
        assert_eq!(past.older(typed), Some("one"));
        assert_eq!(past.older(typed), None);
        past.add_older(["zero".to_owned()]);
        assert_eq!(past.older(typed), Some("zero"));
        assert_eq!(past.newer(), Some("one"));
        assert_eq!(past.newer(), Some("two"));
        assert_eq!(past.newer(), Some("draft"));
        assert_eq!(past.newer(), None);
    }

    #[test]
    fn a_prompt_that_comes_back_as_an_event_is_there_once() {
        let mut past = past(&["one", "two", "one", " ", "two"]);
        assert_eq!(past.older(String::new), Some("two"));
        assert_eq!(past.older(String::new), Some("one"));
        assert_eq!(past.older(String::new), None);
    }

    #[test]
    fn a_search_finds_one_after_the_other() {
        let past = past(&["fix the tests", "build", "Fix the docs"]);
        assert_eq!(past.find("fix", 1), Some((1, "Fix the docs")));
        assert_eq!(past.find("fix", 2), Some((3, "fix the tests")));
        assert_eq!(past.find("fix", 4), None);
    }
}
