//! The line of a result that names what a command wrote to the agent's private home.

use crate::plain::quoted;

/// The number of entries that are named; the rest is counted.
const NAMED: usize = 5;

/// A line for the model and the user, from the names of new entries in the agent's private home.
pub fn note(names: &[String]) -> Option<String> {
    let named: Vec<String> = names
        .iter()
        .take(NAMED)
        .map(|name| home_path(name))
        .collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = named.join(", ");
    (!names.is_empty()).then(|| {
        format!("[sandbox] written to this agent's private home, not to yours: {named}{more}")
    })
}

fn home_path(name: &str) -> String {
    quoted(&format!("~/{name}")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_entries_are_named_in_one_line() {
        assert_eq!(note(&[]), None);
        let names = ["notes.md", "a\nb\u{202e}", "3", "4", "5", "6", "7"].map(str::to_owned);
        assert_eq!(
            note(&names[..1]).unwrap(),
            "[sandbox] written to this agent's private home, not to yours: ~/notes.md"
        );
        let all = note(&names).unwrap();
        assert!(
            all.ends_with(r#"~/notes.md, "~/a\nb\342\200\256", ~/3, ~/4, ~/5 and 2 more"#),
            "{all}"
        );
    }
}
