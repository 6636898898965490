//! The hosts that an agent's tools may reach, and which addresses are on the public internet.

mod public;

pub use public::is_public;

use core::net::IpAddr;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A list of hosts: `network: [example.com, "*.example.org", "10.0.0.7:8443"]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hosts(Vec<Host>);

/// A name, all names below one, or an address. With a port, it applies to that port only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    name: Name,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Exact(String),
    /// `*.NAME`: every name below NAME, but not NAME itself.
    Below(String),
    Address(IpAddr),
}

/// A text that is not a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a host: write `example.com`, `*.example.com` or an address, with `:PORT` for one port only"
)]
pub struct NoHost(String);

const LOCALHOST: &str = "localhost";

impl Hosts {
    pub fn parse<T: AsRef<str>>(hosts: impl IntoIterator<Item = T>) -> Result<Self, NoHost> {
        let hosts = hosts.into_iter().map(|host| host.as_ref().parse());
        hosts.collect::<Result<_, _>>().map(Self)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Host> {
        self.0.iter()
    }

    /// The hosts that both lists allow.
    pub fn and(&self, other: &Self) -> Self {
        let mut both = Vec::new();
        for own in &self.0 {
            both.extend(other.0.iter().filter_map(|other| own.and(other)));
        }
        let mut unique: Vec<Host> = Vec::new();
        for host in both {
            if !unique.contains(&host) {
                unique.push(host);
            }
        }
        Self(unique)
    }

    /// Whether a program may connect to this host, given as a name or an address as in a URL.
    pub fn allow(&self, host: &str, port: u16) -> bool {
        let name = Name::asked(host);
        let mut hosts = self.0.iter();
        hosts.any(|host| host.port.is_none_or(|own| own == port) && host.name.covers(&name))
    }

    /// Whether an allowed host may be reached at this address and port, to which its name resolved. An address that is not
    /// on the public internet must be in the list itself, for this port.
    pub fn allow_address(&self, address: IpAddr, port: u16) -> bool {
        let is_named = |host: &Host| match &host.name {
            Name::Address(listed) => *listed == address,
            Name::Exact(name) => name == LOCALHOST && address.is_loopback(),
            Name::Below(_) => false,
        };
        let is_listed = |host: &Host| host.port.is_none_or(|own| own == port) && is_named(host);
        is_public(address) || self.0.iter().any(is_listed)
    }
}

impl Host {
    /// What both entries allow; none if that is nothing.
    fn and(&self, other: &Self) -> Option<Self> {
        let port = match (self.port, other.port) {
            (Some(own), Some(other)) if own != other => return None,
            (own, other) => own.or(other),
        };
        let name = match (&self.name, &other.name) {
            (own, other) if own.includes(other) => other,
            (own, other) if other.includes(own) => own,
            _ => return None,
        };
        Some(Self {
            name: name.clone(),
            port,
        })
    }
}

impl Name {
    /// Whether it stands for every name that the other one stands for.
    fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Below(own), Self::Below(other)) => {
                own == other || self.covers(&Self::Exact(other.clone()))
            }
            _ => self == other || self.covers(other),
        }
    }

    /// A host as a program requests it. It is only compared with the list.
    fn asked(host: &str) -> Self {
        let plain = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        match plain.trim_matches(['[', ']']).parse() {
            Ok(address) => Self::Address(address),
            Err(_) => Self::Exact(plain),
        }
    }

    fn covers(&self, asked: &Self) -> bool {
        match (self, asked) {
            (Self::Exact(own), Self::Exact(asked)) => own == asked,
            (Self::Below(own), Self::Exact(asked)) => asked
                .strip_suffix(own.as_str())
                .is_some_and(|front| front.len() > 1 && front.ends_with('.')),
            (Self::Address(own), Self::Address(asked)) => own == asked,
            _ => false,
        }
    }
}

impl FromStr for Host {
    type Err = NoHost;

    fn from_str(text: &str) -> Result<Self, NoHost> {
        let wrong = || NoHost(text.to_owned());
        if let Ok(address) = text.parse() {
            let name = Name::Address(address);
            return Ok(Self { name, port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let plain = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let inner = plain.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let name = match (inner, plain.strip_prefix("*.")) {
            (Some(inner), _) => Name::Address(inner.parse().map_err(|_| wrong())?),
            (None, Some(below)) if is_name(below) => Name::Below(below.to_owned()),
            (None, None) => match plain.parse() {
                Ok(address) => Name::Address(address),
                Err(_) if is_name(&plain) => Name::Exact(plain),
                Err(_) => return Err(wrong()),
            },
            (None, Some(_)) => return Err(wrong()),
        };
        Ok(Self { name, port })
    }
}

/// Whether it is a host name. A name whose last part is a number would be read as an address in one of the old
/// notations.
fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let mut labels = name.split('.');
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= 253
        && labels.all(|label| (1..=63).contains(&label.len()) && label.bytes().all(is_letter))
        && !last.bytes().all(|byte| byte.is_ascii_digit())
        && !last.starts_with("0x")
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.port) {
            (Name::Exact(name), _) => f.write_str(name)?,
            (Name::Below(name), _) => write!(f, "*.{name}")?,
            (Name::Address(IpAddr::V6(address)), Some(_)) => write!(f, "[{address}]")?,
            (Name::Address(address), _) => write!(f, "{address}")?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl Serialize for Host {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Host {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, host) in self.0.iter().enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            write!(f, "{comma}{host}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(list: &[&str]) -> Hosts {
        Hosts::parse(list).unwrap()
    }

    #[test]
    fn a_host_is_reached_by_its_name_and_no_other() {
        let list = hosts(&["example.com", "*.example.org", "10.0.0.7:8443", "[::1]:80"]);
        for (host, port) in [
            ("example.com", 443),
            ("EXAMPLE.com.", 80),
            ("a.example.org", 443),
            ("a.b.example.org", 443),
            ("10.0.0.7", 8443),
            ("::1", 80),
            ("[::1]", 80),
        ] {
            assert!(list.allow(host, port), "{host}:{port}");
        }
        for (host, port) in [
            ("www.example.com", 443),
            ("example.com.evil.net", 443),
            ("example.org", 443),
            ("badexample.org", 443),
            (".example.org", 443),
            ("10.0.0.7", 443),
            ("167772167", 8443),
            ("10.7", 8443),
            ("::1", 443),
            ("", 443),
        ] {
            assert!(!list.allow(host, port), "{host}:{port}");
        }
    }

    #[test]
    fn an_address_inside_has_to_be_listed_itself() {
        let list = hosts(&["intranet.example", "10.0.0.7"]);
        let is_allowed = |address: &str| list.allow_address(address.parse().unwrap(), 80);
        assert!(is_allowed("9.9.9.9") && is_allowed("10.0.0.7"));
        assert!(
            !is_allowed("10.0.0.8") && !is_allowed("127.0.0.1") && !is_allowed("169.254.169.254")
        );
        // A name that resolves to this machine reaches no other port of it.
        let list = hosts(&["localhost:3000", "10.0.0.7:8443", "name.example"]);
        for (address, port, is_allowed) in [
            ("127.0.0.1", 3000, true),
            ("::1", 3000, true),
            ("127.0.0.1", 3001, false),
            ("10.0.0.7", 8443, true),
            ("10.0.0.7", 22, false),
            ("9.9.9.9", 22, true),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(
                list.allow_address(address, port),
                is_allowed,
                "{address}:{port}"
            );
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            "*",
            "*.",
            "a b",
            "https://example.com",
            "example.com/path",
            "example.com:port",
            "example.com:70000",
            "a.*.com",
            "*.10.0.0.1",
            "2130706433",
            "127.1",
            "0x7f.1",
            "a..b",
            "user@example.com",
        ] {
            assert_eq!(text.parse::<Host>(), Err(NoHost(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn a_list_is_written_as_it_is_read() {
        let texts = [
            "example.com",
            "*.a.example:8080",
            "10.0.0.7",
            "::1",
            "[::1]:80",
        ];
        let list = hosts(&texts);
        let json = serde_json::to_string(&list).unwrap();
        assert_eq!(serde_json::from_str::<Hosts>(&json).unwrap(), list);
        assert_eq!(list.to_string(), texts.join(", "));
    }
}
