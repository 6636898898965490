//! An agent whose `network` is a list of hosts: what its tools reach through the proxy, and that they reach nothing else.

use crate::sandbox::{run, tool};
use crate::test_daemon::{TestDaemon, until};
use agentd_core::hosts::Hosts;
use agentd_core::spec::{AgentSpec, Decision, Network, Rule, Sandbox};
use rustix::process::Signal;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server on this machine. It answers `hello`, or redirects to another port.
struct Server {
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl Server {
    fn start(leads_to: Option<u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let _head = stream.read(&mut [0; 4096]);
                let answer = match leads_to {
                    Some(port) => format!(
                        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{port}/\r\ncontent-length: 0\r\n\r\n"
                    ),
                    None => "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhello\n".to_owned(),
                };
                let _gone = stream.write_all(answer.as_bytes());
            }
        });
        Self { port, asked }
    }

    fn was_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst) > 0
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

fn daemon(hosts: &[String], change: impl FnOnce(&mut AgentSpec)) -> Option<TestDaemon> {
    let support = agentd_sandbox::support();
    if let Err(missing) = support.namespaces.and(support.network) {
        println!("skipped: {missing}");
        return None;
    }
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    spec.network = Some(Network::Hosts(Hosts::parse(hosts).unwrap()));
    change(&mut spec);
    daemon.create_with("coder", spec);
    Some(daemon)
}

/// A program like those that models write: it uses a proxy only because its library reads the environment.
fn get(server: &Server) -> String {
    let host = server.host();
    format!(
        "python3 -c \"import urllib.request as u; print(u.urlopen('http://{host}/', timeout=5).read())\""
    )
}

#[test]
fn a_listed_host_is_reached_through_the_proxy() {
    let server = Server::start(None);
    let Some(daemon) = daemon(&[server.host()], |_| {}) else {
        return;
    };
    let said = run(&daemon, &get(&server));
    assert!(said.contains("hello"), "{said}");
    assert!(server.was_asked());
}

/// Regression: the proxy was started by the path of the program, whose file was replaced.
#[test]
fn a_listed_host_is_reached_after_an_upgrade_too() {
    let server = Server::start(None);
    let Some(daemon) = daemon(&[server.host()], |_| {}) else {
        return;
    };
    daemon.signal_daemon(Signal::TERM);
    daemon.run_replaced_program();
    let said = run(&daemon, &get(&server));
    assert!(said.contains("hello"), "{said}");
}

#[test]
fn another_host_is_refused_and_the_model_is_told_what_to_ask_for() {
    let (listed, other) = (Server::start(None), Server::start(None));
    let Some(daemon) = daemon(&[listed.host()], |_| {}) else {
        return;
    };
    let said = run(&daemon, &get(&other));
    assert!(said.contains("Host not listed"), "{said}");
    assert!(said.contains("`network` list"), "{said}");
    assert!(said.contains(&listed.host()), "{said}");
    assert!(!other.was_asked());
}

#[test]
fn there_is_no_way_around_the_proxy() {
    let (listed, other) = (Server::start(None), Server::start(None));
    let Some(daemon) = daemon(&[listed.host()], |_| {}) else {
        return;
    };
    for server in [&listed, &other] {
        let port = server.port;
        let said = run(
            &daemon,
            &format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo GET >&3 && cat <&3; true"),
        );
        assert!(!said.contains("hello"), "{said}");
    }
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let port = udp.local_addr().unwrap().port();
    run(
        &daemon,
        &format!("echo out > /dev/udp/127.0.0.1/{port}; true"),
    );
    assert!(udp.recv(&mut [0; 16]).is_err());
    assert!(!listed.was_asked() && !other.was_asked());
}

#[test]
fn a_redirect_to_another_host_is_not_followed() {
    let other = Server::start(None);
    let leading = Server::start(Some(other.port));
    let Some(daemon) = daemon(&[leading.host()], |_| {}) else {
        return;
    };
    let said = run(&daemon, &get(&leading));
    assert!(said.contains("403"), "{said}");
    assert!(leading.was_asked() && !other.was_asked());
}

