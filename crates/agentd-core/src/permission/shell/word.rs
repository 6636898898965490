//! Words, with quotes removed and with the parts marked that are only known when the line runs.

use super::Assignment;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::permission) struct Word {
    /// Without quotes. Parts that are only known at run time are kept as written.
    pub text: String,
    /// How many bytes of the text are certain; the rest depends on the run. `None` means all.
    pub certain: Option<usize>,
    /// How many bytes are neither quoted nor expanded. `None` means all.
    bare: Option<usize>,
}

impl Word {
    /// A word that another program will fill in.
    pub fn unknown() -> Self {
        Self {
            text: String::new(),
            certain: Some(0),
            bare: Some(0),
        }
    }

    pub fn is_certain(&self) -> bool {
        self.certain.is_none()
    }

    /// The text, if it had no quotes and no expansions. Only such a word can belong to the grammar.
    pub fn bare(&self) -> Option<&str> {
        (self.bare.is_none() && self.is_certain()).then_some(self.text.as_str())
    }

    /// Makes everything from the placeholder on uncertain, if the word contains it.
    pub fn fill_in(&mut self, placeholder: &str) {
        if let Some(at) = self.text.find(placeholder) {
            self.certain = Some(self.certain.map_or(at, |certain| certain.min(at)));
        }
    }

    /// `NAME=value` or `NAME+=value`, as written before a command.
    pub fn assignment(&self) -> Option<Assignment> {
        let at = self.text.find('=')?;
        let name = self.text[..at].trim_end_matches('+');
        let is_bare = self.bare.is_none_or(|bare| at < bare);
        (is_bare && at - name.len() <= 1 && is_name(name)).then(|| Assignment {
            name: name.to_owned(),
            text: self.text.clone(),
        })
    }
}

pub(super) fn is_name(text: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_start) && text.chars().all(|c| is_start(c) || c.is_ascii_digit())
}

/// A word that is being read.
#[derive(Default)]
pub(super) struct WordBuilder {
    pub text: String,
    certain: Option<usize>,
    bare: Option<usize>,
    /// The position of an unquoted `[`. With a `]` after it, it is a glob.
    bracket: Option<usize>,
    /// The position of an unquoted `{`, and whether an unquoted `,` or `..` came after it.
    brace: Option<(usize, bool)>,
    pub has_begun: bool,
}

impl WordBuilder {
    pub fn push_bare(&mut self, c: char) {
        let at = self.text.len();
        match c {
            '*' | '?' => self.depends_from(at),
            '[' => self.bracket = self.bracket.or(Some(at)),
            ']' => self
                .bracket
                .into_iter()
                .for_each(|at| self.depends_from(at)),
            '{' => self.brace = self.brace.or(Some((at, false))),
            ',' => self.brace = self.brace.map(|(at, _)| (at, true)),
            '.' if self.text.ends_with('.') => self.brace = self.brace.map(|(at, _)| (at, true)),
            '}' => {
                if let Some((at, true)) = self.brace {
                    self.depends_from(at);
                }
            }
            _ => {}
        }
        self.has_begun = true;
        self.text.push(c);
    }

    pub fn push_quoted(&mut self, text: &str) {
        self.is_bare_to_here();
        self.text.push_str(text);
    }

    /// Appends a part that is only known at run time, as written.
    pub fn push_expansion(&mut self, source: &str) {
        self.is_bare_to_here();
        self.depends_from(self.text.len());
        self.text.push_str(source);
    }

    fn is_bare_to_here(&mut self) {
        self.has_begun = true;
        self.bare = self.bare.or(Some(self.text.len()));
    }

    pub fn depends_from(&mut self, at: usize) {
        self.certain = Some(self.certain.map_or(at, |certain| certain.min(at)));
    }

    pub fn finish(mut self) -> Option<Word> {
        // `~` and `~/…` are the home directory and stay unchanged. The shell looks up other names.
        if self.text.starts_with('~') && self.bare != Some(0) {
            let user = self.text[1..].split('/').next();
            if user.is_some_and(|user| !user.is_empty()) {
                self.depends_from(0);
            }
        }
        self.has_begun.then_some(Word {
            text: self.text,
            certain: self.certain,
            bare: self.bare,
        })
    }
}
