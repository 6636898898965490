//! Words in a line.

use crate::at_path;

/// The command whose argument is a path, as it stands before the path.
const ATTACH: &str = "/attach ";

/// The word that ends at a column, counted in characters.
pub fn before(line: &str, column: usize) -> &str {
    at_path::last_word(until(line, column))
}

/// The path of `/attach` that ends at a column. It may contain spaces.
pub fn attach_path(line: &str, column: usize) -> Option<&str> {
    until(line, column).strip_prefix(ATTACH)
}

fn until(line: &str, column: usize) -> &str {
    let mut indices = line.char_indices();
    let end = indices.nth(column).map_or(line.len(), |(at, _)| at);
    line.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_ends_at_the_cursor() {
        assert_eq!(before("see @src now", 8), "@src");
        assert_eq!(before("see @src now", 6), "@s");
        assert_eq!(before("żółw @żó", 8), "@żó");
        assert_eq!(before("a ", 2), "");
        assert_eq!(before("", 0), "");
        assert_eq!(before("ab", 9), "ab");
    }

    #[test]
    fn a_path_to_attach_may_contain_spaces() {
        assert_eq!(attach_path("/attach ~/my p", 14), Some("~/my p"));
        assert_eq!(attach_path("/attach ~/my p", 9), Some("~"));
        assert_eq!(attach_path("/attach ", 8), Some(""));
        assert_eq!(attach_path("/attach", 7), None);
        assert_eq!(attach_path("see /attach x", 13), None);
    }
}
