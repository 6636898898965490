//! The agents of a testbed: hostile ones of several kinds, and their victim.

use super::testbed::{Level, START, Testbed, Victim};
use crate::lab::testbed::{Result, Stuck, lock};
use agentd_client::api::{Agent, Create};
use agentd_core::hosts::Hosts;
use agentd_core::spec::{self, AgentSpec, ApprovalMode, Network, Rule, Sandbox};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

impl Testbed {
    pub fn spec(&self) -> AgentSpec {
        AgentSpec {
            provider: Some("anthropic".to_owned()),
            model: Some("some-model".to_owned()),
            cwd: Some(self.work().display().to_string()),
            system: "You are an agent.".to_owned(),
            readable: vec![self.bin.display().to_string()],
            sandbox: match self.level {
                Level::Default => None,
                Level::ReadOnly => Some(Sandbox::ReadOnly),
            },
            ..AgentSpec::default()
        }
    }

    /// Creates an agent of one of these kinds, unless it exists. Returns its name.
    pub fn agent(&self, kind: &str) -> Result<String> {
        if !lock(&self.agents).insert(kind.to_owned()) {
            return Ok(kind.to_owned());
        }
        let mut spec = self.spec();
        let rule = |tool: &str, pattern: Option<&str>, decision| Rule {
            tool: tool.to_owned(),
            pattern: pattern.map(str::to_owned),
            decision,
            needs: Vec::new(),
        };
        match kind {
            "hermit" => spec.network = Some(Network::Off),
            "listed" | "listed-fetcher" => {
                let listed = format!("127.0.0.1:{}", self.listeners.redirecting);
                let listed =
                    Hosts::parse([listed]).map_err(|error| Stuck::Wrong(error.to_string()))?;
                spec.network = Some(Network::Hosts(listed));
                if kind == "listed-fetcher" {
                    spec.tools = Some(vec!["fetch_url".to_owned()]);
                    spec.permissions = vec![rule("fetch_url", None, spec::Decision::Allow)];
                }
            }
            "fetcher" | "fetching-hermit" => {
                spec.tools = Some(vec!["fetch_url".to_owned()]);
                spec.permissions = vec![rule("fetch_url", None, spec::Decision::Allow)];
                spec.network = (kind == "fetching-hermit").then_some(Network::Off);
            }
            "led" => {
                let allowed = format!("http://127.0.0.1:{}/*", self.listeners.redirecting);
                spec.tools = Some(vec!["fetch_url".to_owned()]);
                spec.permissions = vec![rule("fetch_url", Some(&allowed), spec::Decision::Allow)];
            }
            "ruled" => {
                spec.approval = Some(ApprovalMode::Never);
                spec.permissions = vec![
                    rule("shell", Some("rm *"), spec::Decision::Deny),
                    rule("shell", Some("git push*"), spec::Decision::Deny),
                    rule("*", Some("*.secret"), spec::Decision::Deny),
                ];
            }
            "careful" => {
                spec.approval = Some(ApprovalMode::Always);
                spec.permissions = vec![rule("shell", Some("git status*"), spec::Decision::Allow)];
            }
            _ => {}
        }
        self.create(kind, spec, self.env())?;
        Ok(kind.to_owned())
    }

    pub fn create(&self, name: &str, spec: AgentSpec, env: BTreeMap<String, String>) -> Result<()> {
        let create = Create {
            name: Some(name.to_owned()),
            spec,
            env,
            ..Create::default()
        };
        self.ask("create", self.client().create(&create)).map(drop)
    }

    /// An agent with these settings, which the attacks know by its name.
    pub fn create_known(&self, name: &str, spec: AgentSpec) -> Result<()> {
        lock(&self.agents).insert(name.to_owned());
        self.create(name, spec, self.env())
    }

    /// An agent whose question waits for the user, unchanged so far.
    pub fn victim(&self) -> Result<Victim> {
        if let Some(victim) = &*lock(&self.victim)
            && self.touched(victim).is_none()
        {
            return Ok(victim.clone());
        }
        let number = self.victims.fetch_add(1, Ordering::Relaxed);
        let name = format!("victim-{number}");
        let mut spec = self.spec();
        spec.approval = Some(ApprovalMode::Always);
        self.create(&name, spec, self.env())?;
        let word = &self.words.victim;
        let prompt = format!(r#"do: call shell {{"command":"echo {word}"}} ;; say done"#);
        self.send(&name, &prompt)?;
        let approval = self.until(START, "the victim's question", || {
            let agent = self.show(&name).ok()?;
            agent.approvals.first().map(|approval| approval.id)
        })?;
        let before = self.show(&name)?;
        let spec = self.ask("spec", self.client().spec(&name))?;
        let victim = Victim {
            name,
            approval,
            before,
            spec,
        };
        *lock(&self.victim) = Some(victim.clone());
        Ok(victim)
    }

    /// How the victim was changed, if it was.
    pub fn touched(&self, victim: &Victim) -> Option<String> {
        let agent = match self.show(&victim.name) {
            Ok(agent) => agent,
            Err(error) => return Some(format!("the victim is gone: {error}")),
        };
        let before = &victim.before;
        if !agent.approvals.iter().any(|it| it.id == victim.approval) {
            return Some("the victim's approval was answered".to_owned());
        }
        let spec = self.ask("spec", self.client().spec(&victim.name)).ok();
        if spec.as_ref() != Some(&victim.spec) {
            return Some("the victim's spec was changed".to_owned());
        }
        let is_same = agent.generation == before.generation
            && agent.stopped == before.stopped
            && agent.archived == before.archived
            && agent.queued == before.queued
            && agent.name == before.name;
        (!is_same).then(|| "the victim was changed".to_owned())
    }

    pub fn show(&self, name: &str) -> Result<Agent> {
        self.ask("show", self.client().agent(name))
    }
}
