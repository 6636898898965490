//! Patterns with `*` and `?`.

/// Whether the pattern matches all of the text. Takes time proportional to at most the product of the two lengths.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let text: Vec<Option<char>> = text.chars().map(Some).collect();
    fits_whatever(pattern, &text)
}

/// Whether the pattern matches all of the text whatever the `None` positions turn out to be: any run of characters,
/// or none. Only a `*` matches there.
pub(super) fn fits_whatever(pattern: &str, text: &[Option<char>]) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let (mut at, mut from) = (0, 0);
    // The newest `*`, and the position at which the rest of the pattern was last tried.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(c) if text[from].is_some_and(|known| *c == '?' || *c == known) => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((star_at, tried)) = star else {
                    return false;
                };
                star = Some((star_at, tried + 1));
                at = star_at + 1;
                from = tried + 1;
            }
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

/// The prefix of every text that the pattern matches.
pub(super) fn literal_start(pattern: &str) -> &str {
    let end = pattern.find(['*', '?']).unwrap_or(pattern.len());
    &pattern[..end]
}
