//! The texts of cursors: a position is a decimal number, the end of a page of agents is JSON.

use crate::error::{Error, Result};
use crate::store::{AgentCursor, Cursor};
use serde::{Deserialize, Serialize};

/// How many characters of an invalid cursor the error shows.
const SHOWN: usize = 100;

fn bad(cursor: &str) -> Error {
    Error::BadCursor {
        cursor: cursor.chars().take(SHOWN).collect(),
    }
}

/// The cursor of a position in the order of all commits.
pub fn of_position(position: i64) -> Cursor {
    Cursor::from_text(position.to_string())
}

/// The position of a cursor. A number that is too large for SQLite stands for a position after all events.
pub fn position(cursor: &Cursor) -> Result<i64> {
    let text = cursor.as_str();
    if text.is_empty() {
        return Ok(0);
    }
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse::<u64>().ok().filter(|_| is_number);
    let number = number.ok_or_else(|| bad(text))?;
    Ok(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Where a page of the list of agents ends: the sort key and the row number of its last agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageEnd {
    Recent { updated_at: i64, row: i64 },
    Name { name: String, row: i64 },
}

impl PageEnd {
    pub fn to_cursor(&self) -> Result<AgentCursor> {
        let text = serde_json::to_string(self).map_err(Error::Encode)?;
        Ok(AgentCursor::from_text(text))
    }

    pub fn parse(cursor: &AgentCursor) -> Result<Self> {
        let text = cursor.as_str();
        serde_json::from_str(text).map_err(|_| bad(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_its_text() {
        for at in [0, 1, 120_000, i64::MAX] {
            assert_eq!(position(&of_position(at)).unwrap(), at);
        }
        assert_eq!(position(&Cursor::default()).unwrap(), 0);
        // An older client may still send this.
        let last = Cursor::from_text(u64::MAX.to_string());
        assert_eq!(position(&last).unwrap(), i64::MAX);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["x", "-1", "+1", " 1", "1.0", "0x1", "99999999999999999999"] {
            let refused = position(&Cursor::from_text(text));
            let Err(Error::BadCursor { cursor }) = refused else {
                panic!("{text}: {refused:?}");
            };
            assert_eq!(cursor, text);
        }
        for text in ["", "1", "{}", "{\"recent\":{\"row\":1}}"] {
            let refused = PageEnd::parse(&AgentCursor::from_text(text));
            assert!(matches!(refused, Err(Error::BadCursor { .. })), "{text}");
        }
        let long = "x".repeat(10_000);
        let Err(error) = position(&Cursor::from_text(long)) else {
            panic!("it was read");
        };
        assert!(error.to_string().len() < 200);
    }
}
