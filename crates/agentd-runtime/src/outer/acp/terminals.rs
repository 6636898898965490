//! The terminals of a child: commands that run for it, in its sandbox, and end with it.

mod kept;

use super::locked;
use crate::outer::start::ChildOptions;
use agentd_core::outer::acp::{
    NewTerminal, Refusal, TerminalCommand, TerminalExit, TerminalOutput,
};
use agentd_process::task::{Exit, Found, Order, Task};
use kept::Kept;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// How many commands a child may run at a time, and how many terminals whose command has ended are kept.
const MOST_TERMINALS: u32 = 16;
/// Runs a program with its errors in its output. The shell looks for it in `PATH`, as the sandbox sees it.
const TOGETHER: &str = "exec \"$0\" \"$@\" 2>&1";
/// The exit code of a command that could not be started, as shells have it.
const NOT_STARTED: i32 = 126;
/// SIGKILL.
const KILLED: i32 = 9;
/// How long killed commands may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much of its output is recorded with a call.
const MOST_SHOWN: usize = 256 * 1024;
/// Bytes that are read at once.
const CHUNK: usize = 16 * 1024;
/// What a pipe holds at most.
const PIPE: usize = 1024 * 1024;

pub struct Terminals {
    options: ChildOptions,
    /// One permit for each command that runs. Its process has ended when the permit is free again.
    running: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The child has ended.
    is_closed: bool,
    /// The number of the newest terminal.
    newest: u64,
    /// The turn that was interrupted last. A command of it, or of a turn before it, that starts later is ended too.
    interrupted: Option<u64>,
    /// In the order of their creation.
    open: Vec<Arc<Terminal>>,
    /// Those that were released last: a call may still show them.
    released: Vec<Arc<Terminal>>,
}

struct Terminal {
    id: String,
    /// The turn that it was created in.
    turn: u64,
    task: Task,
    kept: Mutex<Kept>,
    /// How the command ended; `None` while it runs.
    exit: watch::Sender<Option<TerminalExit>>,
}

impl Terminals {
    pub fn new(options: &ChildOptions) -> Self {
        Self {
            options: options.clone(),
            running: Arc::new(Semaphore::new(MOST_TERMINALS as usize)),
            state: Mutex::default(),
        }
    }

    /// Starts a command. Returns the id of its terminal.
    pub async fn create(&self, new: NewTerminal, turn: u64) -> Result<String, Refusal> {
        let running = Arc::clone(&self.running).try_acquire_owned();
        let Ok(running) = running else {
            return Err(Refusal::failed(format!(
                "{MOST_TERMINALS} terminals run already; wait for one of them, or kill or release one"
            )));
        };
        if locked(&self.state).is_closed {
            return Err(ended());
        }
        let output_bytes = new.output_bytes;
        let attached = self.options.attach(self.order(new)).await;
        let attached = attached
            .map_err(|error| Refusal::failed(format!("the command cannot be started: {error}")))?;
        // The command has no input.
        drop(attached.stdin);
        let mut state = locked(&self.state);
        state.newest += 1;
        let terminal = Arc::new(Terminal {
            id: format!("terminal-{}", state.newest),
            turn,
            task: attached.task,
            kept: Mutex::new(Kept::new(output_bytes)),
            exit: watch::Sender::new(None),
        });
        tokio::spawn(follow(Arc::clone(&terminal), attached.stdout, running));
        if state.is_closed {
            drop(terminal.task.kill());
            return Err(ended());
        }
        state.add(Arc::clone(&terminal));
        if state.interrupted.is_some_and(|last| turn <= last) {
            // The interrupt came while it was being started.
            drop(terminal.task.stop());
        }
        Ok(terminal.id.clone())
    }

    fn order(&self, new: NewTerminal) -> Order {
        let words = match new.command {
            TerminalCommand::Line(line) => vec![shell().to_owned(), "-c".to_owned(), line],
            TerminalCommand::Program { program, args } => {
                [program].into_iter().chain(args).collect()
            }
        };
        let args = ["-c".to_owned(), TOGETHER.to_owned()];
        let args = args.into_iter().chain(words).collect();
        let mut order = self.options.order(PathBuf::from("/bin/sh"), args);
        order.env.extend(new.env);
        if let Some(cwd) = new.cwd {
            order.cwd = PathBuf::from(cwd);
        }
        order
    }

    fn find(&self, id: &str) -> Result<Arc<Terminal>, Refusal> {
        let state = locked(&self.state);
        let found = state.open.iter().find(|terminal| terminal.id == id);
        found.cloned().ok_or_else(|| unknown(id))
    }

    pub fn output(&self, id: &str) -> Result<TerminalOutput, Refusal> {
        Ok(self.find(id)?.output())
    }

    /// Waits until the command has ended.
    pub async fn wait_for_exit(&self, id: &str) -> Result<TerminalExit, Refusal> {
        let terminal = self.find(id)?;
        let mut exit = terminal.exit.subscribe();
        let ended = exit.wait_for(Option::is_some).await;
        // The terminal is held here, and with it the sender.
        let exit = ended.ok().and_then(|exit| *exit);
        exit.ok_or_else(|| unknown(id))
    }

    /// Ends the command: SIGTERM first, SIGKILL after the grace. The terminal stays.
    pub fn kill(&self, id: &str) -> Result<(), Refusal> {
        drop(self.find(id)?.task.stop());
        Ok(())
    }

