//! The id of one change that a client requests. The client chooses it, and sends the request again under the same id
//! if it got no answer.

use super::{AgentId, ConversationId};
use crate::digest::uuid_of;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// One change (a reset, a rename, …). If it is requested again under the same id, it is applied once. Any text of 1
/// to [`OpId::LONGEST`] bytes without control characters. The bytes are stored inline, so that it is `Copy` like
/// every other id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId {
    length: u8,
    /// Zero after `length`.
    bytes: [u8; Self::LONGEST],
}

/// Why a text is not an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadOp {
    #[error("an op must not be empty")]
    Empty,
    #[error("an op may have at most 128 bytes; this one has {0}")]
    TooLong(usize),
    #[error("an op must not contain control characters")]
    Control,
}

impl OpId {
    pub const LONGEST: usize = 128;

    /// A generated op.
    pub const fn new(uuid: Uuid) -> Self {
        Self::from_bytes(*uuid.as_bytes())
    }

    /// The UUID with these bytes, as text.
    pub const fn from_bytes(uuid: [u8; 16]) -> Self {
        const HEX: [u8; 16] = *b"0123456789abcdef";
        let mut bytes = [0; Self::LONGEST];
        let (mut from, mut to) = (0, 0);
        while from < uuid.len() {
            if matches!(from, 4 | 6 | 8 | 10) {
                bytes[to] = b'-';
                to += 1;
            }
            bytes[to] = HEX[(uuid[from] >> 4) as usize];
            bytes[to + 1] = HEX[(uuid[from] & 15) as usize];
            (from, to) = (from + 1, to + 2);
        }
        Self { length: 36, bytes }
    }

    pub fn as_str(&self) -> &str {
        // It only ever contains text.
        str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&[])
    }

    /// The UUID, if the op is one.
    pub fn uuid(&self) -> Option<Uuid> {
        Uuid::try_parse(self.as_str()).ok()
    }
}

impl FromStr for OpId {
    type Err = BadOp;

    fn from_str(text: &str) -> Result<Self, BadOp> {
        if text.chars().any(char::is_control) {
            return Err(BadOp::Control);
        }
        let length = match text.len() {
            0 => return Err(BadOp::Empty),
            length if length > Self::LONGEST => return Err(BadOp::TooLong(length)),
            length => length,
        };
        let mut bytes = [0; Self::LONGEST];
        bytes[..length].copy_from_slice(text.as_bytes());
        let length = length as u8;
        Ok(Self { length, bytes })
    }
}

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpId({:?})", self.as_str())
    }
}

impl Serialize for OpId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for OpId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl de::Visitor<'_> for Text {
            type Value = OpId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a text of 1 to {} bytes", OpId::LONGEST)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<OpId, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Text)
    }
}

impl AgentId {
    /// The agent that an op creates. The id is derived before the agent exists, so that the same op creates the same
    /// agent. An op that is a UUID is itself the id.
    pub fn of_op(op: OpId) -> Self {
        let derived = || uuid_of(&[b"agent", op.as_bytes()]);
        Self::new(op.uuid().unwrap_or_else(derived))
    }
}

impl ConversationId {
    /// The conversation that an operation on an agent creates. The id is derived before the conversation exists.
    pub fn of_op(agent: AgentId, op: OpId) -> Self {
        let derived = uuid_of(&[b"conversation", agent.as_bytes(), op.as_bytes()]);
        let mut bytes = *derived.as_bytes();
        // It has the timestamp of the operation's UUID, if there is one.
        if let Some(uuid) = op.uuid() {
            bytes[..6].copy_from_slice(&uuid.as_bytes()[..6]);
        }
        let builder = uuid::Builder::from_bytes(bytes);
        let builder = builder.with_version(uuid::Version::SortRand);
        Self::new(builder.with_variant(uuid::Variant::RFC4122).into_uuid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_op_is_any_short_text() {
        for text in ["deploy-42", "ü", "a b", &"x".repeat(OpId::LONGEST)] {
            let op: OpId = text.parse().unwrap();
            assert_eq!(op.to_string(), text);
            let json = serde_json::to_string(&op).unwrap();
            assert_eq!(serde_json::from_str::<OpId>(&json).unwrap(), op);
        }
        let parse = |text: &str| text.parse::<OpId>();
        assert_eq!(parse(""), Err(BadOp::Empty));
        assert_eq!(parse(&"x".repeat(129)), Err(BadOp::TooLong(129)));
        assert_eq!(parse("a\nb"), Err(BadOp::Control));
        assert!(serde_json::from_str::<OpId>("\"a\\u0000\"").is_err());
    }

    #[test]
    fn a_generated_op_is_the_text_of_its_uuid() {
        let uuid = Uuid::from_bytes([0x12, 0xab, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        assert_eq!(OpId::new(uuid).to_string(), uuid.to_string());
        assert_eq!(OpId::new(uuid).uuid(), Some(uuid));
    }

    #[test]
    fn the_same_op_leads_to_the_same_agent() {
        let op: OpId = "deploy-42".parse().unwrap();
        let other: OpId = "deploy-43".parse().unwrap();
        assert_eq!(AgentId::of_op(op), AgentId::of_op(op));
        assert_ne!(AgentId::of_op(op), AgentId::of_op(other));
        let agent = AgentId::of_op(op);
        assert_ne!(
            ConversationId::of_op(agent, op),
            ConversationId::of_op(agent, other)
        );
    }
}
