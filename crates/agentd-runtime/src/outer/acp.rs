//! An agent that speaks the Agent Client Protocol: JSON-RPC messages, one per line, over its stdin and stdout.

mod rpc;

use super::Outer;
use super::child::{Answer, CANCELLED, Child};
use super::start::{self, ChildOptions, How};
use super::talk::Talk;
use agentd_core::outer::acp::{self, Allowed, Capabilities, Updates};
use agentd_core::outer::{ChildEvent, Delivery, Over};
use agentd_core::spec::{ApprovalMode, Rule};
use agentd_process::task::Task;
use async_trait::async_trait;
use rpc::{Connection, Incoming, Waiter};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long the child may take to answer the requests that begin a session. A first start may download something.
const BEGIN_PATIENCE: Duration = Duration::from_secs(120);
/// How long it may take to close its session.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);
/// The file with the id of the conversation's session. It is not in the child's own home.
const SESSION: &str = "acp-session";

struct AcpChild {
    options: ChildOptions,
    /// The version of agentd.
    version: String,
    talk: Arc<Talk>,
    running: Mutex<Option<Arc<Running>>>,
}

struct Running {
    task: Task,
    connection: Connection,
    capabilities: Capabilities,
    session: String,
    /// The session knows nothing of the conversation yet.
    is_new: AtomicBool,
    /// The options of unanswered permission requests, by the id of the request.
    questions: Arc<Mutex<BTreeMap<String, (Value, Value)>>>,
    /// What it says counts: it is neither ended nor replaying its history.
    counts: Arc<AtomicBool>,
}

impl Outer {
    /// An agent whose program speaks the Agent Client Protocol.
    pub fn acp(
        options: ChildOptions,
        version: &str,
        rules: &[Rule],
        approval: ApprovalMode,
    ) -> Self {
        let talk = Arc::new(Talk::default());
        let child = AcpChild {
            options,
            version: version.to_owned(),
            talk: Arc::clone(&talk),
            running: Mutex::default(),
        };
        Self::new(Arc::new(child), talk, rules, approval)
    }
}

impl AcpChild {
    fn running(&self) -> Option<Arc<Running>> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.clone()
    }

    fn session_file(&self) -> PathBuf {
        self.options.dir.join(SESSION)
    }

    /// The running child, or a new one with its session.
    async fn connected(&self) -> Result<Arc<Running>, String> {
        if let Some(running) = self.running()
            && running.connection.is_open()
        {
            return Ok(running);
        }
        self.end(How::Kill).await;
        let attached = self.options.start(&[]).await?;
        let counts = Arc::new(AtomicBool::new(false));
        let questions = Arc::default();
        let known: Arc<OnceLock<Capabilities>> = Arc::default();
        let (connection, incoming) = rpc::connect(attached.stdin, attached.stdout);
        let listener = Listener {
            talk: Arc::clone(&self.talk),
            task: attached.task.clone(),
            connection: connection.clone(),
            counts: Arc::clone(&counts),
            questions: Arc::clone(&questions),
            secrets: self.options.secrets.clone(),
            capabilities: Arc::clone(&known),
        };
        tokio::spawn(listener.run(incoming));
        let begun = tokio::time::timeout(BEGIN_PATIENCE, self.begin(&connection)).await;
        let begun = begun.unwrap_or_else(|_| {
            let seconds = BEGIN_PATIENCE.as_secs();
            Err(format!(
                "the agent's program did not begin a session within {seconds} s"
            ))
        });
        let (capabilities, session, is_new) = match begun {
            Ok(begun) => begun,
            Err(mut why) => {
                if !connection.is_open() {
                    why = start::ended(&attached.task).await.1;
                }
                start::end(&attached.task, How::Kill).await;
                return Err(why);
            }
        };
        let _first = known.set(capabilities.clone());
        counts.store(true, Ordering::Release);
        let running = Arc::new(Running {
            task: attached.task,
            connection,
            capabilities,
            session,
            is_new: AtomicBool::new(is_new),
            questions,
            counts,
        });
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&running));
        Ok(running)
    }

    /// Initializes the connection, and resumes, loads or begins a session, as far as the child can.
    async fn begin(&self, connection: &Connection) -> Result<(Capabilities, String, bool), String> {
        let unknown = Capabilities::default();
        let hello = connection.request("initialize", acp::initialize(&self.version));
        let hello = hello.await;
        let hello = hello.map_err(|error| acp::failure("initialize", &error, &unknown))?;
        let capabilities = Capabilities::of(&hello);
        let cwd = self.options.cwd.display().to_string();
        let old = fs::read_to_string(self.session_file()).ok();
        let method = match (capabilities.resume, capabilities.load) {
            (true, _) => Some("session/resume"),
            (false, true) => Some("session/load"),
            (false, false) => None,
        };
        if let (Some(old), Some(method)) = (old, method) {
            let params = json!({"sessionId": old, "cwd": cwd, "mcpServers": []});
            match connection.request(method, params).await {
                Ok(_) => return Ok((capabilities, old, false)),
                Err(error) => tracing::warn!(%error, method, "the old session is not available"),
            }
        }
        let params = json!({"cwd": cwd, "mcpServers": []});
        let new = connection.request("session/new", params).await;
        let new = new.map_err(|error| acp::failure("session/new", &error, &capabilities))?;
        let session = new["sessionId"].as_str().unwrap_or_default().to_owned();
        // Durable before the first prompt: a session that had one is found again.
        self.keep_session(&session)
            .map_err(|error| format!("the session's id cannot be stored: {error}"))?;
        Ok((capabilities, session, true))
    }

    fn keep_session(&self, session: &str) -> io::Result<()> {
        let mut file = fs::File::create(self.session_file())?;
        file.write_all(session.as_bytes())?;
        file.sync_all()
    }

    async fn end(&self, how: How) {
        let running = self
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(running) = running else { return };
        running.counts.store(false, Ordering::Release);
        if how == How::Ask && running.capabilities.close && running.connection.is_open() {
            let params = json!({"sessionId": running.session});
            let closed = running.connection.request("session/close", params);
            let _late = tokio::time::timeout(CLOSE_PATIENCE, closed).await;
        }
        start::end(&running.task, how).await;
    }
}