    /// Kills the command, and forgets the terminal.
    pub fn release(&self, id: &str) -> Result<(), Refusal> {
        let mut state = locked(&self.state);
        let found = state.open.iter().position(|terminal| terminal.id == id);
        let terminal = state.open.remove(found.ok_or_else(|| unknown(id))?);
        if !terminal.has_ended() {
            drop(terminal.task.kill());
        }
        state.released.push(terminal);
        let most = MOST_TERMINALS as usize;
        let old = state.released.len().saturating_sub(most);
        state.released.drain(..old);
        Ok(())
    }

    /// The newest lines that a terminal shows, or has shown when it was released.
    pub fn shown(&self, id: &str) -> Option<String> {
        let state = locked(&self.state);
        let mut all = state.open.iter().chain(&state.released);
        let terminal = all.find(|terminal| terminal.id == id).cloned();
        drop(state);
        Some(locked(&terminal?.kept).lines(MOST_SHOWN))
    }

    /// A turn was interrupted: ends what it began and the child has not ended, and what it still begins.
    pub fn end_turn(&self, turn: u64) {
        let mut state = locked(&self.state);
        state.interrupted = state.interrupted.max(Some(turn));
        let left = state.open.iter().filter(|terminal| terminal.turn == turn);
        for terminal in left.filter(|terminal| !terminal.has_ended()) {
            drop(terminal.task.stop());
        }
    }

    /// The child has ended: kills all commands, and waits until they have ended. No other is started.
    pub async fn close(&self) {
        {
            let mut state = locked(&self.state);
            state.is_closed = true;
            let all = state.open.iter().chain(&state.released);
            for terminal in all.filter(|terminal| !terminal.has_ended()) {
                drop(terminal.task.kill());
            }
        }
        let all_ended = self.running.acquire_many(MOST_TERMINALS);
        if tokio::time::timeout(PATIENCE, all_ended).await.is_err() {
            tracing::warn!("a command of the agent's program does not end");
        }
    }
}

impl State {
    /// Of the terminals whose command has ended, the oldest one makes room.
    fn add(&mut self, terminal: Arc<Terminal>) {
        let ended = self.open.iter().filter(|terminal| terminal.has_ended());
        if ended.count() >= MOST_TERMINALS as usize
            && let Some(oldest) = self.open.iter().position(|it| it.has_ended())
        {
            self.open.remove(oldest);
        }
        self.open.push(terminal);
    }
}

impl Terminal {
    fn has_ended(&self) -> bool {
        self.exit.borrow().is_some()
    }

    fn output(&self) -> TerminalOutput {
        // Before the output: a command that has ended has written everything.
        let exit = *self.exit.borrow();
        let (text, is_truncated) = locked(&self.kept).text();
        TerminalOutput {
            text,
            is_truncated,
            exit,
        }
    }
}

/// Keeps the output of a command until all its processes have ended. A process that is not one of them, but holds its output
/// open, is not waited for.
async fn follow(terminal: Arc<Terminal>, mut stdout: Receiver, running: OwnedSemaphorePermit) {
    let mut chunk = vec![0; CHUNK];
    let ended = terminal.task.ended();
    tokio::pin!(ended);
    let found = loop {
        tokio::select! {
            read = stdout.read(&mut chunk) => match read {
                Ok(read @ 1..) => locked(&terminal.kept).push(&chunk[..read]),
                _ => break ended.await,
            },
            found = &mut ended => {
                drain(&stdout, &mut chunk, &terminal.kept);
                break found;
            }
        }
    };
    let exit = match found {
        Ok(Found::Ended(exit)) => exit,
        // Its shim was killed.
        _ => Exit::default(),
    };
    let mut code = exit.code;
    if let Some(error) = exit.error {
        let why = format!("agentd: the command could not be started: {error}\n");
        locked(&terminal.kept).push(why.as_bytes());
        code = Some(NOT_STARTED);
    }
    // One with neither was killed before it began, or with its shim.
    let signal = exit.signal.or(code.is_none().then_some(KILLED));
    locked(&terminal.kept).finish();
    // An error here leaves files, which the next process removes.
    let _left = fs::remove_dir_all(terminal.task.dir());
    // Before the end is known: a child that waited for it may start another command.
    drop(running);
    terminal
        .exit
        .send_replace(Some(TerminalExit { code, signal }));
}

/// Keeps what the command has written and was not read yet. Never waits. Not with `try_read`, which may not know yet that
/// there is more to read.
fn drain(stdout: &Receiver, chunk: &mut [u8], kept: &Mutex<Kept>) {
    for _ in 0..PIPE / CHUNK {
        match rustix::io::read(stdout, &mut *chunk) {
            Ok(read @ 1..) => locked(kept).push(&chunk[..read]),
            _ => return,
        }
    }
}

/// Most models write for bash.
fn shell() -> &'static str {
    match Path::new("/bin/bash").exists() {
        true => "/bin/bash",
        false => "/bin/sh",
    }
}

fn unknown(id: &str) -> Refusal {
    let id: String = id.chars().take(100).collect();
    Refusal::wrong(format!(
        "there is no terminal `{id}`; it may have been released"
    ))
}

fn ended() -> Refusal {
    Refusal::failed("the agent's program has ended")
}
