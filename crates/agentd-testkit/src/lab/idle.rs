//! When all is quiet: what is looked at then, and the orderly end.

use super::processes;
use super::scenario::FORK;
use super::testbed::{Result, Stuck, Testbed, lock, pause};
use agentd_client::Error;
use agentd_client::api::EventQuery;
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long those who were told to end may take.
const LAST_BREATH: Duration = Duration::from_secs(5);
/// How long nothing may change before that is how it is.
const SETTLES: Duration = Duration::from_millis(100);
/// A daemon on a busy machine may take so long to see that a process has died.
const NOTICED: Duration = Duration::from_secs(2);

impl Testbed {
    /// What the API says about an agent; none where nobody answers, and then a daemon is started.
    pub fn look(&self, agent: &str) -> Option<Value> {
        let client = self.client();
        let asked =
            async { tokio::time::timeout(Duration::from_secs(5), client.agent(agent)).await };
        match self.runtime().ok()?.block_on(asked) {
            Ok(Ok(shown)) => serde_json::to_value(shown).ok(),
            Ok(Err(Error::NotRunning { .. })) => {
                let _later = self.wake();
                None
            }
            _ => None,
        }
    }

    /// The same; one that waits for its key gets it: whoever had it may be dead.
    pub fn look_after(&self, agent: &str) -> Option<Value> {
        let shown = self.look(agent)?;
        if is_without_key(&shown) {
            let _later = self.order(agent, "continue", None, &["continue", agent, "--json"]);
            return None;
        }
        Some(shown)
    }

