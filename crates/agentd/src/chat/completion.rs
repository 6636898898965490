//! What could complete the word at the cursor.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What takes the place of the word.
    pub text: String,
    pub help: String,
}

/// A list above the prompt line, from which the user chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    pub items: Vec<Item>,
    pub selected: usize,
}

impl Completion {
    pub const fn new(items: Vec<Item>) -> Self {
        Self { items, selected: 0 }
    }

    pub fn down(&mut self) {
        self.selected = (self.selected + 1) % self.items.len().max(1);
    }

    pub fn up(&mut self) {
        let last = self.items.len().saturating_sub(1);
        self.selected = self.selected.checked_sub(1).unwrap_or(last);
    }

    pub fn chosen(&self) -> Option<&Item> {
        self.items.get(self.selected)
    }
}

/// What all of these begin with.
pub fn shared<'a>(mut texts: impl Iterator<Item = &'a str>) -> &'a str {
    let Some(mut shared) = texts.next() else {
        return "";
    };
    for text in texts {
        let same = shared.chars().zip(text.chars());
        let length = same.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8());
        shared = shared.get(..length.sum()).unwrap_or_default();
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_goes_round() {
        let item = |text: &str| Item {
            text: text.to_owned(),
            help: String::new(),
        };
        let mut list = Completion::new(vec![item("a"), item("b")]);
        list.up();
        assert_eq!(list.chosen().unwrap().text, "b");
        list.down();
        assert_eq!(list.chosen().unwrap().text, "a");
        let mut none = Completion::default();
        none.down();
        none.up();
        assert_eq!(none.chosen(), None);
    }

    #[test]
    fn the_shared_beginning_is_whole_characters() {
        assert_eq!(shared(["src/lib.rs", "src/line.rs"].into_iter()), "src/li");
        assert_eq!(shared(["żółw", "żyto"].into_iter()), "ż");
        assert_eq!(shared([].into_iter()), "");
    }
}
