//! The connection to the editor. Requests are passed on in the order of their arrival, and answered whenever their answer is
//! known.

use super::stdio;
use crate::error::{Error as CliError, Exit};
use agent_client_protocol::v1::schema::{
    CancelNotification, CloseSessionRequest, CloseSessionResponse, CreateElicitationRequest,
    CreateElicitationResponse, DeleteSessionRequest, DeleteSessionResponse, ForkSessionRequest,
    ForkSessionResponse, InitializeRequest, InitializeResponse, ListSessionsRequest,
    ListSessionsResponse, LoadSessionRequest, LoadSessionResponse, NewSessionRequest,
    NewSessionResponse, PromptRequest, PromptResponse, RequestPermissionOutcome,
    RequestPermissionRequest, ResumeSessionRequest, ResumeSessionResponse, SessionId,
    SessionNotification, SessionUpdate, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use agent_client_protocol::v1::{ConnectionTo, Responder as RawResponder};
use agent_client_protocol::{Agent, Client, Error};
use std::future::Future;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

pub type Responder<T> = RawResponder<T>;

/// What the editor asks for.
pub enum Call {
    Initialize(InitializeRequest, Responder<InitializeResponse>),
    New(NewSessionRequest, Responder<NewSessionResponse>),
    Load(LoadSessionRequest, Responder<LoadSessionResponse>),
    Resume(ResumeSessionRequest, Responder<ResumeSessionResponse>),
    Fork(ForkSessionRequest, Responder<ForkSessionResponse>),
    List(ListSessionsRequest, Responder<ListSessionsResponse>),
    Close(CloseSessionRequest, Responder<CloseSessionResponse>),
    Delete(DeleteSessionRequest, Responder<DeleteSessionResponse>),
    Prompt(PromptRequest, Responder<PromptResponse>),
    SetMode(SetSessionModeRequest, Responder<SetSessionModeResponse>),
    SetOption(
        SetSessionConfigOptionRequest,
        Responder<SetSessionConfigOptionResponse>,
    ),
    Cancel(CancelNotification),
}

/// Registers a handler for each request, which passes it on.
macro_rules! passing_on {
    ($builder:expr, $calls:ident: $($call:ident($request:ty)),* $(,)?) => {{
        let builder = $builder;
        $(
            let calls = $calls.clone();
            let builder = builder.on_receive_request(
                async move |request: $request, responder, _connection| {
                    pass_on(&calls, Call::$call(request, responder))
                },
                agent_client_protocol::on_receive_request!(),
            );
        )*
        builder
    }};
}

fn pass_on(calls: &UnboundedSender<Call>, call: Call) -> Result<(), Error> {
    calls.send(call).map_err(|_| Error::internal_error())
}

/// Runs the application until the editor closes its end and the application has returned.
pub async fn serve<F: Future<Output = ()>>(
    application: impl FnOnce(UnboundedReceiver<Call>, Peer) -> F,
) -> Result<(), CliError> {
    let (calls, received) = mpsc::unbounded_channel();
    let transport = stdio::transport().map_err(CliError::no_runtime)?;
    let builder = passing_on!(Agent.v1().name("agentd"), calls:
        Initialize(InitializeRequest),
        New(NewSessionRequest),
        Load(LoadSessionRequest),
        Resume(ResumeSessionRequest),
        Fork(ForkSessionRequest),
        List(ListSessionsRequest),
        Close(CloseSessionRequest),
        Delete(DeleteSessionRequest),
        Prompt(PromptRequest),
        SetMode(SetSessionModeRequest),
        SetOption(SetSessionConfigOptionRequest),
    );
    let builder = builder.on_receive_notification(
        async move |cancel: CancelNotification, _connection| pass_on(&calls, Call::Cancel(cancel)),
        agent_client_protocol::on_receive_notification!(),
    );
    let served = builder.connect_with(transport, async |connection| {
        application(received, Peer { connection }).await;
        Ok(())
    });
    served.await.map_err(|error| {
        CliError::new(Exit::Unavailable, "the connection to the editor broke").because(error)
    })
}

/// The editor.
#[derive(Clone)]
pub struct Peer {
    connection: ConnectionTo<Client>,
}

impl Peer {
    pub fn update(&self, session: &SessionId, update: SessionUpdate) {
        let notification = SessionNotification::new(session.clone(), update);
        // An editor that is gone needs no updates; the journal has everything.
        let _gone = self.connection.send_notification(notification);
    }

    /// Asks the user. If the future is dropped, the editor is told that the question is withdrawn.
    pub async fn ask(
        &self,
        request: RequestPermissionRequest,
    ) -> Result<RequestPermissionOutcome, Error> {
        let answer = self.connection.send_request(request).block_task().await?;
        Ok(answer.outcome)
    }

    /// Asks the user to fill in a form, or to visit a page. If the future is dropped, the question is withdrawn.
    pub async fn elicit(
        &self,
        request: CreateElicitationRequest,
    ) -> Result<CreateElicitationResponse, Error> {
        self.connection.send_request(request).block_task().await
    }

    /// Waits until the editor has closed its end.
    pub async fn closed(&self) {
        self.connection.incoming_closed().await;
    }
}
