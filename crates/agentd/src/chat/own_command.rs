//! Commands of the user: files with prompts, and the skills of the agent.

/// A command that is a prompt: a file of the user or the project, or a skill of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    pub name: String,
    pub help: String,
    /// With `$ARGUMENTS` and `$1` to `$9` in it.
    pub prompt: String,
}

impl Own {
    pub fn skill(name: &str, path: &str) -> Self {
        Self {
            name: name.to_owned(),
            help: format!("use the skill in {path}"),
            prompt: format!("Use the skill `{name}`: read {path} and follow it."),
        }
    }

    /// The prompt with its arguments. Those that it has no place for follow it.
    pub fn with(&self, arguments: &str) -> String {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let mut text = String::new();
        let mut has_place = false;
        let mut rest = self.prompt.as_str();
        while let Some(at) = rest.find('$') {
            let (before, marked) = rest.split_at(at);
            text.push_str(before);
            let digit = marked.chars().nth(1).and_then(|c| c.to_digit(10));
            let length = match digit {
                _ if marked.starts_with("$ARGUMENTS") => {
                    has_place = true;
                    text.push_str(arguments);
                    "$ARGUMENTS".len()
                }
                Some(n @ 1..) => {
                    has_place = true;
                    let word = words.get(n as usize - 1).copied();
                    text.push_str(word.unwrap_or_default());
                    2
                }
                _ => {
                    text.push('$');
                    1
                }
            };
            rest = marked.get(length..).unwrap_or_default();
        }
        text.push_str(rest);
        if !has_place && !arguments.is_empty() {
            text.push_str("\n\n");
            text.push_str(arguments);
        }
        text
    }
}
