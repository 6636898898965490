//! A position in a line. The shell ignores a backslash at the end of a line together with the line break.

pub(super) struct Cursor {
    chars: Vec<char>,
    at: usize,
}

impl Cursor {
    pub fn new(text: &str) -> Self {
        Self {
            chars: text.chars().collect(),
            at: 0,
        }
    }

    /// The next character, after joining continued lines.
    pub fn peek(&mut self) -> Option<char> {
        while self.chars.get(self.at) == Some(&'\\') && self.chars.get(self.at + 1) == Some(&'\n') {
            self.at += 2;
        }
        self.peek_raw()
    }

    pub fn next(&mut self) -> Option<char> {
        self.peek();
        self.next_raw()
    }

    /// The next character as written, as between single quotes.
    pub fn peek_raw(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub fn next_raw(&mut self) -> Option<char> {
        let next = self.peek_raw();
        self.at += usize::from(next.is_some());
        next
    }

    pub fn is_at(&mut self, text: &str) -> bool {
        let from = self.at;
        let is_at = self.eat(text);
        self.at = from;
        is_at
    }

    /// Consumes the text if it comes next.
    pub fn eat(&mut self, text: &str) -> bool {
        let from = self.at;
        for expected in text.chars() {
            if self.next() != Some(expected) {
                self.at = from;
                return false;
            }
        }
        true
    }

    /// Consumes everything up to and including that character, and returns the text before it as written.
    pub fn up_to(&mut self, end: char) -> Option<String> {
        let mut text = String::new();
        loop {
            match self.next_raw()? {
                c if c == end => return Some(text),
                c => text.push(c),
            }
        }
    }

    pub fn mark(&self) -> usize {
        self.at
    }

    pub fn back_to(&mut self, mark: usize) {
        self.at = mark;
    }

    pub fn since(&self, mark: usize) -> String {
        self.chars[mark.min(self.at)..self.at].iter().collect()
    }
}
