//! Skills: instructions for one kind of task, in a file that the model reads when it has such a task. The system prompt
//! has only their names and descriptions.

use crate::spec::{self, Kind, Node};

/// How long a description may be in the system prompt, in characters.
const LONGEST: usize = 400;

/// A skill, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Its file, as the model can read it.
    pub path: String,
}

/// Why a file is no skill.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Front(#[from] spec::Error),
    #[error("it has no `description`: the model would not know when to use it")]
    NoDescription,
}

/// Reads the front matter of a skill's file. Its name is that of its directory, unless the file gives another. Keys of
/// other programs are ignored.
pub fn parse(text: &str, dir: &str, path: String) -> Result<Skill, Error> {
    let front = spec::front_matter(text)?;
    let field = |name: &str| front.as_ref().and_then(|front| word(front, name));
    let description = field("description").ok_or(Error::NoDescription)?;
    let mut shown: String = description.chars().take(LONGEST).collect();
    if shown.len() < description.len() {
        shown.push('…');
    }
    Ok(Skill {
        name: field("name").unwrap_or_else(|| dir.to_owned()),
        description: shown,
        path,
    })
}

/// The text of a key, in one line; none if it is empty or not a text.
fn word(front: &Node, name: &str) -> Option<String> {
    let Kind::Map(entries) = &front.kind else {
        return None;
    };
    let entry = entries.iter().find(|entry| entry.key == name)?;
    let Kind::Word { text, .. } = &entry.value.kind else {
        return None;
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    Some(words.join(" ")).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Skill, Error> {
        parse(text, "its-dir", "/skills/its-dir/SKILL.md".to_owned())
    }

    #[test]
    fn a_skill_has_a_name_and_a_description() {
        let skill = read(
            "---\nname: release\ndescription: >\n  Makes a release.\n  Use it\n  when asked.\nallowed-tools: [Bash]\n---\n\nText.\n",
        );
        let skill = skill.unwrap();
        assert_eq!(skill.name, "release");
        assert_eq!(skill.description, "Makes a release. Use it when asked.");
        let unnamed = read("---\ndescription: Short.\n---\n").unwrap();
        assert_eq!(unnamed.name, "its-dir");
    }

    #[test]
    fn a_file_without_a_description_is_no_skill() {
        for text in [
            "",
            "Text.",
            "---\nname: x\n---\n",
            "---\ndescription: ' '\n---\n",
            "---\n- a\n---\n",
            "---\ndescription: [a]\n---\n",
        ] {
            assert_eq!(read(text), Err(Error::NoDescription), "{text}");
        }
        assert!(matches!(
            read("---\ndescription: x\n"),
            Err(Error::Front(_))
        ));
    }

    #[test]
    fn a_long_description_is_cut() {
        let skill = read(&format!("---\ndescription: {}\n---\n", "é".repeat(5000))).unwrap();
        assert_eq!(skill.description.chars().count(), LONGEST + 1);
    }
}
