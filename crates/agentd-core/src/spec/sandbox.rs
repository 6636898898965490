//! What an agent's tools may see, write and reach.

use crate::hosts::Hosts;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// What tools may see and write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// Tools can write only their own temporary files.
    ReadOnly,
    /// Tools can write the working directory and the paths in `writable`.
    #[default]
    WorkspaceWrite,
    /// Tools can do everything that their user may do.
    FullAccess,
}

impl Sandbox {
    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::FullAccess => "full-access",
        }
    }
}

/// What tools may reach: `on`, `off` or a list of hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Network {
    #[default]
    On,
    /// Nothing except their own loopback interface.
    Off,
    /// Only these, through a proxy, and their own loopback interface.
    Hosts(Hosts),
}

const WORDS: &[&str] = &["on", "off"];

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::On => serializer.serialize_str("on"),
            Self::Off => serializer.serialize_str("off"),
            Self::Hosts(hosts) => hosts.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrHosts)
    }
}

struct WordOrHosts;

impl<'de> Visitor<'de> for WordOrHosts {
    type Value = Network;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("on, off or a list of hosts")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Network, E> {
        match word {
            "on" => Ok(Network::On),
            "off" => Ok(Network::Off),
            other => Err(E::unknown_variant(other, WORDS)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Network, A::Error> {
        let hosts = Hosts::deserialize(SeqAccessDeserializer::new(list))?;
        match hosts.is_empty() {
            true => Err(de::Error::custom("the list is empty; write `off`")),
            false => Ok(Network::Hosts(hosts)),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::On => f.write_str("on"),
            Self::Off => f.write_str("off"),
            Self::Hosts(hosts) => write!(f, "{hosts}"),
        }
    }
}
