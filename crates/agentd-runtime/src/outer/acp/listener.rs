//! What a child of the Agent Client Protocol sends by itself.

use super::doubt::{Doubt, GIVEN_UP};
use super::history::History;
use super::rpc::{Arrived, Connection, Incoming, Waiter};
use super::served::Served;
use super::session::SessionFile;
use super::{Elicitations, Questions, locked};
use crate::outer::redact::Redacted;
use crate::outer::start;
use crate::outer::talk::{Pushed, Talk};
use agentd_core::mcp::QuestionReply;
use agentd_core::outer::acp::{self, Allowed, Capabilities, Costs, Updates};
use agentd_core::outer::{ChildEvent, Over};
use agentd_core::secrets::Secrets;
use agentd_process::task::Task;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::mpsc;
use uuid::Uuid;

/// How many questions a child may have at a time.
const MOST_QUESTIONS: usize = 100;
/// How many things it may want to know from the user at a time.
const MOST_ELICITATIONS: usize = 10;

/// Why a child was killed that reports more than a turn may have.
pub const TOO_MUCH: &str = "the agent's program was killed, because it said more in one turn than `limits.program_calls` and \
     `limits.program_bytes` allow";

pub struct Listener {
    /// Whether the session still works.
    pub doubt: Arc<Doubt>,
    pub file: SessionFile,
    pub talk: Arc<Talk>,
    pub task: Task,
    pub connection: Connection,
    /// What the child asks of its client.
    pub served: Served,
    /// What the child says counts.
    pub counts: Arc<AtomicBool>,
    pub questions: Questions,
    pub elicitations: Elicitations,
    /// The program, for users.
    pub program: String,
    pub secrets: Secrets,
    /// Set when the session has begun.
    pub capabilities: Arc<OnceLock<Capabilities>>,
    /// The turn whose prompt the child was given last. What it says belongs to no other turn.
    pub turn: Arc<AtomicU64>,
    /// What turns were charged for the session. Set before it begins, and changed here only from then on.
    pub costs: Arc<Mutex<Costs>>,
    /// What the child repeats of its history.
    pub history: Arc<History>,
}

impl Listener {
    pub async fn run(self, mut incoming: mpsc::Receiver<Arrived>) {
        let mut updates = Updates::default();
        let mut redacted = Redacted::new(&self.secrets);
        let mut pushed = Pushed::Fits;
        loop {
            start::until_room(&self.talk, &self.task).await;
            let Some(arrived) = incoming.recv().await else {
                break;
            };
            let before = *locked(&self.costs);
            updates.costs = before;
            let said = self.handle(arrived.message, &mut updates);
            for said in said.into_iter().flat_map(|said| redacted.pass(said)) {
                let is_cost = matches!(said, ChildEvent::Spent { cost: Some(_), .. });
                match self.say(said) {
                    Pushed::Fits if is_cost => updates.costs.charge(),
                    Pushed::Dropped if is_cost && !self.counts() => updates.costs.replayed(before),
                    Pushed::TooMuch if pushed == Pushed::Fits => {
                        pushed = Pushed::TooMuch;
                        drop(self.task.kill());
                    }
                    _ => {}
                }
            }
            *locked(&self.costs) = updates.costs;
        }
        self.connection.close();
        let (_, how) = start::ended_without_output(&self.task, &self.program).await;
        self.served.close().await;
        let how = match pushed {
            Pushed::TooMuch => TOO_MUCH.to_owned(),
            Pushed::Fits | Pushed::Dropped => how,
        };
        for said in redacted.finish().into_iter().chain([failed(how)]) {
            let _over = self.say(said);
        }
    }

