//! The meaning of a plain YAML word: the core schema of YAML 1.2 (`yes` and `off` are strings).

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    /// Negative.
    Signed(i64),
    Float(f64),
    Text(&'a str),
}

impl<'a> Scalar<'a> {
    /// Reads an unquoted word.
    pub fn of_plain(text: &'a str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => Self::Null,
            "true" | "True" | "TRUE" => Self::Bool(true),
            "false" | "False" | "FALSE" => Self::Bool(false),
            ".nan" | ".NaN" | ".NAN" => Self::Float(f64::NAN),
            _ => number(text).unwrap_or(Self::Text(text)),
        }
    }
}

fn number<'a>(text: &str) -> Option<Scalar<'a>> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            // `from_str_radix` would accept a sign here.
            let valid = digits.chars().all(|c| c.is_digit(radix));
            return u64::from_str_radix(digits, radix)
                .ok()
                .filter(|_| valid)
                .map(Scalar::Unsigned);
        }
    }
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        let sign = if negative { -1.0 } else { 1.0 };
        return Some(Scalar::Float(f64::INFINITY * sign));
    }
    // Rust's own parser accepts `inf` and `nan`, which are strings in YAML, and a second sign.
    let numeric = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || !unsigned.chars().all(numeric)
    {
        return None;
    }
    if !negative && let Ok(value) = unsigned.parse() {
        return Some(Scalar::Unsigned(value));
    }
    if unsigned.bytes().all(|b| b.is_ascii_digit())
        && let Ok(value) = text.parse::<i64>()
    {
        return Some(match u64::try_from(value) {
            Ok(value) => Scalar::Unsigned(value),
            Err(_) => Scalar::Signed(value),
        });
    }
    // An integer that does not fit in 64 bits becomes a float, as in JSON.
    text.parse().ok().map(Scalar::Float)
}
