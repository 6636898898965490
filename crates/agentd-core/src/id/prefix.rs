//! The beginning of an id, by which a user names it.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use uuid::Uuid;

/// The fewest characters that are accepted.
const SHORTEST: usize = 4;
/// The length of a whole id.
const WHOLE: usize = 36;
/// Where an id has its dashes.
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// A whole id, or at least its first four characters, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdPrefix(String);

/// The text is not the beginning of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an id, or at least its first {} characters", SHORTEST)]
pub struct NoIdPrefix;

/// Which ids begin with a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen<T> {
    None,
    One(T),
    /// More than one, in order.
    Several(Vec<T>),
}

impl FromStr for IdPrefix {
    type Err = NoIdPrefix;

    fn from_str(text: &str) -> Result<Self, NoIdPrefix> {
        if let Ok(whole) = Uuid::from_str(text.trim()) {
            return Ok(Self(whole.to_string()));
        }
        let text = text.trim().to_lowercase();
        let fits = |(n, c): (usize, char)| match DASHES.contains(&n) {
            true => c == '-',
            false => c.is_ascii_hexdigit(),
        };
        let is_long_enough = (SHORTEST..=WHOLE).contains(&text.len());
        match is_long_enough && text.chars().enumerate().all(fits) {
            true => Ok(Self(text)),
            false => Err(NoIdPrefix),
        }
    }
}

impl fmt::Display for IdPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl IdPrefix {
    /// The id, if it is a whole one.
    pub fn whole<T: FromStr>(&self) -> Option<T> {
        let is_whole = self.0.len() == WHOLE;
        is_whole.then(|| self.0.parse().ok()).flatten()
    }

    /// The ids that begin with it lie in this range, and no others.
    pub fn range(&self) -> RangeInclusive<Uuid> {
        let digits: String = self.0.chars().filter(|c| *c != '-').collect();
        let padded = |with: &str| {
            let rest = WHOLE - DASHES.len() - digits.len();
            let hex = format!("{digits}{}", with.repeat(rest));
            Uuid::from_u128(u128::from_str_radix(&hex, 16).unwrap_or_default())
        };
        padded("0")..=padded("f")
    }

    /// Which of these ids it means.
    pub fn choose<T: Copy + Ord + fmt::Display>(
        &self,
        ids: impl IntoIterator<Item = T>,
    ) -> Chosen<T> {
        let begins = |id: &T| id.to_string().starts_with(&self.0);
        let mut found: Vec<T> = ids.into_iter().filter(begins).collect();
        found.sort_unstable();
        found.dedup();
        match found.as_slice() {
            [] => Chosen::None,
            [only] => Chosen::One(*only),
            _ => Chosen::Several(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TurnId;

    const ID: &str = "0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f";

    fn prefix(text: &str) -> IdPrefix {
        text.parse().unwrap()
    }

    #[test]
    fn four_characters_are_enough_and_three_are_not() {
        for good in ["0198", "0198C5A2", "0198c5a2-", "0198c5a2-7d1e-7c", ID] {
            assert!(good.parse::<IdPrefix>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "019",
            "coder",
            "0198c5a27d",
            "0198-c5a2",
            "0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f0",
        ] {
            assert_eq!(bad.parse::<IdPrefix>(), Err(NoIdPrefix), "{bad}");
        }
        assert_eq!(prefix(ID).whole::<TurnId>(), Some(ID.parse().unwrap()));
        assert_eq!(prefix("0198c5a2").whole::<TurnId>(), None);
    }

    #[test]
    fn it_means_one_id_or_says_which_ones_it_could_mean() {
        let id = |n: u128| TurnId::new(Uuid::from_u128(n));
        let (a, b) = (id(0x0198_c5a2 << 96), id(0x0198_c5a3 << 96));
        assert_eq!(prefix("0198c5a3").choose([a, b]), Chosen::One(b));
        assert_eq!(
            prefix("0198c5a").choose([b, a, b]),
            Chosen::Several(vec![a, b])
        );
        assert_eq!(prefix("0198c5a4").choose([a, b]), Chosen::None);
    }

    #[test]
    fn the_range_has_the_ids_that_begin_with_it() {
        let id: Uuid = ID.parse().unwrap();
        for cut in [4, 8, 9, 12, 20, 36] {
            assert!(prefix(&ID[..cut]).range().contains(&id), "{cut}");
        }
        assert!(!prefix("0198c5a3").range().contains(&id));
        assert_eq!(prefix(ID).range(), id..=id);
    }
}
