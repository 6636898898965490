//! Words in a line.

use crate::at_path;

/// The word that ends at a column, counted in characters.
pub fn before(line: &str, column: usize) -> &str {
    let end = line
        .char_indices()
        .nth(column)
        .map_or(line.len(), |(at, _)| at);
    at_path::last_word(line.get(..end).unwrap_or_default())
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
}
