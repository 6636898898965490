//! Services that the user passes to an agent (`pass`), used with the real clients.

use super::{create, empty, ok, outside};
use crate::test_daemon::{TestDaemon, until};
use agentd_core::event::Kind;
use agentd_core::spec::Pass;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};

fn questions(daemon: &TestDaemon) -> usize {
    daemon.count("coder", Kind::ApprovalRequested)
}

/// Ends with the test.
struct SshAgent(Child);

impl SshAgent {
    fn start(socket: &Path) -> Self {
        let mut command = Command::new("ssh-agent");
        command.arg("-D").arg("-a").arg(socket);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        until("the agent listens", || {
            UnixStream::connect(socket).is_ok().then_some(())
        });
        Self(child)
    }
}

impl Drop for SshAgent {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
fn a_key_of_the_ssh_agent_signs_without_a_question_and_is_not_seen() {
    let Some(daemon) = empty(&["ssh-agent", "ssh-add", "ssh-keygen"]) else {
        return;
    };
    let (socket, key) = (daemon.root().join("agent.sock"), daemon.root().join("key"));
    let (socket_text, key_text) = (socket.display().to_string(), key.display().to_string());
    let _agent = SshAgent::start(&socket);
    outside(
        &daemon.root(),
        "ssh-keygen",
        &["-q", "-t", "ed25519", "-N", "", "-f", &key_text],
    );
    outside(
        &daemon.root(),
        "env",
        &[
            &format!("SSH_AUTH_SOCK={socket_text}"),
            "ssh-add",
            "-q",
            &key_text,
        ],
    );
    fs::copy(key.with_extension("pub"), daemon.work().join("key.pub")).unwrap();
    daemon.caller_env("SSH_AUTH_SOCK", &socket_text);
    create(&daemon, |spec| spec.pass = vec![Pass::SshAgent]);
    let said = ok(
        &daemon,
        &format!(
            "ssh-add -l; echo text > file; ssh-keygen -q -Y sign -n file -f key.pub file\n\
             test ! -e {key_text}; head -1 file.sig"
        ),
    );
    assert!(said.contains("ED25519"), "{said}");
    assert!(said.contains("BEGIN SSH SIGNATURE"), "{said}");
    assert_eq!(questions(&daemon), 0);
}

/// Answers as the Docker engine does when no container runs; sends the first line of each request.
fn serve(stream: UnixStream, seen: &Sender<String>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 2 {
        line.clear();
    }
    let body = match first.contains("/_ping") {
        true => "OK",
        false => "[]",
    };
    let length = body.len();
    let body = match first.starts_with("HEAD") {
        true => "",
        false => body,
    };
    seen.send(first).ok()?;
    write!(
        &stream,
        "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .ok()
}

#[test]
fn docker_reaches_its_engine_without_a_question() {
    let Some(daemon) = empty(&["docker"]) else {
        return;
    };
    let socket = daemon.root().join("docker.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let (tell, seen) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A client that goes away ends its own connection only.
            let _answered = serve(stream, &tell);
        }
    });
    daemon.caller_env("DOCKER_HOST", &format!("unix://{}", socket.display()));
    create(&daemon, |spec| spec.pass = vec![Pass::Docker]);
    ok(&daemon, "docker ps");
    let seen: Vec<String> = seen.try_iter().collect();
    assert!(
        seen.iter().any(|line| line.contains("/containers/json")),
        "{seen:?}"
    );
    assert_eq!(questions(&daemon), 0);
}
