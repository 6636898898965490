//! Routes the requests of the editor to its sessions.

use super::connection::{self, Call, Peer, Responder};
use super::conversation_ref::ConversationRef;
use super::open::{self, Found};
use super::session::{Command, LAST_PROMPTS, Session, Shared};
use super::translate::Can;
use super::{history, problem, servers};
use crate::connect;
use crate::error::{Error, Exit};
use agent_client_protocol::Error as ProtocolError;
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CloseSessionResponse, DeleteSessionResponse, ForkSessionRequest,
    ForkSessionResponse, Implementation, InitializeRequest, InitializeResponse,
    ListSessionsRequest, LoadSessionRequest, LoadSessionResponse, McpCapabilities,
    NewSessionRequest, NewSessionResponse, PromptCapabilities, ResumeSessionRequest,
    ResumeSessionResponse, SessionCapabilities, SessionCloseCapabilities,
    SessionDeleteCapabilities, SessionForkCapabilities, SessionId, SessionListCapabilities,
    SessionResumeCapabilities,
};
use agentd_client::Client;
use agentd_client::api::Agent;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::task::{JoinSet, LocalSet};

/// Serves the editor at stdin and stdout until it is gone. Agents continue.
pub async fn run(agent: Option<String>) -> Result<(), Error> {
    let client = connect::client().await?;
    let local = LocalSet::new();
    let served = connection::serve(|calls, peer| {
        let server = Server {
            agent,
            client,
            peer,
            can: Rc::default(),
            sessions: Rc::default(),
        };
        server.run(calls)
    });
    local.run_until(served).await
}

type Sessions = Rc<RefCell<BTreeMap<String, UnboundedSender<Command>>>>;

#[derive(Clone)]
struct Server {
    /// The agent whose conversations new sessions are.
    agent: Option<String>,
    client: Client,
    peer: Peer,
    can: Rc<Cell<Can>>,
    /// The open sessions, by their ids.
    sessions: Sessions,
}

