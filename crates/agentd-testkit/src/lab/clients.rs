//! The clients: the command line, as a user types it. A killed client is started again with the same arguments.

use super::idle::is_without_key;
use super::testbed::{Prompted, Result, Stuck, Testbed, lock, pause};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

/// How a command ended, and its output.
#[derive(Clone, Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// The last line that is JSON.
    pub fn json(&self) -> Option<Value> {
        let mut lines = self.stdout.lines().rev();
        lines.find_map(|line| serde_json::from_str(line).ok())
    }

    /// Whether there was an answer. A refusal is an answer too; so is an interruption, if the client reports it.
    pub fn is_answered(&self) -> bool {
        matches!(self.code, Some(0 | 1 | 3 | 5 | 6 | 7))
            || self.code == Some(130) && self.json().is_some_and(|it| says_what_came_of_it(&it))
    }
}

/// An answer and not an error: of a turn, or of a compaction.
fn says_what_came_of_it(answer: &Value) -> bool {
    answer["status"].is_string() || answer["outcome"].is_string()
}

/// Prompts are identified by their index in the list.
pub type PromptNumber = usize;

impl Testbed {
    /// Runs a command to its end.
    pub fn cli(&self, agent: &str, args: &[&str]) -> Result<Ran> {
        self.run_client(self.command(), agent, args)
    }

    /// The same for a command that needs no daemon, in this state directory. Its temporary files are a part of the run.
    pub fn cli_at(&self, home: &Path, args: &[&str]) -> Result<Ran> {
        let mut command = self.command();
        command.env("AGENTD_HOME", home).env("TMPDIR", &self.root);
        self.run_client(command, "", args)
    }

