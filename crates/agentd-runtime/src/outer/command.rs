//! A program that reads prompts and writes text or JSON lines.

mod frame;
mod reader;

use super::Outer;
use super::child::{Answer, CANCELLED, Child};
use super::redact::Redacted;
use super::start::{self, ChildOptions, How};
use super::talk::{Pushed, Talk};
use agentd_core::outer::Delivery;
use agentd_core::spec::{ApprovalMode, Rule};
use agentd_process::Redactor;
use agentd_process::task::Task;
use async_trait::async_trait;
use reader::{Reader, read_all};
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Sender;
use tokio::sync::mpsc;

/// How the program is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// It is started for each turn, with the prompt as its whole input. Its end is the end of the turn.
    PerTurn(TurnArgs),
    /// It runs for all turns. Prompts end with a NUL.
    Lasting,
    /// The same, with the flags and frames of `agentd agent`.
    Agent(Contract),
}

/// What a program that is started for each turn gets after its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnArgs {
    /// Until a turn of the conversation has succeeded: the program knows nothing of it.
    pub first: Vec<String>,
    pub later: Vec<String>,
}

/// The file in the directory of a conversation that says that a turn has succeeded. The program does not see it.
const HAS_SUCCEEDED: &str = "turn-succeeded";

/// What the contract of `agentd agent` needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    pub flags: Vec<String>,
    /// The checkpoint directory, as the program sees it.
    pub checkpoint: PathBuf,
    /// Its session file, as this process sees it.
    pub session: PathBuf,
}

/// The file in the checkpoint directory that `--resume` names.
pub const SESSION: &str = "session-latest.json";

struct CommandChild {
    options: ChildOptions,
    form: Form,
    talk: Arc<Talk>,
    running: Mutex<Option<Running>>,
}

struct Running {
    task: Task,
    /// What is to be written to its stdin. Dropping it closes the stdin.
    input: Option<mpsc::UnboundedSender<Vec<u8>>>,
    used: Arc<Mutex<Used>>,
}

/// How a process of the program is used. Its reader shares it.
struct Used {
    /// The turn that it was started for, or whose prompt it was given last. What it says belongs to no other turn.
    turn: u64,
    /// The delivery that it was started for, or given last.
    delivery: String,
    /// Its output has ended: it is given no more prompts. If its shim was killed, its files do not say so.
    is_over: bool,
    /// What it says counts. False when it is ended: another one may run then.
    counts: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Outer {
    /// An agent whose program is a command.
    pub fn command(
        options: ChildOptions,
        form: Form,
        rules: &[Rule],
        approval: ApprovalMode,
    ) -> Self {
        let talk = Arc::new(Talk::new(options.bounds));
        let child = CommandChild {
            options,
            form,
            talk: Arc::clone(&talk),
            running: Mutex::default(),
        };
        Self::new(Arc::new(child), talk, rules, approval)
    }
}

impl CommandChild {
    fn task(&self) -> Option<Task> {
        let running = locked(&self.running);
        running.as_ref().map(|running| running.task.clone())
    }

    fn take(&self) -> Option<Running> {
        locked(&self.running).take()
    }

    fn write(&self, bytes: Vec<u8>) -> bool {
        let running = locked(&self.running);
        let input = running.as_ref().and_then(|running| running.input.as_ref());
        input.is_some_and(|input| input.send(bytes).is_ok())
    }

    /// Gives the prompt of this turn to the program. False if it has ended: nothing was delivered then, and its end does not
    /// end this turn.
    fn give(&self, turn: u64, id: &str, frame: Vec<u8>) -> bool {
        let running = locked(&self.running);
        let Some(running) = running.as_ref() else {
            return false;
        };
        let mut used = locked(&running.used);
        let input = running.input.as_ref().filter(|_| !used.is_over);
        let is_given = input.is_some_and(|input| input.send(frame).is_ok());
        if is_given {
            used.turn = turn;
            used.delivery = id.to_owned();
        }
        is_given
    }

    fn args(&self) -> Vec<String> {
        let contract = match &self.form {
            Form::Agent(contract) => contract,
            Form::Lasting => return Vec::new(),
            Form::PerTurn(args) => {
                return match self.options.dir.join(HAS_SUCCEEDED).exists() {
                    true => args.later.clone(),
                    false => args.first.clone(),
                };
            }
        };
        let checkpoint = contract.checkpoint.display().to_string();
        let mut args = vec![
            "--json".to_owned(),
            "--checkpoint-dir".to_owned(),
            checkpoint.clone(),
        ];
        if contract.session.is_file() {
            args.extend(["--resume".to_owned(), format!("{checkpoint}/{SESSION}")]);
        }
        args.extend(contract.flags.iter().cloned());
        args
    }

