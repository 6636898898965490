//! An agent that speaks the Agent Client Protocol: JSON-RPC messages, one per line, over its stdin and stdout.

mod begin;
mod doubt;
mod files;
mod history;
mod listener;
mod rpc;
mod served;
mod session;
mod terminals;
pub mod worker;

use super::Outer;
use super::child::{Answer, CANCELLED, Child};
use super::start::{self, ChildOptions, How};
use super::talk::Talk;
use agentd_core::mcp::{QuestionReply, Server};
use agentd_core::outer::Delivery;
use agentd_core::outer::acp::{self, Capabilities, Costs};
use agentd_core::spec::{ApprovalMode, Rule};
use agentd_process::task::Task;
use async_trait::async_trait;
use begin::Before;
use doubt::{Doubt, Prompted};
use history::History;
use listener::Listener;
pub use listener::TOO_MUCH;
use rpc::{Closed, Connection, Waiter};
use serde_json::{Value, json};
use served::Served;
use session::{Kept, SessionFile};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How long the child may take to answer the requests that begin a session. A first start may download something.
const BEGIN_PATIENCE: Duration = Duration::from_secs(120);
/// How long it may take to close its session.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);
/// The unanswered permission requests of a child: their ids, and the options that mean yes and no, by our name of the
/// question.
type Questions = Arc<Mutex<BTreeMap<String, (Value, Option<String>, Option<String>)>>>;
/// The ids of the unanswered requests of a child to know something from the user, by the calls that record them.
type Elicitations = Arc<Mutex<BTreeMap<String, Value>>>;

struct AcpChild {
    options: ChildOptions,
    /// The version of agentd.
    version: String,
    /// The MCP servers that each session is given. They contain secrets.
    servers: Vec<Server>,
    talk: Arc<Talk>,
    /// Whether the session still works.
    doubt: Arc<Doubt>,
    running: Mutex<Option<Arc<Running>>>,
    /// A child whose session has not begun yet, and what runs for it.
    starting: Mutex<Option<(Task, Served)>>,
}

struct Running {
    task: Task,
    connection: Connection,
    /// What runs for it: the process for its files, and its terminals.
    served: Served,
    capabilities: Capabilities,
    session: String,
    /// The session knows nothing of the conversation yet.
    is_new: AtomicBool,
    /// The turn that it was started for, or whose prompt it was given last.
    turn: Arc<AtomicU64>,
    /// What turns were charged for it.
    costs: Arc<Mutex<Costs>>,
    questions: Questions,
    elicitations: Elicitations,
    /// What it says counts: it is neither ended nor being started.
    counts: Arc<AtomicBool>,
    /// What it repeats of its history.
    history: Arc<History>,
}

impl Outer {
    /// An agent whose program speaks the Agent Client Protocol.
    pub fn acp(
        options: ChildOptions,
        version: &str,
        servers: Vec<Server>,
        rules: &[Rule],
        approval: ApprovalMode,
    ) -> Self {
        let talk = Arc::new(Talk::new(options.bounds));
        let child = AcpChild {
            options,
            version: version.to_owned(),
            servers,
            talk: Arc::clone(&talk),
            doubt: Arc::default(),
            running: Mutex::default(),
            starting: Mutex::default(),
        };
        Self::new(Arc::new(child), talk, rules, approval)
    }
}

impl AcpChild {
    fn running(&self) -> Option<Arc<Running>> {
        locked(&self.running).clone()
    }

    fn session_file(&self) -> SessionFile {
        SessionFile::new(&self.options.dir)
    }

    /// Stores what is known of the session. Without it the next process tells the session more than it needs, or charges a
    /// cost twice.
    fn keep(&self, running: &Running) {
        let before = self.session_file().read();
        let same = before.clone().filter(|it| it.session == running.session);
        let known = same.unwrap_or_else(|| Kept::after(running.session.clone(), before.clone()));
        let kept = Kept {
            prompted: !running.is_new.load(Ordering::Acquire),
            charged: locked(&running.costs).charged(),
            given_up: known.given_up || self.doubt.is_given_up(),
            ..known
        };
        if before.as_ref() != Some(&kept)
            && let Err(error) = self.session_file().write(&kept)
        {
            tracing::warn!(%error, "the session's file cannot be written");
        }
    }

