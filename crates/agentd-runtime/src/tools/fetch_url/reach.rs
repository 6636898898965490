//! The hosts that `fetch_url` may connect to.

use super::{Failure, ToolContext};
use agentd_core::hosts::{Hosts, is_public};
use agentd_failpoint as failpoint;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, SocketAddr};

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

    /// Refuses a host that is not listed, and an address or a name of this machine or a private network. If there is a proxy,
    /// it resolves the name itself, so what can be known about a name is checked before the proxy gets the request.
    pub async fn check(&self, url: &Url) -> Result<(), Failure> {
        self.check_text(url)?;
        let Some(name) = url.domain() else {
            return Ok(());
        };
        if *self == Self::Everything {
            return Ok(());
        }
        // Behind a proxy, many names cannot be resolved here: these are left to the proxy.
        let port = port(url);
        let found = tokio::net::lookup_host((name, port)).await;
        let found: Vec<SocketAddr> = found.into_iter().flatten().collect();
        match found.is_empty() || found.iter().any(|address| self.allows(address.ip(), port)) {
            true => Ok(()),
            false => Err(not_public(name)),
        }
    }

    /// The same, as far as the text of the URL tells it.
    fn check_text(&self, url: &Url) -> Result<(), Failure> {
        let host = url.host_str().unwrap_or_default();
        let number = host.trim_matches(['[', ']']).parse::<IpAddr>();
        match (self, number) {
            (Self::Listed(hosts), number) => {
                let port = port(url);
                let is_inside = number.is_ok_and(|it| !hosts.allow_address(it, port));
                match hosts.allow(host, port) && !is_inside {
                    true => Ok(()),
                    false => Err(Failure::new(format!(
                        "{host} is not in this agent's `network` list: {hosts}."
                    ))),
                }
            }
            (Self::Public, Ok(number)) if !is_public(number) => Err(not_public(host)),
            (Self::Public, Err(_)) if is_local(host) => Err(not_public(host)),
            _ => Ok(()),
        }
    }

    fn allows(&self, address: IpAddr, port: u16) -> bool {
        match self {
            Self::Everything => true,
            Self::Public => is_public(address),
            Self::Listed(hosts) => hosts.allow_address(address, port),
        }
    }
}

fn not_public(host: &str) -> Failure {
    Failure::new(format!(
        "{host} is not on the public internet; an agent in a sandbox cannot fetch from it."
    ))
}

/// A name that always means this machine, whatever resolves it.
fn is_local(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether the text of the URL names this machine.
pub fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let number = host.trim_matches(['[', ']']).parse::<IpAddr>();
    is_local(host) || number.is_ok_and(|number| number.is_loopback())
}

fn port(url: &Url) -> u16 {
    url.port_or_known_default().unwrap_or_default()
}

/// Resolves the name of one URL to allowed addresses only, so that the client connects to the address that was checked. Any
/// other name is that of the user's proxy.
pub struct Resolver {
    reach: Reach,
    host: String,
    port: u16,
}

impl Resolver {
    pub fn new(reach: Reach, url: &Url) -> Self {
        Self {
            reach,
            host: url.host_str().unwrap_or_default().to_owned(),
            port: port(url),
        }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = match name.as_str() == self.host {
            true => self.reach.clone(),
            false => Reach::Everything,
        };
        let port = self.port;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let may = |address: &SocketAddr| reach.allows(address.ip(), port);
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
            "http://localhost/",
            "http://a.LOCALHOST./",
        ];
        for url in urls {
            let url: Url = url.parse().unwrap();
            assert!(Reach::Public.check_text(&url).is_err(), "{url}");
            assert!(Reach::Everything.check_text(&url).is_ok());
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
            assert_eq!(reach.check_text(&url).is_ok(), is_allowed, "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_of_this_machine_is_refused() {
        let url: Url = "http://localhost:1/".parse().unwrap();
        let resolve = |reach| Resolver::new(reach, &url).resolve("localhost".parse().unwrap());
        assert!(resolve(Reach::Public).await.is_err());
        let listed = |list: &[&str]| Reach::Listed(Hosts::parse(list).unwrap());
        assert!(resolve(listed(&["localhost:1"])).await.is_ok());
        // Another port of this machine is listed.
        assert!(resolve(listed(&["localhost:2"])).await.is_err());
        // The name of a proxy is the user's choice.
        let url: Url = "http://example.com/".parse().unwrap();
        let proxy = Resolver::new(Reach::Public, &url).resolve("localhost".parse().unwrap());
        assert!(proxy.await.is_ok());
    }
}
