//! The hosts that `fetch_url` may connect to.

use super::{Failure, ToolContext};
use agentd_core::hosts::{Hosts, is_public};
use agentd_failpoint as failpoint;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The agent has full access: its commands can reach every host too.
    Everything,
    /// The public internet.
    Public,
    /// The hosts of the agent's `network` list.
    Listed(Hosts),
}

impl Reach {
    pub fn of(context: &ToolContext) -> Self {
        let confined = context.confined.as_ref();
        match confined.filter(|_| !failpoint::injected_bug("fetch_anywhere")) {
            None => Self::Everything,
            Some(confined) if confined.hosts.is_empty() => Self::Public,
            // A list that cannot be parsed allows nothing.
            Some(confined) => Self::Listed(Hosts::parse(&confined.hosts).unwrap_or_default()),
        }
    }

    /// Refuses a host that is not listed, and a numeric address that is not allowed. A name is checked when it is
    /// resolved.
    pub fn check(&self, url: &Url) -> Result<(), Failure> {
        let host = url.host_str().unwrap_or_default();
        let number = host.trim_matches(['[', ']']).parse::<IpAddr>();
        match (self, number) {
            (Self::Listed(hosts), _) => {
                let port = url.port_or_known_default().unwrap_or_default();
                match hosts.allow(host, port) {
                    true => Ok(()),
                    false => Err(Failure::new(format!(
                        "{host} is not in this agent's `network` list: {hosts}."
                    ))),
                }
            }
            (Self::Public, Ok(number)) if !is_public(number) => Err(Failure::new(format!(
                "{number} is not on the public internet; an agent in a sandbox cannot fetch from it."
            ))),
            _ => Ok(()),
        }
    }

    fn allows(&self, address: IpAddr) -> bool {
        match self {
            Self::Everything => true,
            Self::Public => is_public(address),
            Self::Listed(hosts) => hosts.allow_address(address),
        }
    }
}

/// Resolves names to allowed addresses only, so that the client connects to the address that was checked.
pub struct Resolver(pub Reach);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = Arc::new(self.0.clone());
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let may = |address: &SocketAddr| reach.allows(address.ip());
            let open: Vec<SocketAddr> = found.filter(may).collect();
            if open.is_empty() {
                let why = format!("{} has no address on the public internet", name.as_str());
                return Err(why.into());
            }
            Ok(Box::new(open.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_refused_however_it_is_written() {
        let urls = [
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.0.0.1/",
            "http://[::1]:80/",
            "http://0/",
        ];
        for url in urls {
            let url: Url = url.parse().unwrap();
            assert!(Reach::Public.check(&url).is_err(), "{url}");
            assert!(Reach::Everything.check(&url).is_ok());
        }
    }

    #[test]
    fn a_host_that_is_not_listed_is_refused() {
        let reach = Reach::Listed(Hosts::parse(["example.com", "127.0.0.1:8080"]).unwrap());
        for (url, is_allowed) in [
            ("https://example.com/a", true),
            ("http://127.0.0.1:8080/", true),
            ("http://127.0.0.1:8081/", false),
            ("https://example.org/", false),
            ("https://example.com.evil.net/", false),
        ] {
            let url: Url = url.parse().unwrap();
            assert_eq!(reach.check(&url).is_ok(), is_allowed, "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_of_this_machine_is_refused() {
        let resolved = Resolver(Reach::Public)
            .resolve("localhost".parse().unwrap())
            .await;
        assert!(resolved.is_err());
    }
}