#[async_trait]
impl Child for AcpChild {
    async fn deliver(&self, delivery: Delivery) -> Result<(), String> {
        let running = self.connected().await?;
        if !self.talk.is_in_turn() {
            return Err(CANCELLED.to_owned());
        }
        let is_new = running.is_new.swap(false, Ordering::AcqRel);
        let prompt = acp::prompt(&delivery, &running.capabilities, is_new);
        let params = json!({"sessionId": running.session, "prompt": prompt});
        // Its answer is the end of the turn: the listener handles it after everything that was said before.
        running
            .connection
            .send("session/prompt", params, Waiter::None);
        Ok(())
    }

    async fn interrupt(&self) {
        if let Some(running) = self.running() {
            let params = json!({"sessionId": running.session});
            running.connection.notify("session/cancel", params);
            let mut questions = running
                .questions
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            for (id, _) in std::mem::take(&mut *questions).into_values() {
                let cancelled = json!({"outcome": {"outcome": "cancelled"}});
                running.connection.answer(&id, cancelled);
            }
        }
    }

    async fn answer(&self, question: &str, answer: Answer) {
        let Some(running) = self.running() else {
            return;
        };
        let asked = {
            let mut questions = running
                .questions
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            questions.remove(question)
        };
        let Some((id, options)) = asked else { return };
        let allowed = match answer {
            Answer::Allow => Allowed::Yes,
            Answer::Deny => Allowed::No,
        };
        let outcome = match acp::choice(&options, allowed) {
            Some(option) => json!({"outcome": "selected", "optionId": option}),
            None => json!({"outcome": "cancelled"}),
        };
        running.connection.answer(&id, json!({"outcome": outcome}));
    }

    async fn kill(&self) {
        self.end(How::Kill).await;
    }

    async fn close(&self) {
        self.end(How::Ask).await;
    }
}

/// Handles what the child sends by itself.
struct Listener {
    talk: Arc<Talk>,
    task: Task,
    connection: Connection,
    counts: Arc<AtomicBool>,
    questions: Arc<Mutex<BTreeMap<String, (Value, Value)>>>,
    secrets: agentd_core::secrets::Secrets,
    /// Set when the session has begun.
    capabilities: Arc<OnceLock<Capabilities>>,
}

impl Listener {
    async fn run(self, mut incoming: mpsc::UnboundedReceiver<Incoming>) {
        let mut updates = Updates::default();
        while let Some(message) = incoming.recv().await {
            match message {
                Incoming::Notification { method, params } if method == "session/update" => {
                    let params = self.secrets.redact_json(params);
                    self.say(updates.read(&params["update"]));
                }
                Incoming::Notification { .. } => {}
                Incoming::Answer { id, answer } => match self.connection.take_waiter(id) {
                    Some(Waiter::Request(waiter)) => {
                        let _gone = waiter.send(answer);
                    }
                    Some(Waiter::None) => self.say(self.over(answer)),
                    None => {}
                },
                Incoming::Request { id, method, params }
                    if method == "session/request_permission" =>
                {
                    let question = id.to_string();
                    let params = self.secrets.redact_json(params);
                    match updates.asks(&params, question.clone()) {
                        Some(asks) => {
                            self.questions
                                .lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .insert(question, (id, params["options"].clone()));
                            self.say(vec![asks]);
                        }
                        None => self.connection.refuse(&id, "the request names no call"),
                    }
                }
                Incoming::Request { id, method, .. } => {
                    let why = format!(
                        "agentd does not serve `{method}`: the agent runs in its own sandbox; use its own tools"
                    );
                    self.connection.refuse(&id, &why);
                }
            }
        }
        self.connection.close();
        let (_, how) = start::ended(&self.task).await;
        self.say(vec![ChildEvent::Over(Over::Failed(how))]);
    }

    /// The answer to a prompt.
    fn over(&self, answer: Result<Value, Value>) -> Vec<ChildEvent> {
        match answer {
            Ok(answer) => {
                let spent = acp::spent(&answer, None);
                let over = ChildEvent::Over(acp::over(&answer));
                spent.into_iter().chain([over]).collect()
            }
            Err(error) => {
                let error = self.secrets.redact_json(error);
                let unknown = Capabilities::default();
                let known = self.capabilities.get().unwrap_or(&unknown);
                let why = acp::failure("session/prompt", &error, known);
                vec![ChildEvent::Over(Over::Failed(why))]
            }
        }
    }

    fn say(&self, said: Vec<ChildEvent>) {
        for said in said {
            if self.counts.load(Ordering::Acquire) {
                self.talk.push(said);
            }
        }
    }
}
