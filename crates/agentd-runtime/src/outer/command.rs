//! A program that reads prompts and writes text or JSON lines.

mod frame;

use super::Outer;
use super::acp::TOO_MUCH;
use super::child::{Answer, CANCELLED, Child};
use super::redact::Redacted;
use super::start::{self, ChildOptions, How};
use super::talk::{Pushed, Talk};
use agentd_core::outer::{ChildEvent, Delivery, Lines, Over};
use agentd_core::spec::{ApprovalMode, Rule};
use agentd_process::Redactor;
use agentd_process::task::Task;
use async_trait::async_trait;
use serde_json::json;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::mpsc;

const CHUNK: usize = 64 * 1024;

/// How the program is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// It is started for each turn, with the prompt as its whole input. Its end is the end of the turn.
    PerTurn,
    /// It runs for all turns. Prompts end with a NUL.
    Lasting,
    /// The same, with the flags and frames of `agentd agent`.
    Agent(Contract),
}

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
    /// What it says counts. False when it is ended: another one may run then.
    counts: Arc<AtomicBool>,
    /// Its output has ended, and the turn knows how it ended. If its shim was killed, its files do not say so.
    is_over: Arc<AtomicBool>,
}

impl Outer {
    /// An agent whose program is a command.
    pub fn command(
        options: ChildOptions,
        form: Form,
        rules: &[Rule],
        approval: ApprovalMode,
    ) -> Self {
        let talk = Arc::new(Talk::default());
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
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.as_ref().map(|running| running.task.clone())
    }

    fn take(&self) -> Option<Running> {
        self.running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn write(&self, bytes: Vec<u8>) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let input = running.as_ref().and_then(|running| running.input.as_ref());
        input.is_some_and(|input| input.send(bytes).is_ok())
    }

    fn args(&self) -> Vec<String> {
        let Form::Agent(contract) = &self.form else {
            return Vec::new();
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

    /// Starts the program if it does not run.
    async fn started(&self) -> Result<(), String> {
        if self.task().is_some() {
            return Ok(());
        }
        let attached = self.options.start(&self.args()).await?;
        let (input, writes) = mpsc::unbounded_channel();
        let counts = Arc::new(AtomicBool::new(true));
        let is_over = Arc::new(AtomicBool::new(false));
        // A program that runs once for each turn need not read its input.
        let must_read = (self.form != Form::PerTurn).then(|| attached.task.clone());
        tokio::spawn(write_all(must_read, attached.stdin, writes));
        tokio::spawn(read_all(Reader {
            stdout: attached.stdout,
            task: attached.task.clone(),
            talk: Arc::clone(&self.talk),
            redactor: Redactor::new(&self.options.secrets.values()),
            redacted: Redacted::new(&self.options.secrets),
            pushed: Pushed::Fits,
            is_per_turn: self.form == Form::PerTurn,
            counts: Arc::clone(&counts),
            is_over: Arc::clone(&is_over),
        }));
        let running = Running {
            task: attached.task,
            input: Some(input),
            counts,
            is_over,
        };
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
        Ok(())
    }

    async fn end(&self, how: How) {
        if let Some(running) = self.take() {
            running.counts.store(false, Ordering::Release);
            drop(running.input);
            start::end(&running.task, how).await;
        }
    }

    /// Forgets a program that has ended.
    async fn forget_ended(&self) {
        if self.has_ended() {
            self.end(How::Kill).await;
        }
    }

    fn has_ended(&self) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.as_ref().is_some_and(|running| {
            let dir = running.task.dir();
            running.is_over.load(Ordering::Acquire) || dir.join("exit").exists() || !dir.exists()
        })
    }
}

#[async_trait]
impl Child for CommandChild {
    async fn deliver(&self, turn: u64, delivery: Delivery) -> Result<(), String> {
        match self.form {
            // The one of the previous turn may have left the turn before its end.
            Form::PerTurn => self.end(How::Ask).await,
            Form::Lasting | Form::Agent(_) => self.forget_ended().await,
        }
        let frame = match self.form {
            Form::PerTurn => frame::text(&delivery).into_bytes(),
            Form::Lasting => frame::ended(frame::text(&delivery)),
            Form::Agent(_) => frame::ended(frame::object(&delivery).to_string()),
        };
        self.started().await?;
        if !self.talk.is_in(turn) {
            if self.form == Form::PerTurn {
                self.end(How::Kill).await;
            }
            return Err(CANCELLED.to_owned());
        }
        self.write(frame);
        if self.form == Form::PerTurn {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(running) = running.as_mut() {
                running.input = None;
            }
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

struct Reader {
    stdout: Receiver,
    task: Task,
    talk: Arc<Talk>,
    /// Removes secrets from the output as it is, and then from what its lines mean: JSON may hide them.
    redactor: Redactor,
    redacted: Redacted,
    is_per_turn: bool,
    counts: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    pushed: Pushed,
}

impl Reader {
    fn say(&mut self, said: impl IntoIterator<Item = ChildEvent>) {
        let said = said.into_iter();
        let clean: Vec<ChildEvent> = said.flat_map(|said| self.redacted.pass(said)).collect();
        self.pass_on(clean);
    }

    fn pass_on(&mut self, said: impl IntoIterator<Item = ChildEvent>) {
        for said in said {
            if self.counts.load(Ordering::Acquire)
                && self.talk.push(said) == Pushed::TooMuch
                && self.pushed == Pushed::Fits
            {
                self.pushed = Pushed::TooMuch;
                drop(self.task.kill());
            }
        }
    }

    /// Passes on what was held back: the output has ended.
    fn finish(&mut self) {
        let held = self.redacted.finish();
        self.pass_on(held);
    }
}

/// Reads what the program says until it ends, and says how it ended.
async fn read_all(mut reader: Reader) {
    let (mut lines, mut chunk) = (Lines::default(), vec![0; CHUNK]);
    let mut clean = Vec::new();
    loop {
        match reader.stdout.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(length) => reader.redactor.push(&chunk[..length], &mut clean),
        }
        let said = lines.push(&clean);
        reader.say(said);
        clean.clear();
    }
    reader.redactor.finish(&mut clean);
    let said = lines.push(&clean);
    reader.say(said);
    let said = lines.finish();
    reader.say(said);
    reader.finish();
    // Before the directory of the run is removed.
    let (code, how) = start::ended(&reader.task).await;
    reader.is_over.store(true, Ordering::Release);
    let over = match (reader.pushed, reader.is_per_turn, code) {
        (Pushed::TooMuch, _, _) => Over::Failed(TOO_MUCH.to_owned()),
        (Pushed::Fits, true, Some(0)) => Over::Answered,
        _ => Over::Failed(how),
    };
    // A program that ends between two turns is started again with the next one.
    reader.say([ChildEvent::Over(over)]);
}