    fn handle(&self, message: Incoming, updates: &mut Updates) -> Vec<ChildEvent> {
        match message {
            Incoming::Notification { method, params } if method == "session/update" => {
                let update = &params["update"];
                let said = updates.read_with(update, &|terminal| self.served.shown(terminal));
                match self.history.repeats(update, &said) {
                    true => Vec::new(),
                    false => said,
                }
            }
            Incoming::Notification { .. } => Vec::new(),
            Incoming::Answer { id, answer } => match self.connection.take_waiter(id) {
                Some(Waiter::Request(waiter)) => {
                    let _gone = waiter.send(answer);
                    Vec::new()
                }
                Some(Waiter::Session(waiter)) => {
                    let begun = answer.as_ref().ok();
                    let session = begun.and_then(|begun| begun["sessionId"].as_str());
                    if let Some(session) = session {
                        self.served.open(session);
                    }
                    let _gone = waiter.send(answer);
                    Vec::new()
                }
                Some(Waiter::None) => {
                    updates.begin_turn();
                    self.over(answer)
                }
                None => Vec::new(),
            },
            Incoming::Request { id, method, params } if method == "session/request_permission" => {
                self.asked(id, &params, updates)
            }
            Incoming::Request { id, method, params } if method == acp::ELICITATION => {
                self.elicits(id, &params).into_iter().collect()
            }
            Incoming::Request { id, method, params } => {
                self.served.take(id, &method, params, self.turn());
                Vec::new()
            }
        }
    }

    /// A permission request. A child that is not in a turn, or has too many questions, gets no permission.
    fn asked(&self, id: Value, params: &Value, updates: &mut Updates) -> Vec<ChildEvent> {
        let question = id.to_string();
        let Some(asks) = updates.asks(params, question.clone()) else {
            self.connection.refuse(&id, "the request names no call");
            return Vec::new();
        };
        let mut questions = locked(&self.questions);
        if !self.counts() || !self.talk.is_in(self.turn()) || questions.len() >= MOST_QUESTIONS {
            self.connection
                .refuse(&id, "there is no turn that could ask the user");
            return Vec::new();
        }
        let choice = |allowed| acp::choice(&params["options"], allowed);
        questions.insert(question, (id, choice(Allowed::Yes), choice(Allowed::No)));
        vec![asks]
    }

    /// A question to the user. It is declined if it cannot be shown, and cancelled if the child is not in a turn or has too
    /// many of them.
    fn elicits(&self, id: Value, request: &Value) -> Option<ChildEvent> {
        let Some(question) = acp::question(&self.program, request) else {
            let declined = acp::question_reply(&QuestionReply::Decline);
            self.connection.answer(&id, declined);
            return None;
        };
        let mut waiting = locked(&self.elicitations);
        if !self.counts() || !self.talk.is_in(self.turn()) || waiting.len() >= MOST_ELICITATIONS {
            self.connection.answer(&id, acp::question_cancelled());
            return None;
        }
        let call = format!("{}-{}", acp::ELICITATION_CALL, Uuid::now_v7());
        waiting.insert(call.clone(), id);
        Some(ChildEvent::Elicits { id: call, question })
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
                let unknown = Capabilities::default();
                let known = self.capabilities.get().unwrap_or(&unknown);
                let mut why = acp::failure("session/prompt", &error, known);
                if self.doubt.failed(&error) {
                    if let Err(error) = self.file.give_up() {
                        // It is tried again when the turn is recorded, and before the next prompt.
                        tracing::warn!(%error, "the session's file cannot be written");
                    }
                    why.push_str(GIVEN_UP);
                }
                vec![failed(why)]
            }
        }
    }

    fn say(&self, said: ChildEvent) -> Pushed {
        match self.counts() {
            true => self.talk.push_in(self.turn(), said),
            false => Pushed::Dropped,
        }
    }

    fn turn(&self) -> u64 {
        self.turn.load(Ordering::Acquire)
    }

    fn counts(&self) -> bool {
        self.counts.load(Ordering::Acquire)
    }
}

const fn failed(why: String) -> ChildEvent {
    ChildEvent::Over(Over::Failed(why))
}
