//! The files of a prompt: completion of `@path` and of the path of `/attach`, and words that name no file.

use super::{App, Purpose};
use crate::at_path;
use crate::chat::completion::{Completion, Item, shared};
use crate::chat::effect::FileNotes;
use crate::error::Error;

impl App {
    /// Completes a path, as far as it is certain; a list shows the rest.
    pub(super) fn paths(&mut self, typed: &str, found: &[String]) {
        let word = format!("@{typed}");
        if self.composer.word() != word {
            return;
        }
        let item = |path: &String| Item {
            text: at_path::written(path, typed),
            help: String::new(),
        };
        let items: Vec<Item> = found.iter().map(item).collect();
        match items.is_empty() {
            true => self.tell("no path is like that; /attach takes a file anywhere"),
            false => self.complete(&word, items),
        }
    }

    /// The same for the path of `/attach`.
    pub(super) fn files(&mut self, typed: &str, found: &[String]) {
        if self.composer.attach_path().as_deref() != Some(typed) {
            return;
        }
        let item = |path: &String| Item {
            text: match (typed.starts_with('"'), path.ends_with('/')) {
                (false, _) => path.clone(),
                (true, true) => format!("\"{path}"),
                (true, false) => format!("\"{path}\""),
            },
            help: String::new(),
        };
        let items: Vec<Item> = found.iter().map(item).collect();
        match items.is_empty() {
            true => self.tell("no path is like that"),
            false => self.complete(typed, items),
        }
    }

    fn complete(&mut self, word: &str, items: Vec<Item>) {
        if let [one] = items.as_slice() {
            return self.composer.replace_word(&one.text);
        }
        let certain = shared(items.iter().map(|item| item.text.as_str()));
        // Paths that only resemble what was typed share another beginning.
        if certain.len() > word.len() && certain.starts_with(word) {
            self.composer.replace_word(certain);
        }
        self.completion = Some(Completion::new(items));
    }

    /// The file of `/attach` becomes a word of the prompt: it is visible, and can be deleted.
    pub(super) fn attach(&mut self, path: Result<String, Error>) {
        let Some(path) = self.known(path) else {
            return;
        };
        if self.purpose != Purpose::Prompt {
            return self.tell("nothing was attached: the prompt line is in use");
        }
        self.composer.insert(&at_path::written(&path, ""));
        if path.starts_with('/') && !self.chosen.contains(&path) {
            self.chosen.push(path);
        }
    }

    /// The files of `/attach` that a prompt may name.
    pub(super) fn chosen_in(&self, typed: &str) -> Vec<String> {
        let chosen = self.chosen.iter();
        let named = chosen.filter(|path| typed.contains(path.as_str()));
        named.cloned().collect()
    }

    pub(super) fn note_files(&mut self, notes: FileNotes) {
        let missing = notes.missing.iter().map(|path| format!("@{path}"));
        let missing = missing.collect::<Vec<_>>().join(", ");
        let mut lines = notes.omitted;
        if !missing.is_empty() {
            lines.push(format!(
                "no file to attach for {missing}; Tab completes a path, /attach takes a file anywhere"
            ));
        }
        if !lines.is_empty() {
            self.tell(&lines.join("\n"));
        }
    }
}
