//! Requests without an answer keep their keys.

use super::*;
use agentd_client::api::{AgentRef, EndedCommand, Sent};
use agentd_core::event::{CommandEnd, PromptMode, TaskExit};
use agentd_core::id::{AgentId, CommandId, ConversationId, PromptId, Seq};
use agentd_core::state::Phase;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A daemon that dies before its first answer to each kind of change. Returns what the changes contained.
fn daemon(socket: &Path) -> Receiver<String> {
    let listener = UnixListener::bind(socket).unwrap();
    let (sender, seen) = channel();
    std::thread::spawn(move || {
        let mut lost = (false, false);
        for stream in listener.incoming() {
            serve(stream.unwrap(), &sender, &mut lost);
        }
    });
    seen
}

fn serve(mut stream: UnixStream, seen: &Sender<String>, lost: &mut (bool, bool)) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        head.push(line);
    }
    let length = head.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_it = name.eq_ignore_ascii_case("content-length");
        is_it.then(|| value.trim().parse::<usize>().unwrap())
    });
    let mut body = vec![0; length.unwrap_or_default()];
    reader.read_exact(&mut body).unwrap();
    let request = head.first().cloned().unwrap_or_default();
    let agent = AgentRef {
        id: AgentId::new(Uuid::nil()),
        name: None,
    };
    let answer = if request.contains("/prompts") {
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        seen.send(body["key"].as_str().unwrap().to_owned()).unwrap();
        if !std::mem::replace(&mut lost.0, true) {
            return;
        }
        serde_json::to_string(&Sent {
            agent,
            prompt: PromptId::new(Uuid::nil()),
            phase: Phase::Idle,
            repeated: false,
            seq: Seq(1),
        })
    } else if request.contains("/commands") {
        seen.send(request.clone()).unwrap();
        if !std::mem::replace(&mut lost.1, true) {
            return;
        }
        serde_json::to_string(&EndedCommand {
            agent,
            conversation: ConversationId::new(Uuid::nil()),
            id: CommandId::new(Uuid::nil()),
            command: String::new(),
            output: String::new(),
            end: CommandEnd {
                exit: TaskExit::Unknown,
                cut: None,
            },
            duration_ms: 0,
            repeated: false,
        })
    } else {
        serde_json::to_string(&agentd_core::spec::AgentSpec::default())
    };
    let answer = answer.unwrap();
    let length = answer.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{answer}"
    )
    .unwrap();
}

/// Makes the same request three times; only the first gets no answer. Returns what the daemon saw.
fn three_times(effect: &Effect) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let seen = daemon(&socket);
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let mut requests = Requests::new(Target {
        client: Client::new(socket),
        id: "coder".to_owned(),
        cwd: None,
    });
    let mut answers = Vec::new();
    for _ in 0..3 {
        requests.push(effect.clone());
        answers.push(match runtime.block_on(requests.next()) {
            Answer::Sent(_, answer) => answer.map(drop),
            Answer::Ran(_, answer) => answer,
            _ => panic!("another answer"),
        });
    }
    assert!(answers[0].as_ref().is_err_and(Error::is_unavailable));
    assert!(answers[1..].iter().all(Result::is_ok));
    seen.try_iter().collect()
}

#[test]
fn a_prompt_without_an_answer_keeps_its_key_and_the_next_one_has_another() {
    let keys = three_times(&Effect::Send {
        text: "hello".to_owned(),
        typed: "hello".to_owned(),
        chosen: Vec::new(),
        mode: PromptMode::Queue,
    });
    assert_eq!((keys.len(), &keys[0]), (3, &keys[1]));
    assert_ne!(keys[1], keys[2]);
}

#[test]
fn a_command_without_an_answer_keeps_its_op() {
    let ops = three_times(&Effect::RunCommand("make".to_owned()));
    assert!(ops[0].contains("op="), "{}", ops[0]);
    assert_eq!((ops.len(), &ops[0]), (3, &ops[1]));
    assert_ne!(ops[1], ops[2]);
}
