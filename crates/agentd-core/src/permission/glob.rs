//! Patterns with `*` and `?`.

/// Whether the pattern fits all of the text. Takes at most the product of their lengths, whatever
/// they are.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut from) = (0, 0);
    // The newest `*`, and where what follows it was last tried.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(c) if *c == '?' || *c == text[from] => {
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