impl Server {
    async fn run(self, mut calls: UnboundedReceiver<Call>) {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                call = calls.recv() => match call {
                    Some(call) => self.take(call, &mut tasks),
                    None => break,
                },
                Some(_) = tasks.join_next() => {}
                () = self.peer.closed() => break,
            }
        }
        // Without their senders, sessions end.
        self.sessions.borrow_mut().clear();
        let ended = async { while tasks.join_next().await.is_some() {} };
        let _too_slow = tokio::time::timeout(LAST_PROMPTS, ended).await;
    }

    fn take(&self, call: Call, tasks: &mut JoinSet<()>) {
        match call {
            Call::Initialize(request, responder) => {
                let _gone = responder.respond(self.initialize(&request));
            }
            Call::Cancel(cancel) => {
                // A session that is not open has no turn to cancel.
                let _closed = self.to(&cancel.session_id, Command::Cancel);
            }
            Call::Prompt(request, responder) => {
                let id = request.session_id;
                match self.sender(&id) {
                    Some(session) => drop(session.send(Command::Prompt(request.prompt, responder))),
                    None => refuse(responder, problem::no_session(&id)),
                }
            }
            Call::SetMode(request, responder) => {
                let (id, mode) = (request.session_id, request.mode_id.0.to_string());
                match self.sender(&id) {
                    Some(session) => drop(session.send(Command::SetMode(mode, responder))),
                    None => refuse(responder, problem::no_session(&id)),
                }
            }
            Call::SetOption(request, responder) => {
                let id = request.session_id;
                let value = request.value.as_value_id().map(|value| value.0.to_string());
                let option = request.config_id.0.to_string();
                match (self.sender(&id), value) {
                    (Some(session), Some(value)) => {
                        drop(session.send(Command::SetOption(option, value, responder)));
                    }
                    (Some(_), None) => {
                        let what = format!("`{option}` is chosen from a list");
                        let error = Error::new(Exit::Usage, what).next("send one of its values");
                        refuse(responder, problem::of(error));
                    }
                    (None, _) => refuse(responder, problem::no_session(&id)),
                }
            }
            call => {
                let server = self.clone();
                tasks.spawn_local(async move { server.perform(call).await });
            }
        }
    }

    /// Requests that ask the daemon before they are answered.
    async fn perform(self, call: Call) {
        match call {
            Call::New(request, responder) => self.new_session(request, responder).await,
            Call::Load(request, responder) => self.load(request, responder).await,
            Call::Resume(request, responder) => self.resume(request, responder).await,
            Call::Fork(request, responder) => self.fork(request, responder).await,
            Call::List(request, responder) => self.list(request, responder).await,
            Call::Close(request, responder) => {
                let is_open = self.close(&request.session_id).await;
                match is_open {
                    true => answer(responder, CloseSessionResponse::new()),
                    false => refuse(responder, problem::no_session(&request.session_id)),
                }
            }
            Call::Delete(request, responder) => {
                match open::remove(&self.client, &request.session_id).await {
                    Ok(()) => {
                        self.close(&request.session_id).await;
                        answer(responder, DeleteSessionResponse::new());
                    }
                    Err(error) => refuse(responder, problem::of(error)),
                }
            }
            // They were handled at once.
            Call::Initialize(..)
            | Call::Prompt(..)
            | Call::SetMode(..)
            | Call::SetOption(..)
            | Call::Cancel(_) => {}
        }
    }

    fn initialize(&self, request: &InitializeRequest) -> InitializeResponse {
        let session = request.client_capabilities.session.as_ref();
        let elicitation = request.client_capabilities.elicitation.as_ref();
        self.can.set(Can {
            notices: session.is_some_and(|session| session.notices.is_some()),
            compaction: session.is_some_and(|session| session.compaction.is_some()),
            forms: elicitation.is_some_and(|can| can.form.is_some()),
            pages: elicitation.is_some_and(|can| can.url.is_some()),
        });
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .delete(SessionDeleteCapabilities::new())
            .fork(SessionForkCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .mcp_capabilities(McpCapabilities::new().http(true))
            .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
            .session_capabilities(sessions);
        let this =
            Implementation::new("agentd", env!("CARGO_PKG_VERSION")).title("agentd".to_owned());
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(this)
    }

    fn sender(&self, id: &SessionId) -> Option<UnboundedSender<Command>> {
        let sessions = self.sessions.borrow();
        let sender = sessions.get(id.0.as_ref()).cloned();
        sender.filter(|sender| !sender.is_closed())
    }

    fn to(&self, id: &SessionId, command: Command) -> bool {
        self.sender(id)
            .is_some_and(|session| session.send(command).is_ok())
    }

    /// Closes a session; whether it was open.
    async fn close(&self, id: &SessionId) -> bool {
        let (closed, is_closed) = oneshot::channel();
        let was_open = self.to(id, Command::Close(closed));
        self.sessions.borrow_mut().remove(id.0.as_ref());
        // A session that has ended by itself is closed as well.
        let _ended = is_closed.await;
        was_open
    }

    fn shared(&self) -> Shared {
        Shared {
            peer: self.peer.clone(),
            client: self.client.clone(),
            can: self.can.get(),
        }
    }

    /// Opens the session that is the agent's current conversation.
    async fn open_current(&self, agent: &Agent) -> Result<(SessionId, Session), Error> {
        let reference = open::current(agent)?;
        let id = SessionId::from(reference);
        let session = Session::open(self.shared(), id.clone(), agent, reference).await?;
        Ok((id, session))
    }

    async fn new_session(
        &self,
        request: NewSessionRequest,
        responder: Responder<NewSessionResponse>,
    ) {
        let opened = async {
            let agent = match &self.agent {
                Some(name) => open::begin(&self.client, name).await?,
                None => open::create(&self.client, absolute(request.cwd)?).await?,
            };
            self.open_current(&agent).await
        };
        match opened.await {
            Ok((id, mut session)) => {
                let response = NewSessionResponse::new(id.clone())
                    .modes(session.modes())
                    .config_options(session.options());
                session.lend(servers::of(request.mcp_servers)).await;
                answer(responder, response);
                self.start(&id, session).await;
            }
            Err(error) => refuse(responder, problem::of(error)),
        }
    }

    async fn load(&self, request: LoadSessionRequest, responder: Responder<LoadSessionResponse>) {
        let id = request.session_id;
        let opened = async {
            let (found, mut session) = self.open(&id).await?;
            let agent = found.agent.id;
            let replayed = history::replay(&self.client, agent, &found.conversation, |event| {
                session.replay(event);
            });
            let last = replayed.await?;
            session.replayed(last);
            Ok::<_, Error>(session)
        };
        match opened.await {
            Ok(mut session) => {
                let response = LoadSessionResponse::new()
                    .modes(session.modes())
                    .config_options(session.options());
                session.lend(servers::of(request.mcp_servers)).await;
                answer(responder, response);
                self.start(&id, session).await;
            }
            Err(error) => refuse(responder, problem::of(error)),
        }
    }

    async fn resume(
        &self,
        request: ResumeSessionRequest,
        responder: Responder<ResumeSessionResponse>,
    ) {
        let id = request.session_id;
        match self.open(&id).await {
            Ok((_, mut session)) => {
                let response = ResumeSessionResponse::new()
                    .modes(session.modes())
                    .config_options(session.options());
                session.lend(servers::of(request.mcp_servers)).await;
                answer(responder, response);
                self.start(&id, session).await;
            }
            Err(error) => refuse(responder, problem::of(error)),
        }
    }

    async fn fork(&self, request: ForkSessionRequest, responder: Responder<ForkSessionResponse>) {
        let opened = async {
            let reference: ConversationRef = request.session_id.0.parse().map_err(|()| {
                let what = format!("there is no session {}", request.session_id);
                Error::new(Exit::NotFound, what).next("list the sessions, or start a new one")
            })?;
            let agent = open::fork(&self.client, reference, None).await?;
            self.open_current(&agent).await
        };
        match opened.await {
            Ok((id, mut session)) => {
                let response = ForkSessionResponse::new(id.clone())
                    .modes(session.modes())
                    .config_options(session.options());
                session.lend(servers::of(request.mcp_servers)).await;
                answer(responder, response);
                self.start(&id, session).await;
            }
            Err(error) => refuse(responder, problem::of(error)),
        }
    }

    async fn list(
        &self,
        request: ListSessionsRequest,
        responder: Responder<agent_client_protocol::v1::schema::ListSessionsResponse>,
    ) {
        match open::list(&self.client, &request).await {
            Ok(response) => answer(responder, response),
            Err(error) => refuse(responder, problem::of(error)),
        }
    }

    /// A session of the past. If it is open already, it is opened anew.
    async fn open(&self, id: &SessionId) -> Result<(Found, Session), Error> {
        let found = open::find(&self.client, id).await?;
        self.close(id).await;
        let reference = found.reference();
        let session = Session::open(self.shared(), id.clone(), &found.agent, reference).await?;
        Ok((found, session))
    }

    /// Runs a session until it is closed. The task of the request that opened it does.
    async fn start(&self, id: &SessionId, session: Session) {
        let (sender, commands) = mpsc::unbounded_channel();
        self.sessions.borrow_mut().insert(id.0.to_string(), sender);
        session.run(commands).await;
    }
}

fn answer<T: agent_client_protocol::JsonRpcResponse>(responder: Responder<T>, response: T) {
    // An editor that is gone needs no answer.
    let _gone = responder.respond(response);
}

fn refuse<T: agent_client_protocol::JsonRpcResponse>(
    responder: Responder<T>,
    error: ProtocolError,
) {
    let _gone = responder.respond_with_error(error);
}

fn absolute(cwd: PathBuf) -> Result<PathBuf, Error> {
    match cwd.is_absolute() {
        true => Ok(cwd),
        false => {
            let what = format!("the directory {} is not absolute", cwd.display());
            Err(Error::new(Exit::Usage, what).next("send the whole path"))
        }
    }
}
