//! The `systemd` back end of supervision: the processes of each agent are in a transient scope of the user's service
//! manager.
//!
//! The scope begins with the first process of the agent and ends with the last one of its processes and tasks. It is not
//! part of the daemon's unit: stopping, killing or upgrading the unit does not reach it. It is delegated, so the
//! subgroups of the agent's process and of its tasks are created with plain file operations (see `agentd_process`).
//!
//! An agent whose scope cannot be created runs in the daemon's own cgroup. Work is more important than who keeps its
//! processes together.

use crate::service::{Service, WithoutScopes};
use crate::settings::Settings;
use agentd_core::catalog::SupervisorChoice;
use agentd_core::id::AgentId;
use agentd_core::spec::Limits;
use agentd_files::own;
use agentd_process::Identity;
use futures_util::StreamExt as _;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use zbus::{Connection, OwnedObjectPath, Proxy, Variant};

const MANAGER: &str = "org.freedesktop.systemd1";
const MANAGER_PATH: &str = "/org/freedesktop/systemd1";
const MANAGER_INTERFACE: &str = "org.freedesktop.systemd1.Manager";
const SCOPE_INTERFACE: &str = "org.freedesktop.systemd1.Scope";
/// What the service manager answers if the scope is there already.
const EXISTS: &str = "org.freedesktop.systemd1.UnitExists";

/// Time limit for the service manager to create a scope. The agent's process waits meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);
/// After this many late answers in a row, the service manager is not asked for a while: each start of an agent would
/// wait for it in vain.
const LATE_IN_A_ROW: u32 = 3;
const UNASKED: Duration = Duration::from_secs(60);
/// A quota of 100 % of one CPU is this many microseconds per second, divided by 100.
const MICROS_PER_PERCENT: u64 = 10_000;

/// A connection to the user's service manager.
pub struct Scopes {
    /// A handle. Locked only to copy or to replace it, so that one slow answer does not delay other agents.
    connection: Mutex<Connection>,
    late: Mutex<Late>,
    without: Arc<WithoutScopes>,
    runtime: Handle,
}