    fn run_client(&self, mut command: Command, agent: &str, args: &[&str]) -> Result<Ran> {
        self.check_time(&args.join(" "))?;
        let number = self.clients.fetch_add(1, Ordering::Relaxed);
        let file = format!("clients/{number}.jsonl");
        let head = json!({"client": "cli", "args": args, "agent": agent, "at": self.record.at()});
        self.record.line(&file, &head)?;
        command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = {
            // It must not be reaped before it is registered as waited for.
            let mut waited_for = lock(&self.waited_for);
            let child = command.spawn()?;
            waited_for.insert(child.id());
            child
        };
        let pid = child.id();
        let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(err) = &mut err {
                let _broken = err.read_to_end(&mut text);
            }
            text
        });
        let mut stdout = Vec::new();
        if let Some(out) = &mut out {
            let _broken = out.read_to_end(&mut stdout);
        }
        let stderr = errors.join().unwrap_or_default();
        let status = child.wait();
        lock(&self.waited_for).remove(&pid);
        let status = status?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let ran = Ran {
            code: status.code(),
            signal: status.signal(),
            stdout: text(stdout),
            stderr: text(stderr),
        };
        let at = self.record.at();
        for line in ran.stdout.lines() {
            let line = json!({"at": at, "saw": "line", "text": line});
            self.record.line(&file, &line)?;
        }
        let end = json!({"at": at, "saw": "exit", "code": ran.code, "signal": ran.signal,
                         "stderr": ran.stderr, "pid": pid});
        self.record.line(&file, &end)?;
        Ok(ran)
    }

    /// Repeats the command until there is an answer.
    fn insist(&self, agent: &str, args: &[&str]) -> Result<Ran> {
        loop {
            let ran = self.cli(agent, args)?;
            if ran.is_answered() {
                return Ok(ran);
            }
            if ran.code == Some(2) {
                return Err(Stuck::Wrong(format!("{args:?}: {}", ran.stderr)));
            }
            pause();
        }
    }

    /// Creates an agent; `more` are further lines of its settings. Returns its id.
    pub fn create(&self, name: &str, more: &str) -> Result<String> {
        let file = self.agent_file(name, more)?;
        let file = file.display().to_string();
        self.insist(name, &["create", name, "-f", &file, "--json"])?;
        let shown = self.show(name)?;
        let id = shown["id"].as_str().unwrap_or_default().to_owned();
        self.know(&id, name);
        Ok(id)
    }

    /// The output of `agentd show`.
    pub fn show(&self, agent: &str) -> Result<Value> {
        let ran = self.insist(agent, &["show", agent, "--json"])?;
        match ran.json() {
            Some(shown) if ran.code == Some(0) => Ok(shown),
            _ => Err(Stuck::Wrong(format!("no agent {agent}: {}", ran.stderr))),
        }
    }

    /// Sends a prompt until it is acknowledged.
    pub fn send(&self, agent: &str, text: &str, more: &[&str]) -> Result<PromptNumber> {
        let at = self.record.at();
        let files = self.attached(more)?;
        let number = {
            let mut prompts = lock(&self.prompts);
            let number = prompts.len();
            prompts.push(Prompted {
                at,
                agent: agent.to_owned(),
                key: format!("key-{number}"),
                text: text.to_owned(),
                files,
                ..Prompted::default()
            });
            number
        };
        let key = format!("key-{number}");
        let mut args = vec!["send", agent, "--no-wait", "--json", "--key", &key];
        args.extend(more);
        args.push(text);
        let ran = self.insist(agent, &args)?;
        let sent = ran.json().unwrap_or_default();
        let Some(prompt) = sent["prompt"].as_str() else {
            return Err(Stuck::Wrong(format!("not sent: {}", ran.stderr)));
        };
        if let Some(known) = lock(&self.prompts).get_mut(number) {
            known.prompt = Some(prompt.to_owned());
        }
        Ok(number)
    }

    /// The files that these options attach.
    fn attached(&self, options: &[&str]) -> Result<Vec<(String, String)>> {
        let named = options.windows(2).filter(|pair| pair[0] == "--attach");
        let read = named.map(|pair| {
            let bytes = std::fs::read(self.work().join(pair[1]))?;
            let content = String::from_utf8(bytes);
            let content = content.unwrap_or_else(|error| STANDARD.encode(error.as_bytes()));
            Ok((pair[1].to_owned(), content))
        });
        read.collect()
    }

    /// The prompt gets another text, unless its turn has begun.
    pub fn edit_prompt(&self, number: PromptNumber, text: &str, op: &str) -> Result<()> {
        let ran = self.change_queue("edit", number, op, &[text])?;
        let mut prompts = lock(&self.prompts);
        if let Some(known) = prompts.get_mut(number).filter(|_| ran.code == Some(0)) {
            known.text = text.to_owned();
        }
        Ok(())
    }

    /// The prompt is answered first, unless its turn has begun.
    pub fn move_prompt(&self, number: PromptNumber, op: &str) -> Result<()> {
        self.change_queue("move", number, op, &["--first"])
            .map(drop)
    }

    /// The prompt is not answered, unless its turn has begun.
    pub fn remove_prompt(&self, number: PromptNumber, op: &str) -> Result<()> {
        self.change_queue("rm", number, op, &[]).map(drop)
    }

    fn change_queue(
        &self,
        verb: &str,
        number: PromptNumber,
        op: &str,
        more: &[&str],
    ) -> Result<Ran> {
        let known = lock(&self.prompts).get(number).cloned().unwrap_or_default();
        let (agent, prompt) = (known.agent, known.prompt.unwrap_or_default());
        let mut args = vec!["queue", verb, &agent, &prompt];
        args.extend(more);
        args.extend(["--op", op, "--json"]);
        self.order(&agent, &format!("queue {verb}"), Some(op), &args)
    }

    /// Waits for the end of a prompt, and does what is necessary: approves every call, and continues the agent
    /// if it waits. Returns how it ended.
    pub fn answer(&self, number: PromptNumber) -> Result<String> {
        self.answer_with(number, |testbed, agent, approval| {
            testbed.decide(agent, approval, "approve").map(drop)
        })
    }

    pub fn answer_with(
        &self,
        number: PromptNumber,
        mut asked: impl FnMut(&Self, &str, &str) -> Result<()>,
    ) -> Result<String> {
        let known = lock(&self.prompts).get(number).cloned();
        let known = known.ok_or_else(|| Stuck::Wrong("no such prompt".to_owned()))?;
        let (agent, prompt) = (known.agent, known.prompt.unwrap_or_default());
        loop {
            let args = ["wait", &agent, &prompt, "--json", "--timeout", "20s"];
            let ran = self.cli(&agent, &args)?;
            let answer = ran.json().unwrap_or_default();
            match answer["status"].as_str() {
                Some("queued" | "running") | None => pause(),
                Some("waiting") => self.continue_turn(&agent, &mut asked)?,
                Some(status) => {
                    // A client that was killed after its last line is run again for its exit code.
                    if ran.code.is_none() {
                        continue;
                    }
                    if let Some(known) = lock(&self.prompts).get_mut(number) {
                        known.status = Some(status.to_owned());
                        known.exit = ran.code;
                    }
                    return Ok(status.to_owned());
                }
            }
        }
    }

    /// Sends a prompt and waits for its end.
    pub fn ask(&self, agent: &str, text: &str) -> Result<String> {
        let number = self.send(agent, text, &[])?;
        self.answer(number)
    }

    /// Does what an agent waits for.
    fn continue_turn(
        &self,
        agent: &str,
        asked: &mut impl FnMut(&Self, &str, &str) -> Result<()>,
    ) -> Result<()> {
        let shown = self.show(agent)?;
        let approvals = shown["approvals"].as_array().cloned().unwrap_or_default();
        for approval in &approvals {
            asked(self, agent, approval["id"].as_str().unwrap_or_default())?;
        }
        if is_without_key(&shown) {
            self.order(agent, "continue", None, &["continue", agent, "--json"])?;
        }
        Ok(())
    }

    pub fn decide(&self, agent: &str, approval: &str, decision: &str) -> Result<Ran> {
        let args = [decision, agent, approval, "--json"];
        self.order(agent, decision, Some(approval), &args)
    }

    /// Another request of a client, repeated until there is an answer.
    pub fn order(&self, agent: &str, verb: &str, op: Option<&str>, args: &[&str]) -> Result<Ran> {
        loop {
            let ran = self.order_once(agent, verb, op, args)?;
            if ran.is_answered() {
                return Ok(ran);
            }
            if ran.code == Some(2) {
                return Err(Stuck::Wrong(format!("{args:?}: {}", ran.stderr)));
            }
            pause();
        }
    }

    fn order_once(&self, agent: &str, verb: &str, op: Option<&str>, args: &[&str]) -> Result<Ran> {
        let at = self.record.at();
        let ran = self.cli(agent, args)?;
        let is_done = ran.code == Some(0);
        let error = match is_done {
            true => Value::Null,
            false => json!({"exit": ran.code, "signal": ran.signal, "text": ran.stderr}),
        };
        let answer = ran.json().filter(|_| is_done);
        let line = json!({"at": at, "until": self.record.at(), "agent": agent, "verb": verb, "op": op,
                          "acknowledged": is_done, "answer": answer, "error": error,
                          "from_tool": false});
        self.record.line("orders.jsonl", &line)?;
        Ok(ran)
    }

    /// A compaction; the same one however often it is requested. If it waits for a key, it gets one.
    pub fn compact(&self, agent: &str, op: &str) -> Result<Ran> {
        let args = ["compact", agent, "--op", op, "--json"];
        loop {
            let ran = self.order_once(agent, "compact", Some(op), &args)?;
            if ran.is_answered() {
                return Ok(ran);
            }
            if ran.stderr.contains("`agentd continue`") {
                self.order(agent, "continue", None, &["continue", agent, "--json"])?;
            }
            pause();
        }
    }

    /// A reset or an undo; the same one however often it is requested.
    pub fn reset(&self, agent: &str, verb: &str, op: &str, more: &[&str]) -> Result<Ran> {
        let mut args = vec!["reset", agent, "--op", op, "--json"];
        args.extend(match verb {
            "undo" => Some("--undo"),
            "redo" => Some("--redo"),
            _ => None,
        });
        args.extend(more);
        self.order(agent, verb, Some(op), &args)
    }

    /// An id that is the same whenever this run is repeated.
    pub fn op(&self, n: u64) -> String {
        format!("0198c5a2-7d1e-7000-8000-{:012x}", self.spec.seed << 16 | n)
    }

    /// Ensures that a daemon runs.
    pub fn wake(&self) -> Result<()> {
        self.insist("", &["daemon", "start", "--json"]).map(drop)
    }

    /// Records what the senders were told.
    pub fn write_prompts(&self) -> Result<()> {
        for it in lock(&self.prompts).iter() {
            let line = json!({"at": it.at, "agent": it.agent, "key": it.key, "text": it.text, "files": it.files,
                              "acknowledged": it.prompt.is_some(), "prompt": it.prompt,
                              "status": it.status, "exit": it.exit});
            self.record.line("prompts.jsonl", &line)?;
        }
        Ok(())
    }
}
