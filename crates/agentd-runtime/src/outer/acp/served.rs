//! What a child asks of its client: text files and terminals, in its own sandbox. The listener never waits for them.

use super::files::Files;
use super::locked;
use super::rpc::Connection;
use super::terminals::Terminals;
use crate::outer::start::ChildOptions;
use agentd_core::outer::acp::files::FileWork;
use agentd_core::outer::acp::{self, Asked, ClientRequest, Refusal, TerminalOutput, TerminalVerb};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// How many bytes of requests may be unanswered at a time. One more, and it is refused.
const MOST_ASKED: usize = 16 * 1024 * 1024;
/// What each request counts, at least.
const LEAST_ASKED: usize = 64 * 1024;
/// What a command counts: it may be as long.
const COMMAND_ASKED: usize = 1024 * 1024;

/// Clones share it.
#[derive(Clone)]
pub struct Served(Arc<Inner>);

struct Inner {
    connection: Connection,
    /// The session of the child; `None` before it has begun.
    session: Mutex<Option<String>>,
    files: Files,
    terminals: Terminals,
    /// The room for unanswered requests, in bytes.
    asked: Arc<Semaphore>,
    /// One output at a time is in memory for a child that does not read.
    outputs: tokio::sync::Mutex<()>,
}

impl Served {
    pub fn new(options: &ChildOptions, connection: Connection) -> Self {
        Self(Arc::new(Inner {
            connection,
            session: Mutex::default(),
            files: Files::new(options),
            terminals: Terminals::new(options),
            asked: Arc::new(Semaphore::new(MOST_ASKED)),
            outputs: tokio::sync::Mutex::default(),
        }))
    }

    /// Requests of this session are served from now on, and those of another one are not.
    pub fn open(&self, session: &str) {
        *locked(&self.0.session) = Some(session.to_owned());
    }

    /// Takes a request, and answers it later. Never waits.
    pub fn take(&self, id: Value, method: &str, params: Value, turn: u64) {
        let connection = &self.0.connection;
        let Some(asked) = acp::client_request(method, params) else {
            let method: String = method.chars().take(100).collect();
            connection.refuse(&id, &format!("agentd does not serve `{method}`"));
            return;
        };
        let request = match asked.and_then(|asked| self.of_session(asked)) {
            Ok(request) => request,
            Err(refusal) => return connection.fail(&id, &refusal),
        };
        let room = Arc::clone(&self.0.asked).try_acquire_many_owned(size(&request));
        let Ok(room) = room else {
            let why = "too many requests at a time; wait for their answers";
            return connection.fail(&id, &Refusal::failed(why));
        };
        let served = Arc::clone(&self.0);
        tokio::spawn(async move {
            served.serve(&id, request, turn).await;
            drop(room);
        });
    }

    fn of_session(&self, asked: Asked) -> Result<ClientRequest, Refusal> {
        match locked(&self.0.session).as_deref() {
            Some(session) if session == asked.session => Ok(asked.request),
            Some(_) => Err(Refusal::wrong(
                "`sessionId` is not the session of this agent",
            )),
            None => Err(Refusal::wrong("`sessionId`: the session has not begun")),
        }
    }

    /// What a terminal shows.
    pub fn shown(&self, terminal: &str) -> Option<String> {
        self.0.terminals.shown(terminal)
    }

    /// A turn was interrupted: ends what it began.
    pub fn end_turn(&self, turn: u64) {
        self.0.terminals.end_turn(turn);
    }

    /// The child has ended: ends everything that runs for it. Returns when that has ended.
    pub async fn close(&self) {
        tokio::join!(self.0.files.close(), self.0.terminals.close());
    }
}

impl Inner {
    async fn serve(&self, id: &Value, request: ClientRequest, turn: u64) {
        let terminals = &self.terminals;
        let answer = match request {
            ClientRequest::File(work) => {
                let mut files = self.files.lock().await;
                let answer = files.serve(&work).await;
                // Before the next request: a child that does not read holds one answer, not all of them.
                return self.connection.reply(id, answer).await;
            }
            ClientRequest::CreateTerminal(new) => {
                let created = terminals.create(new, turn).await;
                created.map(|terminal| acp::terminal_created(&terminal))
            }
            ClientRequest::Terminal { id: terminal, verb } => match verb {
                TerminalVerb::Output => {
                    let _one_at_a_time = self.outputs.lock().await;
                    let output = terminals.output(&terminal).map(TerminalOutput::answer);
                    return self.connection.reply(id, output).await;
                }
                TerminalVerb::WaitForExit => {
                    let exit = terminals.wait_for_exit(&terminal).await;
                    exit.map(|exit| exit.answer())
                }
                TerminalVerb::Kill => terminals.kill(&terminal).map(|()| acp::done()),
                TerminalVerb::Release => terminals.release(&terminal).map(|()| acp::done()),
            },
        };
        self.connection.reply(id, answer).await;
    }
}

/// What a request counts.
fn size(request: &ClientRequest) -> u32 {
    let given = match request {
        ClientRequest::File(FileWork::Write { content, .. }) => content.len(),
        ClientRequest::CreateTerminal(_) => COMMAND_ASKED,
        _ => 0,
    };
    u32::try_from(given.max(LEAST_ASKED)).unwrap_or(u32::MAX)
}