    /// Starts the program for this turn if it does not run.
    async fn started(&self, turn: u64, delivery: &str) -> Result<Start, String> {
        if self.task().is_some() {
            return Ok(Start::Earlier);
        }
        let attached = self.options.start(&self.args()).await?;
        let (input, writes) = mpsc::unbounded_channel();
        let used = Arc::new(Mutex::new(Used {
            turn,
            // From the start: it may continue an earlier turn before it is given the prompt.
            delivery: delivery.to_owned(),
            is_over: false,
            counts: true,
        }));
        // A program that runs once for each turn need not read its input.
        let must_read = (!self.is_per_turn()).then(|| attached.task.clone());
        tokio::spawn(write_all(must_read, attached.stdin, writes));
        tokio::spawn(read_all(Reader {
            stdout: attached.stdout,
            task: attached.task.clone(),
            program: self.options.name(),
            talk: Arc::clone(&self.talk),
            redactor: Redactor::new(&self.options.secrets.values()),
            redacted: Redacted::new(&self.options.secrets),
            pushed: Pushed::Fits,
            succeeded: self
                .is_per_turn()
                .then(|| self.options.dir.join(HAS_SUCCEEDED)),
            is_contract: matches!(self.form, Form::Agent(_)),
            used: Arc::clone(&used),
        }));
        let running = Running {
            task: attached.task,
            input: Some(input),
            used,
        };
        *locked(&self.running) = Some(running);
        Ok(Start::Now)
    }

    async fn end(&self, how: How) {
        if let Some(running) = self.take() {
            locked(&running.used).counts = false;
            drop(running.input);
            start::end(&running.task, how).await;
        }
    }

    /// An error if the turn was cancelled while the program was being started.
    async fn check_turn(&self, turn: u64) -> Result<(), String> {
        if self.talk.is_in(turn) {
            return Ok(());
        }
        if self.is_per_turn() {
            self.end(How::Kill).await;
        }
        Err(CANCELLED.to_owned())
    }

    /// Forgets a program that has ended.
    async fn forget_ended(&self) {
        if self.has_ended() {
            self.end(How::Kill).await;
        }
    }

    const fn is_per_turn(&self) -> bool {
        matches!(self.form, Form::PerTurn(_))
    }

    fn has_ended(&self) -> bool {
        let running = locked(&self.running);
        running.as_ref().is_some_and(|running| {
            let dir = running.task.dir();
            let is_over = locked(&running.used).is_over;
            is_over || dir.join("exit").exists() || !dir.exists()
        })
    }
}

/// When the running program was started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    Now,
    /// For an earlier turn.
    Earlier,
}

#[async_trait]
impl Child for CommandChild {
    async fn deliver(&self, turn: u64, delivery: Delivery) -> Result<(), String> {
        match self.form {
            // The one of the previous turn may have left the turn before its end.
            Form::PerTurn(_) => self.end(How::Ask).await,
            Form::Lasting | Form::Agent(_) => self.forget_ended().await,
        }
        let frame = match self.form {
            Form::PerTurn(_) => frame::text(&delivery).into_bytes(),
            Form::Lasting => frame::ended(frame::text(&delivery)),
            Form::Agent(_) => frame::ended(frame::object(&delivery).to_string()),
        };
        let started = self.started(turn, &delivery.id).await?;
        self.check_turn(turn).await?;
        // The end of one that was started now is the end of the turn.
        if !self.give(turn, &delivery.id, frame.clone()) && started == Start::Earlier {
            self.end(How::Kill).await;
            self.started(turn, &delivery.id).await?;
            self.check_turn(turn).await?;
            self.give(turn, &delivery.id, frame);
        }
        if self.is_per_turn()
            && let Some(running) = locked(&self.running).as_mut()
        {
            running.input = None;
        }
        Ok(())
    }

    async fn interrupt(&self) {
        if let Some(task) = self.task()
            && let Err(error) = task.interrupt()
        {
            tracing::warn!(%error, "the agent's program cannot be interrupted");
        }
    }

    async fn answer(&self, question: &str, answer: Answer) {
        let decision = match answer {
            Answer::Allow => "allow",
            Answer::Deny => "deny",
        };
        let answer = json!({"v": 1, "approval": question, "decision": decision});
        self.write(frame::ended(answer.to_string()));
    }

    async fn kill(&self) {
        self.end(How::Kill).await;
    }

    async fn close(&self) {
        self.end(How::Ask).await;
    }
}

/// Writes until the queue is closed, then closes the stdin. A program that does not read blocks only this task. One that
/// must read and has closed its stdin is killed: it would never answer.
async fn write_all(
    must_read: Option<Task>,
    mut stdin: Sender,
    mut writes: mpsc::UnboundedReceiver<Vec<u8>>,
) {
    while let Some(bytes) = writes.recv().await {
        if stdin.write_all(&bytes).await.is_err() {
            drop(must_read.map(|task| task.kill()));
            return;
        }
    }
}