    fn runtime(&self) -> std::io::Result<tokio::runtime::Runtime> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build()
    }

    /// An agent's events so far.
    pub fn events(&self, agent: &str) -> Option<Vec<Value>> {
        let runtime = self.runtime().ok()?;
        let mut all = Vec::new();
        let mut after = 0;
        loop {
            let query = EventQuery {
                after,
                all: true,
                ..EventQuery::default()
            };
            let client = self.client();
            let page = async {
                tokio::time::timeout(Duration::from_secs(5), client.page(agent, &query)).await
            };
            let (events, next) = runtime.block_on(page).ok()?.ok()?;
            for event in events {
                after = event.seq.0;
                all.push(serde_json::to_value(event).ok()?);
            }
            if next.is_none() {
                return Some(all);
            }
        }
    }

    /// Waits for so many events of a kind; not for ever, where the agent has nothing more to do.
    pub fn until_event(&self, agent: &str, kind: &str, count: usize) -> Result<()> {
        self.until(kind, || {
            let shown = self.look_after(agent)?;
            let events = self.events(agent)?;
            let found = events.iter().filter(|event| event["kind"] == kind).count();
            (found >= count || is_idle(&shown)).then_some(())
        })
    }

    /// Waits until the agent is in mid-turn, or has nothing more to do.
    pub fn until_running(&self, agent: &str) -> Result<()> {
        self.until("a turn", || {
            let shown = self.look_after(agent)?;
            (!shown["turn"].is_null() || is_idle(&shown)).then_some(())
        })
    }

    /// Waits until these agents have nothing more to do, and writes down what there is then.
    pub fn wait_idle(&self, agents: &[&str]) -> Result<()> {
        let waited = self.wait_all_idle(agents);
        self.is_at_rest.store(true, Ordering::Relaxed);
        waited
    }

    fn wait_all_idle(&self, agents: &[&str]) -> Result<()> {
        for agent in agents {
            self.until("peace", || {
                let shown = self.look_after(agent)?;
                let no_tasks = shown["tasks"].as_array().is_none_or(Vec::is_empty);
                (is_idle(&shown) && no_tasks).then_some(())
            })?;
        }
        let _peace = lock(&self.peace);
        // Whoever has just ended is buried in a moment.
        self.until("burials", || {
            let all = processes::descendants(&self.root);
            let waited_for = lock(&self.waited_for);
            let is_going = |it: &processes::Process| {
                !waited_for.contains(&it.pid) && (!it.is_alive() || it.role == "client")
            };
            (!all.iter().any(is_going)).then_some(())
        })?;
        let since = Instant::now();
        let looked = self.until("a look that holds", || {
            let looked = self.look_at_all(agents)?;
            let is_noticed = looked.iter().all(|(_, shown)| self.is_there(shown));
            (is_noticed || since.elapsed() > NOTICED).then_some(looked)
        })?;
        for (agent, shown) in looked {
            let line = json!({"at": self.record.at(), "agent": agent, "show": shown});
            self.record.line("status.jsonl", &line)?;
        }
        Ok(processes::write(self, "rest")?)
    }

    /// Whether the process that is shown is there.
    fn is_there(&self, shown: &Value) -> bool {
        let pid = shown["process"]["pid"].as_u64();
        let all = processes::descendants(&self.root);
        let mut alive = all.iter().filter(|it| it.is_alive());
        pid.is_none_or(|pid| alive.any(|it| u64::from(it.pid) == pid))
    }

    /// What the API says, and that it still says so once those who are there were looked at: a process may
    /// be about to be replaced by another one. One that is said to be there and is not stays so, though.
    fn look_at_all(&self, agents: &[&str]) -> Option<Vec<(String, Value)>> {
        let look = || -> Option<Vec<(String, Value)>> {
            let looks = agents
                .iter()
                .map(|agent| Some(((*agent).to_owned(), self.look(agent)?)));
            looks.collect()
        };
        let before = look()?;
        // tidy: polls
        std::thread::sleep(SETTLES);
        let after = look()?;
        let same = |a: &Value, b: &Value| a["head"] == b["head"] && a["process"] == b["process"];
        let mut pairs = before.iter().zip(&after);
        pairs.all(|((_, a), (_, b))| same(a, b)).then_some(after)
    }

    /// The orderly end: every agent is written to a file, and the daemon stopped.
    pub fn finish(&self) -> Result<()> {
        for (_, agent) in lock(&self.agents).clone() {
            let file = self.root.join(format!("{agent}.zst"));
            let name = file.display().to_string();
            loop {
                let ran = self.cli(&agent, &["export", &agent, &name, "--force", "--json"])?;
                if ran.code == Some(0) {
                    break;
                }
                pause();
            }
            let text = zstd::decode_all(fs::File::open(&file)?)?;
            fs::write(
                self.record.dir().join(format!("export/{agent}.jsonl")),
                text,
            )?;
        }
        self.stop_daemon()?;
        let begin = Instant::now();
        while !processes::descendants(&self.root).is_empty() && begin.elapsed() < LAST_BREATH {
            pause();
        }
        Ok(processes::write(self, "end")?)
    }

    /// Stopped in order, and not killed on its way out: a fault may still be to come.
    pub fn stop_daemon(&self) -> Result<()> {
        loop {
            self.wake()?;
            let before = self.faults();
            let ran = self.cli("", &["daemon", "stop", "--json"])?;
            // One that had just left by itself, as at a signal, has stopped nobody.
            let has_stopped = ran.json().is_some_and(|told| told["stopped"] == true);
            if ran.code == Some(0) && has_stopped && self.faults() == before {
                return Ok(());
            }
            pause();
        }
    }

    /// How many there were, those included that are not taken down yet.
    fn faults(&self) -> usize {
        let files = [
            self.record.dir().join("faults.jsonl"),
            self.root.join("fired.jsonl"),
        ];
        let texts = files.iter().flat_map(fs::read_to_string);
        texts.map(|text| text.lines().count()).sum()
    }

    /// What the model was asked.
    pub fn write_requests(&self) -> Result<()> {
        for (n, request) in self.model.requests().into_iter().enumerate() {
            let violations: Vec<String> =
                request.violations.iter().map(ToString::to_string).collect();
            let system = request.body["system"].to_string();
            let agents = lock(&self.agents);
            // A fork is called as what it came from, but is told.
            let messages = request.body["messages"].to_string();
            let of_fork = |name: &str| name == FORK && messages.contains("You are a fork of");
            let agent = agents
                .iter()
                .rev()
                .find(|(_, name)| of_fork(name) || system.contains(&format!("You are {name}.")))
                .map(|(_, name)| name.clone());
            let line = json!({"at": self.record.at_instant(request.at), "n": n + 1,
                              "format": request.format.name(), "agent": agent,
                              "accepted": violations.is_empty(), "violations": violations,
                              "finished": request.is_finished, "body": request.body});
            self.record.line("model.jsonl", &line)?;
        }
        Ok(())
    }
}

/// Nothing is under way, and nothing waits to be.
pub fn is_idle(shown: &Value) -> bool {
    match shown["phase"].as_str() {
        Some("idle") => shown["queued"] == 0 && shown["turn"].is_null(),
        Some("stopped" | "failed") => true,
        _ => false,
    }
}

/// It waits, and not for leave.
pub fn is_without_key(shown: &Value) -> bool {
    let approvals = shown["approvals"].as_array();
    shown["phase"] == "waiting" && approvals.is_none_or(Vec::is_empty)
}

impl From<agentd_process::Error> for Stuck {
    fn from(error: agentd_process::Error) -> Self {
        Self::Wrong(error.to_string())
    }
}