/// Why an agent has no scope.
#[derive(Debug, thiserror::Error)]
enum NoScope {
    #[error(transparent)]
    Bus(#[from] zbus::Error),
    #[error("the service manager answered: {0}")]
    Refused(String),
    #[error("the service manager did not answer in time")]
    Late,
    #[error("its cgroup cannot be used: {0}")]
    Cgroup(#[from] io::Error),
}

/// A property of a unit.
type Property<'a> = (&'a str, Variant<'a>);

impl Scopes {
    /// `None` if the settings choose the `native` back end, or if there is no service manager of the user.
    pub async fn connect(settings: &Settings) -> Option<Self> {
        if !are_wanted(settings.catalog.daemon().supervisor, &settings.service) {
            return None;
        }
        let without = Arc::clone(&settings.service.without_scopes);
        let connected = tokio::time::timeout(PATIENCE, subscribed()).await;
        match connected.map_or(Err(NoScope::Late), |connected| Ok(connected?)) {
            Ok(connection) => Some(Self {
                connection: Mutex::new(connection),
                late: Mutex::default(),
                without,
                runtime: Handle::current(),
            }),
            Err(error) => {
                tracing::warn!(%error, "no service manager: agents run without scopes");
                without.set(Some(error.to_string()));
                None
            }
        }
    }

    /// Moves a new process of the agent into the agent's scope. Blocks; must not be called from a task.
    pub fn enter(&self, agent: AgentId, name: &str, limits: &Limits, process: Identity) {
        if locked(&self.late).is_unasked(Instant::now()) {
            tracing::warn!(%agent, pid = process.pid, "service manager not asked: agent runs without a scope");
            return;
        }
        let wanted = Wanted {
            unit: unit_name(agent),
            name,
            limits: bounds(limits),
            process,
        };
        let asked = self.runtime.block_on(async {
            let asked = tokio::time::timeout(PATIENCE, self.ask(&wanted)).await;
            asked.unwrap_or(Err(NoScope::Late))
        });
        locked(&self.late).record(&asked, Instant::now());
        let entered = match asked {
            Err(NoScope::Late) => wanted.enter_unanswered(),
            answered => answered,
        };
        if let Err(error) = &entered {
            tracing::warn!(%agent, pid = process.pid, %error, "agent runs without a scope");
        }
        self.without
            .set(entered.err().map(|error| error.to_string()));
    }

    async fn ask(&self, wanted: &Wanted<'_>) -> Result<(), NoScope> {
        let connection = locked(&self.connection).clone();
        match wanted.enter(&connection).await {
            // The scope has ended in between, with the last task of the agent, or the bus was restarted.
            Err(_) => {
                let connection = subscribed().await?;
                *locked(&self.connection) = connection.clone();
                wanted.enter(&connection).await
            }
            entered => entered,
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The late answers of the service manager since the last one in time.
#[derive(Debug, Default)]
struct Late {
    in_a_row: u32,
    unasked_until: Option<Instant>,
}

impl Late {
    fn is_unasked(&self, now: Instant) -> bool {
        self.unasked_until.is_some_and(|until| now < until)
    }

    fn record(&mut self, asked: &Result<(), NoScope>, now: Instant) {
        if !matches!(asked, Err(NoScope::Late)) {
            *self = Self::default();
            return;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        if self.in_a_row >= LATE_IN_A_ROW {
            self.unasked_until = Some(now + UNASKED);
        }
    }
}

const fn are_wanted(choice: SupervisorChoice, service: &Service) -> bool {
    match choice {
        SupervisorChoice::Native => false,
        // Not for a service of the system: the scopes would be in the user's own manager, which ends them at logout.
        SupervisorChoice::Auto => service.is_users_own,
        SupervisorChoice::Systemd => true,
    }
}

/// A process, and the scope for it.
struct Wanted<'a> {
    unit: String,
    /// The agent's name, as the description.
    name: &'a str,
    limits: Vec<Property<'static>>,
    process: Identity,
}

impl Wanted<'_> {
    async fn enter(&self, connection: &Connection) -> Result<(), NoScope> {
        let manager = manager(connection).await?;
        match self.start(&manager).await {
            // A task of the agent runs in it.
            Err(error) if is_exists(&error) => {
                let call = &(self.unit.as_str(), true, &self.limits);
                manager.call::<_, _, ()>("SetUnitProperties", call).await?;
            }
            started => started?,
        }
        let path: OwnedObjectPath = manager.call("GetUnit", &(self.unit.as_str(),)).await?;
        let scope = Proxy::new(connection, MANAGER, path, SCOPE_INTERFACE).await?;
        let group: String = scope.get_property("ControlGroup").await?;
        Ok(agentd_process::enter_runtime_group(&group, self.process)?)
    }

    /// The service manager carries out a request also if its answer is late. If the process is in its scope by now, it
    /// must be in the subgroup too: the groups of its tasks would be made outside the scope otherwise.
    fn enter_unanswered(&self) -> Result<(), NoScope> {
        let groups = own::read_to_string(format!("/proc/{}/cgroup", self.process.pid))?;
        let group = scope_in(&groups, &self.unit).ok_or(NoScope::Late)?;
        Ok(agentd_process::enter_runtime_group(group, self.process)?)
    }

    /// Starts the scope with the process, and waits until the service manager has done it.
    async fn start(&self, manager: &Proxy<'_>) -> Result<(), NoScope> {
        let unit = self.unit.as_str();
        // Before the job begins: it may be over before the answer arrives.
        let mut removed = manager
            .receive_signal_with_args("JobRemoved", &[(2, unit)])
            .await?;
        let description = format!("agentd agent {}", self.name);
        let mut properties: Vec<Property<'_>> = vec![
            ("Description", Variant::from(description)),
            ("PIDs", Variant::from(vec![self.process.pid])),
            ("Delegate", Variant::from(true)),
            ("CollectMode", Variant::from("inactive-or-failed")),
        ];
        for (key, value) in &self.limits {
            properties.push((key, value.try_clone()?));
        }
        let auxiliary: Vec<(&str, Vec<Property<'_>>)> = Vec::new();
        let call = &(unit, "fail", properties, auxiliary);
        let job: OwnedObjectPath = manager.call("StartTransientUnit", call).await?;
        while let Some(signal) = removed.next().await {
            let body = signal.body();
            let (_, path, _, result): (u32, OwnedObjectPath, String, String) =
                body.deserialize()?;
            if path == job {
                return match result.as_str() {
                    "done" => Ok(()),
                    _ => Err(NoScope::Refused(result)),
                };
            }
        }
        Err(NoScope::Late)
    }
}

async fn subscribed() -> zbus::Result<Connection> {
    let connection = Connection::session().await?;
    // Without a subscriber, the service manager sends no signals about jobs.
    manager(&connection)
        .await?
        .call::<_, _, ()>("Subscribe", &())
        .await?;
    Ok(connection)
}

async fn manager(connection: &Connection) -> zbus::Result<Proxy<'static>> {
    Proxy::new(connection, MANAGER, MANAGER_PATH, MANAGER_INTERFACE).await
}

fn is_exists(error: &NoScope) -> bool {
    match error {
        NoScope::Bus(zbus::Error::MethodError(name, ..)) => name.as_str() == EXISTS,
        _ => false,
    }
}

/// The cgroup of the unit, if the content of `/proc/PID/cgroup` says that the process is in it.
fn scope_in<'a>(groups: &'a str, unit: &str) -> Option<&'a str> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (_, last) = group.rsplit_once('/')?;
    (last == unit).then_some(group)
}

fn unit_name(agent: AgentId) -> String {
    format!("agentd-{agent}.scope")
}

/// The limits of an agent as properties of its scope. A limit that is not set is set to the largest value: an earlier
/// process may have had one.
fn bounds(limits: &Limits) -> Vec<Property<'static>> {
    let cpu = limits.cpu_percent.map(u64::from);
    let cpu = cpu.map_or(u64::MAX, |percent| percent.max(1) * MICROS_PER_PERCENT);
    vec![
        (
            "MemoryMax",
            Variant::from(limits.memory_bytes.unwrap_or(u64::MAX)),
        ),
        ("CPUQuotaPerSecUSec", Variant::from(cpu)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(properties: &[Property<'_>], key: &str) -> u64 {
        let found = properties.iter().find(|(name, _)| *name == key);
        u64::try_from(&found.unwrap().1).unwrap()
    }

    #[test]
    fn limits_become_properties_of_the_scope() {
        let limits = Limits {
            memory_bytes: Some(1 << 30),
            cpu_percent: Some(150),
            ..Limits::default()
        };
        let set = bounds(&limits);
        assert_eq!(number(&set, "MemoryMax"), 1 << 30);
        assert_eq!(number(&set, "CPUQuotaPerSecUSec"), 1_500_000);
        let none = bounds(&Limits::default());
        assert_eq!(number(&none, "MemoryMax"), u64::MAX);
        assert_eq!(number(&none, "CPUQuotaPerSecUSec"), u64::MAX);
    }

    #[test]
    fn by_itself_only_a_service_of_the_users_manager_has_scopes() {
        let started_by = |is_users_own| Service {
            is_users_own,
            ..Service::default()
        };
        let auto = SupervisorChoice::Auto;
        assert!(are_wanted(auto, &started_by(true)));
        assert!(!are_wanted(auto, &started_by(false)));
        assert!(are_wanted(SupervisorChoice::Systemd, &started_by(false)));
        assert!(!are_wanted(SupervisorChoice::Native, &started_by(true)));
    }

    #[test]
    fn a_silent_service_manager_is_not_asked_for_a_minute() {
        let mut late = Late::default();
        let now = Instant::now();
        for _ in 1..LATE_IN_A_ROW {
            late.record(&Err(NoScope::Late), now);
        }
        assert!(!late.is_unasked(now));
        // An answer in time, also a refusal, begins the count again.
        late.record(&Err(NoScope::Refused("failed".to_owned())), now);
        late.record(&Err(NoScope::Late), now);
        assert!(!late.is_unasked(now));
        for _ in 1..LATE_IN_A_ROW {
            late.record(&Err(NoScope::Late), now);
        }
        assert!(late.is_unasked(now));
        // After the minute it is asked once; another late answer is enough.
        let later = now + UNASKED;
        assert!(!late.is_unasked(later));
        late.record(&Err(NoScope::Late), later);
        assert!(late.is_unasked(later));
        late.record(&Ok(()), later);
        assert!(!late.is_unasked(later));
    }

    #[test]
    fn a_process_that_was_moved_without_an_answer_is_found_in_its_scope() {
        let group = "/user.slice/app.slice/agentd-1.scope";
        let groups = format!("1:name=x:/\n0::{group}\n");
        assert_eq!(scope_in(&groups, "agentd-1.scope"), Some(group));
        assert_eq!(scope_in(&groups, "agentd-2.scope"), None);
        assert_eq!(
            scope_in("0::/a/agentd-1.scope/runtime\n", "agentd-1.scope"),
            None
        );
    }

    #[test]
    fn a_scope_is_named_after_the_agents_id() {
        let agent = "01a1eaed-3472-77cf-bdb3-12f7d3e1bde1".parse().unwrap();
        assert_eq!(
            unit_name(agent),
            "agentd-01a1eaed-3472-77cf-bdb3-12f7d3e1bde1.scope"
        );
    }
}
