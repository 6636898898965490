//! The names of environment variables in the user's file.

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt::{self, Formatter};

/// One name, or a list of them.
pub(super) struct Names(pub Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NamesVisitor)
    }
}

struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = Names;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a variable, or a list such as [\"A_KEY\", \"B_KEY\"]")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Names, E> {
        named(name.to_owned()).map(|name| Names(vec![name]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<Names, A::Error> {
        let mut all = Vec::new();
        while let Some(name) = names.next_element()? {
            all.push(named(name)?);
        }
        Ok(Names(all))
    }
}

/// A key in place of a variable's name is a likely mistake. It must be rejected and must not appear in the error.
fn named<E: de::Error>(name: String) -> Result<String, E> {
    let is_name = |text: &str| {
        let word = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        !text.is_empty() && word && !text.starts_with(|c: char| c.is_ascii_digit())
    };
    if is_name(&name) {
        return Ok(name);
    }
    Err(E::custom(
        "expected the name of an environment variable (letters, digits and _), not the key itself",
    ))
}
