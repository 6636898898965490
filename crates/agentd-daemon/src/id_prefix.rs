//! Ids that a user shortened: any beginning of at least four characters names the only id that begins with it.

use crate::error::{Error, Kind, Result};
use agentd_core::id::{Chosen, IdPrefix};
use std::fmt::Display;

/// Ids that an ambiguous beginning lists.
pub const LISTED: usize = 10;

/// The given text as an id or its beginning. `what` is the noun, such as `prompt`.
pub fn parse(given: &str, what: &str) -> Result<IdPrefix> {
    given.parse().map_err(|why| {
        let error = Error::new(
            Kind::Invalid,
            format!("`{given}` is not the id of a {what}"),
        );
        error.because(why)
    })
}

/// The id that begins with the prefix; none if no id does. Several are an error that lists them.
pub fn only<T: Copy + Ord + Display>(
    prefix: &IdPrefix,
    what: &str,
    ids: impl IntoIterator<Item = T>,
) -> Result<Option<T>> {
    match prefix.choose(ids) {
        Chosen::None => Ok(None),
        Chosen::One(id) => Ok(Some(id)),
        Chosen::Several(ids) => {
            let listed = ids.iter().take(LISTED).map(ToString::to_string);
            let mut listed = listed.collect::<Vec<_>>().join(", ");
            if ids.len() > LISTED {
                listed.push_str(", …");
            }
            let what = format!("several {what}s have an id that begins with {prefix}");
            let error = Error::new(Kind::Ambiguous, what);
            Err(error.next(format!("pass more characters of one of these: {listed}")))
        }
    }
}
