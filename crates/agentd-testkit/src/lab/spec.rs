//! The description of one run, in one line that can be repeated:
//! `standard,seed=7,fault=runtime@after-message#2=KILL,random=3,bug=NAME`.

use agentd_failpoint::plan::{Action, Plan, Role, Rule};
use std::fmt::{self, Display};
use std::str::FromStr;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    pub scenario: String,
    pub seed: u64,
    pub faults: Vec<Fault>,
    /// Kills at random times.
    pub random: u32,
    pub injected_bugs: Vec<String>,
    /// Record every failpoint that is passed.
    pub trace: bool,
    /// Tools run without a sandbox.
    pub full_access: bool,
}

/// What happens to a process at a failpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub role: Role,
    pub failpoint: String,
    /// The n-th time that a process passes it; none for the first process that does.
    pub nth: Option<u32>,
    pub action: Action,
    /// Applies to every process that passes it, each time.
    pub each: bool,
}

impl Spec {
    pub fn new(scenario: impl Into<String>, seed: u64) -> Self {
        Self {
            scenario: scenario.into(),
            seed,
            ..Self::default()
        }
    }

    pub fn with(mut self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.faults.extend(faults);
        self
    }

    pub fn plan(&self) -> Plan {
        let rules = self.faults.iter().enumerate().map(|(n, fault)| Rule {
            name: rule_name(n),
            role: fault.role,
            process: None,
            failpoint: fault.failpoint.clone(),
            nth: fault.nth,
            action: fault.action,
            each: fault.each,
        });
        Plan {
            trace: self.trace,
            injected_bugs: self.injected_bugs.clone(),
            rules: rules.collect(),
        }
    }

    /// The command that repeats the run.
    pub fn repeat(&self) -> String {
        format!("cargo xtask lab --repeat '{self}'")
    }
}

/// The rule of the n-th fault.
pub fn rule_name(n: usize) -> String {
    format!("fault-{n}")
}

impl Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},seed={}", self.scenario, self.seed)?;
        for fault in &self.faults {
            write!(f, ",fault={fault}")?;
        }
        if self.random > 0 {
            write!(f, ",random={}", self.random)?;
        }
        for injected_bug in &self.injected_bugs {
            write!(f, ",bug={injected_bug}")?;
        }
        if self.trace {
            write!(f, ",trace")?;
        }
        if self.full_access {
            write!(f, ",full-access")?;
        }
        Ok(())
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.role.name(), self.failpoint)?;
        if let Some(nth) = self.nth {
            write!(f, "#{nth}")?;
        }
        write!(f, "={}", self.action.name())?;
        if self.each {
            write!(f, "*")?;
        }
        Ok(())
    }
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let scenario = parts.next().filter(|name| !name.is_empty());
        let mut spec = Self::new(scenario.ok_or("a run needs a scenario")?, 1);
        for part in parts {
            let number = |text: &str| {
                text.parse::<u64>()
                    .map_err(|error| format!("{part}: {error}"))
            };
            match part.split_once('=') {
                Some(("seed", seed)) => spec.seed = number(seed)?,
                Some(("random", random)) => {
                    spec.random =
                        u32::try_from(number(random)?).map_err(|error| error.to_string())?;
                }
                Some(("fault", fault)) => spec.faults.push(fault.parse()?),
                Some(("bug", injected_bug)) => spec.injected_bugs.push(injected_bug.to_owned()),
                None if part == "trace" => spec.trace = true,
                None if part == "full-access" => spec.full_access = true,
                _ => return Err(format!("`{part}` is not a valid part of a run")),
            }
        }
        Ok(spec)
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a fault; use ROLE@FAILPOINT[#N]=SIGNAL[*]");
        let (place, action) = text.rsplit_once('=').ok_or_else(wrong)?;
        let (role, failpoint) = place.split_once('@').ok_or_else(wrong)?;
        let (failpoint, nth) = match failpoint.rsplit_once('#') {
            Some((failpoint, nth)) => (failpoint, Some(nth.parse().map_err(|_| wrong())?)),
            None => (failpoint, None),
        };
        let (action, each) = match action.strip_suffix('*') {
            Some(action) => (action, true),
            None => (action, false),
        };
        Ok(Self {
            role: ROLES
                .into_iter()
                .find(|it| it.name() == role)
                .ok_or_else(wrong)?,
            failpoint: failpoint.to_owned(),
            nth,
            action: ACTIONS
                .into_iter()
                .find(|it| it.name() == action)
                .ok_or_else(wrong)?,
            each,
        })
    }
}

pub const ROLES: [Role; 5] = [
    Role::Client,
    Role::Daemon,
    Role::Runtime,
    Role::Shim,
    Role::Tool,
];

const ACTIONS: [Action; 6] = [
    Action::Kill,
    Action::Term,
    Action::Int,
    Action::Stop,
    Action::Hold,
    Action::Panic,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_read_as_it_is_written() {
        for text in [
            "standard,seed=7",
            "standard,seed=7,fault=runtime@after-message#2=KILL,fault=shim@before-claim.shim=STOP",
            "crash_loop,seed=1,fault=runtime@after-request_sent=KILL*",
            "accepted,seed=1,fault=daemon@on-receive.append#3=PANIC",
            "crowd,seed=3,random=12,bug=ack_before_commit,trace,full-access",
        ] {
            assert_eq!(text.parse::<Spec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_wrong_one_is_refused() {
        for text in [
            "",
            "standard,seed=x",
            "standard,what=1",
            "standard,fault=runtime",
            "standard,fault=cook@x=KILL",
            "standard,fault=runtime@x=NAP",
            "standard,fault=runtime@x#y=KILL",
        ] {
            assert!(text.parse::<Spec>().is_err(), "{text}");
        }
    }
}
