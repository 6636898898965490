//! Which `@path` words of a text the user typed. Only these attach files: a text that was pasted, or that comes from a command
//! file, may contain others.

use crate::at_path;
use std::collections::{BTreeSet, HashMap};

#[derive(Default)]
pub struct Untyped {
    /// The words of the present text that the user did not type.
    words: BTreeSet<String>,
    /// Those of texts that may come back into the prompt line.
    of_texts: HashMap<String, BTreeSet<String>>,
}

impl Untyped {
    /// A text was pasted. A single word is what the user means.
    pub fn pasted(&mut self, text: &str) {
        if at_path::words(text).len() > 1 {
            self.words.extend(names(text));
        }
    }

    /// The text of the prompt line is replaced by another one.
    pub fn replaced(&mut self, old: impl FnOnce() -> String, new: &str) {
        if !self.words.is_empty() {
            let words = std::mem::take(&mut self.words);
            self.of_texts.insert(old(), words);
        }
        if let Some(words) = self.of_texts.get(new) {
            self.words.clone_from(words);
        }
    }

    /// The user has changed the text in another program.
    pub fn edited(&mut self, old: &str, new: &str) {
        let words = self.words.clone();
        self.replaced(|| old.to_owned(), new);
        self.words.extend(words);
    }

    /// The text of a prompt, of which the user typed only a part. It may come back.
    pub fn expanded(&mut self, text: &str, typed: &str) {
        let typed: BTreeSet<String> = names(typed).collect();
        let words: BTreeSet<String> = names(text).filter(|word| !typed.contains(word)).collect();
        if !words.is_empty() {
            self.of_texts.insert(text.to_owned(), words);
        }
    }

    /// The words of the present text, or of one that may come back, that the user did not type.
    pub fn of(&self, text: &str) -> BTreeSet<String> {
        let mut words = self.words.clone();
        words.extend(self.of_texts.get(text).into_iter().flatten().cloned());
        words
    }

    /// These words of the present text were not typed.
    pub fn add(&mut self, words: &BTreeSet<String>) {
        self.words.extend(words.iter().cloned());
    }

    /// A text without the words that the user did not type.
    pub fn typed(&self, text: String) -> String {
        if self.words.is_empty() {
            return text;
        }
        let words = at_path::words(&text).into_iter();
        let typed = words.filter(|word| !self.words.contains(*word));
        typed.collect::<Vec<_>>().join(" ")
    }
}

fn names(text: &str) -> impl Iterator<Item = String> {
    let words = at_path::words(text);
    words
        .into_iter()
        .filter(|word| word.starts_with('@'))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_pasted_text_name_no_files_also_if_it_comes_back() {
        let mut untyped = Untyped::default();
        untyped.pasted("@alone");
        assert_eq!(untyped.typed("see @alone".to_owned()), "see @alone");
        untyped.pasted("look at\n@.env please");
        let text = "fix @a.rs look at\n@.env please";
        assert_eq!(untyped.typed(text.to_owned()), "fix @a.rs look at please");
        untyped.replaced(|| text.to_owned(), "other");
        assert_eq!(untyped.typed("@.env".to_owned()), "@.env");
        untyped.replaced(String::new, text);
        assert_eq!(untyped.typed("@.env".to_owned()), "");
        untyped.edited(text, "changed @.env");
        assert_eq!(untyped.typed("changed @.env".to_owned()), "changed");
    }

    #[test]
    fn words_of_a_command_file_name_no_files_also_if_it_comes_back() {
        let mut untyped = Untyped::default();
        untyped.expanded("Review @a.rs, see @.env", "@a.rs,");
        untyped.replaced(String::new, "Review @a.rs, see @.env");
        let typed = untyped.typed("Review @a.rs, see @.env".to_owned());
        assert_eq!(typed, "Review @a.rs, see");
    }
}