    /// The running child, or a new one with its session. An error if the turn is cancelled meanwhile.
    async fn connected(&self, turn: u64, replies: &[String]) -> Result<Arc<Running>, String> {
        if self.doubt.is_given_up() {
            self.end(How::Ask).await;
            let given_up = self.session_file().give_up();
            given_up.map_err(|error| format!("the session cannot be given up: {error}"))?;
            self.doubt.clear();
        }
        if let Some(running) = self.running()
            && running.connection.is_open()
        {
            return Ok(running);
        }
        self.end(How::Kill).await;
        let attached = self.options.start(&[]).await?;
        let task = attached.task.clone();
        let (connection, incoming) = rpc::connect(&task, attached.stdin, attached.stdout);
        let served = Served::new(&self.options, connection.clone());
        *locked(&self.starting) = Some((task.clone(), served.clone()));
        if !self.talk.is_in(turn) {
            // The cancellation came before there was a task to kill.
            self.end(How::Kill).await;
            return Err(CANCELLED.to_owned());
        }
        let counts = Arc::new(AtomicBool::new(false));
        let questions = Questions::default();
        let elicitations = Elicitations::default();
        let known: Arc<OnceLock<Capabilities>> = Arc::default();
        let used_in = Arc::new(AtomicU64::new(turn));
        let kept = self.session_file().read();
        let charged = kept.as_ref().and_then(|kept| kept.charged);
        let costs = Arc::new(Mutex::new(Costs::after(charged)));
        let history = Arc::new(History::default());
        let listener = Listener {
            served: served.clone(),
            doubt: Arc::clone(&self.doubt),
            file: self.session_file(),
            talk: Arc::clone(&self.talk),
            task: task.clone(),
            connection: connection.clone(),
            counts: Arc::clone(&counts),
            questions: Arc::clone(&questions),
            elicitations: Arc::clone(&elicitations),
            program: self.options.name(),
            secrets: self.options.secrets.clone(),
            capabilities: Arc::clone(&known),
            turn: Arc::clone(&used_in),
            costs: Arc::clone(&costs),
            history: Arc::clone(&history),
        };
        tokio::spawn(listener.run(incoming));
        let before = Before {
            kept,
            costs: &costs,
            history: &history,
            replies,
        };
        let begin = self.begin(&connection, &served, before);
        let begun = tokio::time::timeout(BEGIN_PATIENCE, begin).await;
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
                    why = start::ended(&task, &self.options.name()).await.1;
                }
                start::end(&task, How::Kill).await;
                served.close().await;
                locked(&self.starting).take();
                return Err(self.options.secrets.redact(&why));
            }
        };
        let _first = known.set(capabilities.clone());
        counts.store(true, Ordering::Release);
        let running = Arc::new(Running {
            task,
            connection,
            served,
            capabilities,
            session,
            is_new: AtomicBool::new(is_new),
            turn: used_in,
            costs,
            questions,
            elicitations,
            counts,
            history,
        });
        *locked(&self.running) = Some(Arc::clone(&running));
        locked(&self.starting).take();
        Ok(running)
    }

    async fn end(&self, how: How) {
        let starting = locked(&self.starting).take();
        if let Some((task, served)) = starting {
            start::end(&task, How::Kill).await;
            served.close().await;
        }
        let running = locked(&self.running).take();
        let Some(running) = running else { return };
        running.counts.store(false, Ordering::Release);
        if how == How::Ask && running.capabilities.close && running.connection.is_open() {
            let params = json!({"sessionId": running.session});
            let closed = running.connection.request("session/close", params);
            let _late = tokio::time::timeout(CLOSE_PATIENCE, closed).await;
        }
        start::end(&running.task, how).await;
        running.served.close().await;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Child for AcpChild {
    async fn deliver(&self, turn: u64, delivery: Delivery) -> Result<(), String> {
        let running = self.connected(turn, &delivery.replies).await?;
        let is_after_cut = delivery.is_after_cut && !running.is_new.load(Ordering::Acquire);
        self.doubt.prompted(match is_after_cut {
            true => Prompted::AfterCut,
            false => Prompted::AsUsual,
        });
        if !self.talk.is_in(turn) {
            return Err(CANCELLED.to_owned());
        }
        let is_new = running.is_new.load(Ordering::Acquire);
        let prompt = acp::prompt(&delivery, &running.capabilities, is_new);
        let params = json!({"sessionId": running.session, "prompt": prompt});
        running.turn.store(turn, Ordering::Release);
        running.history.prompted(&prompt);
        // Its answer is the end of the turn: the listener handles it after everything that was said before.
        let sent = running
            .connection
            .send("session/prompt", params, Waiter::None);
        match sent {
            Ok(()) => {
                if running.is_new.swap(false, Ordering::AcqRel) {
                    self.keep(&running);
                }
                Ok(())
            }
            Err(Closed) => Err(start::ended(&running.task, &self.options.name()).await.1),
        }
    }

    async fn interrupt(&self) {
        // Nothing was delivered to a child whose session has not begun.
        let starting = locked(&self.starting).clone();
        if let Some((task, _)) = starting {
            drop(task.kill());
        }
        if let Some(running) = self.running() {
            let params = json!({"sessionId": running.session});
            running.connection.notify("session/cancel", params);
            let questions = std::mem::take(&mut *locked(&running.questions));
            for (id, ..) in questions.into_values() {
                let cancelled = json!({"outcome": {"outcome": "cancelled"}});
                running.connection.answer(&id, cancelled);
            }
            let elicitations = std::mem::take(&mut *locked(&running.elicitations));
            for id in elicitations.into_values() {
                running.connection.answer(&id, acp::question_cancelled());
            }
        }
    }

    async fn interrupted(&self, turn: u64) {
        if let Some(running) = self.running() {
            running.served.end_turn(turn);
        }
    }

    async fn answer(&self, question: &str, answer: Answer) {
        let Some(running) = self.running() else {
            return;
        };
        let asked = locked(&running.questions).remove(question);
        let Some((id, yes, no)) = asked else { return };
        let option = match answer {
            Answer::Allow => yes,
            Answer::Deny => no,
        };
        let outcome = match option {
            Some(option) => json!({"outcome": "selected", "optionId": option}),
            None => json!({"outcome": "cancelled"}),
        };
        running.connection.answer(&id, json!({"outcome": outcome}));
    }

    async fn reply(&self, call: &str, reply: QuestionReply) {
        let Some(running) = self.running() else {
            return;
        };
        let asked = locked(&running.elicitations).remove(call);
        if let Some(id) = asked {
            running.connection.answer(&id, acp::question_reply(&reply));
        }
    }

    async fn turn_recorded(&self) {
        if let Some(running) = self.running() {
            self.keep(&running);
        }
    }

    async fn kill(&self) {
        self.end(How::Kill).await;
    }

    async fn close(&self) {
        self.end(How::Ask).await;
    }
}
