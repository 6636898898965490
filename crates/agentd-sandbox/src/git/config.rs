//! Git's configuration files. Strict: a file that this parser does not understand has no entries at all.

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// In lower case.
    pub section: String,
    pub subsection: Option<String>,
    /// In lower case.
    pub key: String,
    /// A key without `=` means true.
    pub value: Option<String>,
}

impl Entry {
    pub fn is(&self, section: &str, key: &str) -> bool {
        self.section == section && self.subsection.is_none() && self.key == key
    }
}

/// The entries of a file, in its order. None if it is not a valid file.
pub fn parse(text: &str) -> Option<Vec<Entry>> {
    if text.contains('\0') {
        // Git ends a name there, whatever follows.
        return None;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rest = Chars(text.chars().peekable());
    let mut entries = Vec::new();
    let mut header: Option<(String, Option<String>)> = None;
    loop {
        rest.skip_blank();
        match rest.peek() {
            None => return Some(entries),
            Some('#' | ';') => rest.skip_line(),
            Some('[') => {
                rest.next();
                header = Some(rest.header()?);
            }
            Some(first) if first.is_ascii_alphabetic() => {
                let (section, subsection) = header.clone()?;
                let (key, value) = rest.entry()?;
                entries.push(Entry {
                    section,
                    subsection,
                    key,
                    value,
                });
            }
            Some(_) => return None,
        }
    }
}

struct Chars<'a>(std::iter::Peekable<std::str::Chars<'a>>);

impl Chars<'_> {
    fn peek(&mut self) -> Option<char> {
        self.0.peek().copied()
    }

    /// With the end of a line as one character.
    fn next(&mut self) -> Option<char> {
        let next = self.0.next()?;
        match next {
            '\r' => Some(self.0.next_if_eq(&'\n').unwrap_or('\r')),
            next => Some(next),
        }
    }

    fn skip_blank(&mut self) {
        while self.0.next_if(|c| c.is_ascii_whitespace()).is_some() {}
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|c| c != '\n') {}
    }

    /// After the `[`.
    fn header(&mut self) -> Option<(String, Option<String>)> {
        let mut section = String::new();
        loop {
            match self.next()? {
                ']' if !section.is_empty() => break,
                c if c.is_ascii_alphanumeric() || c == '-' || c == '.' => {
                    section.push(c.to_ascii_lowercase());
                }
                c if c.is_ascii_whitespace() && c != '\n' => return self.quoted(section),
                _ => return None,
            }
        }
        // The older form, in which the subsection has no upper case either.
        Some(match section.split_once('.') {
            Some((section, sub)) => (section.to_owned(), Some(sub.to_owned())),
            None => (section, None),
        })
    }

    fn quoted(&mut self, section: String) -> Option<(String, Option<String>)> {
        while self
            .0
            .next_if(|c| c.is_ascii_whitespace() && *c != '\n')
            .is_some()
        {}
        if section.is_empty() || self.next()? != '"' {
            return None;
        }
        let mut sub = String::new();
        loop {
            match self.next()? {
                '"' => break,
                '\n' => return None,
                '\\' => sub.push(self.next().filter(|c| *c != '\n')?),
                c => sub.push(c),
            }
        }
        (self.next()? == ']').then_some((section, Some(sub)))
    }

    fn entry(&mut self) -> Option<(String, Option<String>)> {
        let mut key = String::new();
        while let Some(c) = self.0.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
            key.push(c.to_ascii_lowercase());
        }
        while self.0.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        match self.next() {
            None | Some('\n') => Some((key, None)),
            Some('#' | ';') => {
                self.skip_line();
                Some((key, None))
            }
            Some('=') => Some((key, Some(self.value()?))),
            Some(_) => None,
        }
    }

    fn value(&mut self) -> Option<String> {
        let mut value = String::new();
        // White space at the end counts only inside quotes.
        let mut length = 0;
        let mut is_quoted = false;
        loop {
            match self.next() {
                None | Some('\n') if is_quoted => return None,
                None | Some('\n') => break,
                Some('#' | ';') if !is_quoted => {
                    self.skip_line();
                    break;
                }
                Some('"') => is_quoted = !is_quoted,
                Some('\\') => match self.next()? {
                    '\n' => {}
                    'n' => value.push('\n'),
                    't' => value.push('\t'),
                    'b' => value.push('\u{8}'),
                    c @ ('"' | '\\') => value.push(c),
                    _ => return None,
                },
                Some(c) if c.is_ascii_whitespace() && !is_quoted => {
                    if !value.is_empty() {
                        value.push(c);
                    }
                    continue;
                }
                Some(c) => value.push(c),
            }
            length = value.len();
        }
        value.truncate(length);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, parse};

    fn entry(section: &str, sub: Option<&str>, key: &str, value: Option<&str>) -> Entry {
        Entry {
            section: section.to_owned(),
            subsection: sub.map(str::to_owned),
            key: key.to_owned(),
            value: value.map(str::to_owned),
        }
    }

    #[test]
    fn the_forms_of_a_file() {
        let text = "\u{feff}# comment\n[Core]\n\tBare = false ; not\r\n\tfileMode\n[remote \"My \\\"Origin\\\\\"] url = a\\\n\
                    b  \"c ; d \"\\n \n[branch.Topic]\n merge=\n key-2 = \"#\" x  # y\n";
        let expected = [
            entry("core", None, "bare", Some("false")),
            entry("core", None, "filemode", None),
            entry("remote", Some("My \"Origin\\"), "url", Some("ab  c ; d \n")),
            entry("branch", Some("topic"), "merge", Some("")),
            entry("branch", Some("topic"), "key-2", Some("# x")),
        ];
        assert_eq!(parse(text).unwrap(), expected);
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn what_is_not_understood_is_no_configuration() {
        for text in [
            "a = b",
            "[",
            "[]",
            "[a",
            "[a b]",
            "[a \"b]",
            "[a \"b\" ]",
            "[a]\n1 = b",
            "[a]\nb c",
            "[a]\nb = \"c",
            "[a]\nb = \\x",
            "[a]\nb = \"c\nd\"",
            "[a_b]\nc = d",
            "[a]\n=b",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