#[test]
fn fetch_url_obeys_the_list() {
    let (listed, other) = (Server::start(None), Server::start(None));
    let Some(daemon) = daemon(&[listed.host()], |spec| {
        spec.tools = Some(vec!["fetch_url".to_owned()]);
        spec.permissions = vec![Rule {
            tool: "fetch_url".to_owned(),
            pattern: None,
            decision: Decision::Allow,
            needs: Vec::new(),
        }];
    }) else {
        return;
    };
    let fetch = |server: &Server| {
        let url = format!("http://{}/", server.host());
        tool(&daemon, "fetch_url", &json!({ "url": url }))
    };
    assert!(fetch(&listed).contains("hello"));
    let said = fetch(&other);
    assert!(said.contains("`network` list"), "{said}");
    assert!(!other.was_asked());
}

/// The daemon's own proxy resolves names: it must not get a request for this machine.
#[test]
fn fetch_url_checks_a_name_before_a_proxy_gets_it() {
    let (proxy, inside) = (Server::start(None), Server::start(None));
    let Some(daemon) = daemon(&["example.com".to_owned()], |_| {}) else {
        return;
    };
    daemon.kill_daemon();
    daemon.daemon_env("http_proxy", &format!("http://{}", proxy.host()));
    // The model is on this machine, too.
    daemon.daemon_env("no_proxy", "127.0.0.1");
    daemon.start_daemon();
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    spec.tools = Some(vec!["fetch_url".to_owned()]);
    spec.permissions = vec![Rule {
        tool: "fetch_url".to_owned(),
        pattern: None,
        decision: Decision::Allow,
        needs: Vec::new(),
    }];
    daemon.create_with("fetcher", spec);
    let fetch = |host: &str| {
        let call = json!({ "url": format!("http://{host}:{}/", inside.port) });
        daemon.completed("fetcher", &format!("do: call fetch_url {call} ;; say done"));
    };
    for host in names_of_this_machine() {
        fetch(&host);
        assert!(!proxy.was_asked() && !inside.was_asked(), "{host}");
    }
    fetch("example.com");
    assert!(proxy.was_asked());
}

/// Names that resolve to the loopback address here.
fn names_of_this_machine() -> Vec<String> {
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let lines = hosts
        .lines()
        .filter_map(|line| line.strip_prefix("127.0.0.1"));
    let names = lines.flat_map(str::split_whitespace).map(str::to_owned);
    names.chain(["localhost".to_owned()]).collect()
}

/// Another name of this machine is listed, and one port of `localhost`.
#[test]
fn a_listed_name_of_this_machine_reaches_listed_ports_only() {
    let (listed, other) = (Server::start(None), Server::start(None));
    let Some(name) = names_of_this_machine()
        .into_iter()
        .find(|name| name != "localhost")
    else {
        println!("skipped: this machine has no other name");
        return;
    };
    let hosts = [name.clone(), format!("localhost:{}", listed.port)];
    let Some(daemon) = daemon(&hosts, |_| {}) else {
        return;
    };
    let get = |port: u16| {
        let open = format!("u.urlopen('http://{name}:{port}/', timeout=5).read()");
        run(
            &daemon,
            &format!("python3 -c \"import urllib.request as u; print({open})\""),
        )
    };
    assert!(get(listed.port).contains("hello"));
    let said = get(other.port);
    assert!(said.contains("403"), "{said}");
    assert!(!other.was_asked());
}

/// The proxy of a task ends with it, and with its shim.
#[test]
fn no_proxy_is_left_behind() {
    let server = Server::start(None);
    let Some(daemon) = daemon(&[server.host()], |_| {}) else {
        return;
    };
    let mark = server.host();
    let gates = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let all = all.filter(|entry| {
            let args = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let args = String::from_utf8_lossy(&args).into_owned();
            args.contains("--agentd-gate") && args.contains(&mark)
        });
        all.count()
    };
    let none = || (gates() == 0).then_some(());
    let call = json!({"command": "sleep 600", "run_in_background": true});
    daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
    until("the proxy", || (gates() == 1).then_some(()));
    let task = daemon.show("coder").tasks[0];
    daemon
        .block(daemon.client().stop_tasks(&task.to_string()))
        .unwrap();
    until("the end of the task's proxy", none);
    assert!(run(&daemon, &get(&server)).contains("hello"));
    until("the end of the call's proxy", none);
}
