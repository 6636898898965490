//! `${NAME}` in settings: the value of a variable of the user, or of a stored secret.

use crate::environment::is_name;

/// Replaces every `${NAME}` and `${NAME:-default}`. An error names the variable that is not set.
pub(super) fn replaced(
    text: &str,
    value_of: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        whole.push_str(before);
        let Some((inside, then)) = after.split_once('}') else {
            whole.push_str("${");
            rest = after;
            continue;
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            whole.push_str("${");
            rest = after;
            continue;
        }
        match value_of(name).or_else(|| default.map(str::to_owned)) {
            Some(value) => whole.push_str(&value),
            None => return Err(name.to_owned()),
        }
        rest = then;
    }
    whole.push_str(rest);
    Ok(whole)
}
