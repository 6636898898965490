//! Waiting until all agents are idle: what is recorded then, and the orderly end.

use super::processes;
use super::testbed::{FORK, Result, Stuck, Testbed, lock, pause};
use agentd_client::Error;
use agentd_client::api::EventQuery;
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long processes may take to end after they were told to.
const LAST_BREATH: Duration = Duration::from_secs(5);
/// How long nothing may change before the state counts as final.
const SETTLES: Duration = Duration::from_millis(100);
/// How long a daemon on a busy machine may take to notice that a process has died.
const NOTICED: Duration = Duration::from_secs(2);

impl Testbed {
    /// What the API returns for an agent; none if there is no answer, in which case a daemon is started.
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

    /// The same; an agent that waits for its key gets it, because the client that had it may be dead.
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

    /// Waits for this many events of a kind, unless the agent becomes idle before.
    pub fn until_event(&self, agent: &str, kind: &str, count: usize) -> Result<()> {
        self.until(kind, || {
            let shown = self.look_after(agent)?;
            let events = self.events(agent)?;
            let found = events.iter().filter(|event| event["kind"] == kind).count();
            (found >= count || is_idle(&shown)).then_some(())
        })
    }

    /// Waits until a turn is in progress, or the agent is idle.
    pub fn until_running(&self, agent: &str) -> Result<()> {
        self.until("a turn", || {
            let shown = self.look_after(agent)?;
            (!shown["turn"].is_null() || is_idle(&shown)).then_some(())
        })
    }

    /// Waits until these agents are idle, and records their state.
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
        // The daemon needs a moment to notice a process that has just ended, and so does a shim that ends with its runtime.
        self.until("burials", || {
            let all = processes::descendants(&self.root);
            let waited_for = lock(&self.waited_for);
            let has_runtime = all.iter().any(|it| it.role == "runtime" && it.is_alive());
            let is_going = |it: &processes::Process| match it.role.as_str() {
                _ if waited_for.contains(&it.pid) => false,
                "client" => true,
                "shim" => {
                    !it.is_alive() || (!has_runtime && processes::ends_with_runtime(&it.cmdline))
                }
                _ => !it.is_alive(),
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

    /// Whether the process that the API shows exists.
    fn is_there(&self, shown: &Value) -> bool {
        let pid = shown["process"]["pid"].as_u64();
        let all = processes::descendants(&self.root);
        let mut alive = all.iter().filter(|it| it.is_alive());
        pid.is_none_or(|pid| alive.any(|it| u64::from(it.pid) == pid))
    }

    /// What the API returns, confirmed by a second answer after the processes were listed: a process may be
    /// about to be replaced. A process that is shown but does not exist stays that way, though.
    fn look_at_all(&self, agents: &[&str]) -> Option<Vec<(String, Value)>> {
        let look = || -> Option<Vec<(String, Value)>> {
            let looks = agents
                .iter()
                .map(|agent| Some(((*agent).to_owned(), self.look(agent)?)));
            looks.collect()
        };
        let faults = || super::record::lines(&self.root.join("fired.jsonl")).len();
        let so_far = faults();
        let before = look()?;
        // tidy: polls
        std::thread::sleep(SETTLES);
        let after = look()?;
        let same = |a: &Value, b: &Value| a["head"] == b["head"] && a["process"] == b["process"];
        let mut pairs = before.iter().zip(&after);
        // A daemon that a signal hits at one of these requests still answers it, and is gone then.
        (pairs.all(|((_, a), (_, b))| same(a, b)) && faults() == so_far).then_some(after)
    }

    /// The orderly end: exports every agent, and stops the daemon.
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

    /// Stops the daemon in order, and again if a late fault kills it on the way.
    pub fn stop_daemon(&self) -> Result<()> {
        loop {
            self.wake()?;
            let before = self.faults();
            let ran = self.cli("", &["daemon", "stop", "--json"])?;
            // A daemon that had just ended by itself, as after a signal, reports nothing to stop.
            let has_stopped = ran.json().is_some_and(|told| told["stopped"] == true);
            if ran.code == Some(0) && has_stopped && self.faults() == before {
                return Ok(());
            }
            pause();
        }
    }

    /// The number of requests, including those that are not recorded yet.
    fn faults(&self) -> usize {
        let files = [
            self.record.dir().join("faults.jsonl"),
            self.root.join("fired.jsonl"),
        ];
        let texts = files.iter().flat_map(fs::read_to_string);
        texts.map(|text| text.lines().count()).sum()
    }

    /// Records the model's requests.
    pub fn write_requests(&self) -> Result<()> {
        for (n, request) in self.model.requests().into_iter().enumerate() {
            let violations: Vec<String> =
                request.violations.iter().map(ToString::to_string).collect();
            let system = request.body["system"].to_string();
            let agents = lock(&self.agents);
            // A fork has its origin's name in the system prompt, and a notice that it is a fork.
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

/// No turn is in progress, and no prompt is queued.
pub fn is_idle(shown: &Value) -> bool {
    match shown["phase"].as_str() {
        Some("idle") => shown["queued"] == 0 && shown["turn"].is_null(),
        Some("stopped" | "failed") => true,
        _ => false,
    }
}

/// It waits, and not for an approval.
pub fn is_without_key(shown: &Value) -> bool {
    let approvals = shown["approvals"].as_array();
    shown["phase"] == "waiting" && approvals.is_none_or(Vec::is_empty)
}

impl From<agentd_process::Error> for Stuck {
    fn from(error: agentd_process::Error) -> Self {
        Self::Wrong(error.to_string())
    }
}
