//! What the writer tells the demo, line by line: what the store has acknowledged.

use agentd_core::id::{Incarnation, Seq, TryId};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// These events are durable.
    Committed { first: Seq, last: Seq },
    /// So much of a streaming reply is durable.
    Kept { request: TryId, bytes: u64 },
}

impl fmt::Display for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Committed { first, last } => write!(f, "committed {first} {last}"),
            Self::Kept { request, bytes } => {
                write!(f, "kept {} {} {bytes}", request.incarnation, request.n)
            }
        }
    }
}

impl Telling {
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let what = words.next()?;
        let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
        match (what, numbers?.as_slice()) {
            ("committed", &[first, last]) => Some(Self::Committed {
                first: Seq(first),
                last: Seq(last),
            }),
            ("kept", &[incarnation, n, bytes]) => Some(Self::Kept {
                request: TryId {
                    incarnation: Incarnation(incarnation),
                    n,
                },
                bytes,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood() {
        let request = TryId {
            incarnation: Incarnation(1),
            n: 25,
        };
        let (first, last) = (Seq(3), Seq(7));
        for telling in [
            Telling::Committed { first, last },
            Telling::Kept {
                request,
                bytes: 512,
            },
        ] {
            assert_eq!(Telling::parse(&telling.to_string()), Some(telling));
        }
        for other in [
            "",
            "committed",
            "committed 1",
            "kept 1 2",
            "kept a b c",
            "gone 1 2",
        ] {
            assert_eq!(Telling::parse(other), None, "{other}");
        }
    }
}
