//! The supervisor with a real store and simulated processes: when a process is started, and what follows its exit.

mod verbs;

use super::Supervisor;
use crate::daemon::{AgentHandle, Daemon};
use crate::home::{Home, boot_of, look};
use crate::layout::Layout;
use crate::lifecycle::create::create;
use crate::runtimes::{Runtimes, Started};
use crate::settings::Settings;
use crate::transcript::Transcripts;
use agentd_client::api::Create;
use agentd_core::catalog::Catalog;
use agentd_core::event::FailCause;
use agentd_core::id::AgentId;
use agentd_core::spec::{AgentSpec, Limits};
use agentd_process::{Child, Exit, Identity};
use agentd_store::{Options, SqliteStore, Store};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;

/// Simulated processes, numbered from 0. Each ends when the test says so.
struct Numbers {
    /// The exit of each process, by pid; none while it runs.
    exits: watch::Sender<Vec<Option<Exit>>>,
    terminated: Mutex<Vec<u32>>,
    /// How many of the next starts fail.
    failures: Mutex<u32>,
    /// The next `terminate` panics.
    panics: AtomicBool,
}

impl Numbers {
    fn started(&self) -> usize {
        self.exits.borrow().len()
    }

    fn exit(&self, pid: usize, exit: Exit) {
        self.exits.send_modify(|exits| exits[pid] = Some(exit));
    }
}

impl Runtimes for Numbers {
    fn start(&self, _: AgentId, _: &str, _: &Limits) -> io::Result<Started> {
        let mut failures = self.failures.lock().unwrap();
        if *failures > 0 {
            *failures -= 1;
            return Err(io::Error::other("no process"));
        }
        let mut pid = 0;
        self.exits.send_modify(|exits| {
            pid = exits.len() as u32;
            exits.push(None);
        });
        let start_ticks = 0;
        Ok(Started {
            identity: Identity { pid, start_ticks },
            is_new: true,
            child: None,
            proof: Some("digest".to_owned()),
        })
    }

    fn ended(
        &self,
        _: AgentId,
        process: Identity,
        _: Option<Child>,
    ) -> BoxFuture<'static, Option<Exit>> {
        let mut exits = self.exits.subscribe();
        async move {
            let pid = process.pid as usize;
            let ended = exits.wait_for(|exits| exits[pid].is_some()).await;
            ended.ok().and_then(|exits| exits[pid])
        }
        .boxed()
    }

    fn terminate(&self, process: Identity) {
        assert!(!self.panics.swap(false, Ordering::Relaxed), "on purpose");
        self.terminated.lock().unwrap().push(process.pid);
        self.exit(process.pid as usize, Exit::Code(0));
    }

    fn last_words(&self, _: AgentId) -> String {
        "its last words".to_owned()
    }
}

pub(crate) struct Bed {
    _dir: TempDir,
    pub(crate) daemon: Arc<Daemon>,
    numbers: Arc<Numbers>,
}

pub(crate) fn bed() -> Bed {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::new(dir.path());
    layout.make().unwrap();
    let (identity, suspicion) = look(&layout).unwrap();
    let boot = boot_of(&identity).unwrap();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(Options::new(dir.path())).unwrap());
    let home = Home::new(&layout, identity, suspicion).unwrap();
    let (transcripts, _work) = Transcripts::new(layout.clone(), Arc::clone(&store));
    let settings = Settings {
        home: dir.path().to_owned(),
        program: "no-program".into(),
        orphan: Duration::ZERO,
        env: Default::default(),
        catalog: Catalog::built_in(),
        reload: || Ok(Default::default()),
        service: Default::default(),
        backups: None,
        runtime_env: Vec::new(),
        desktop_env: Vec::new(),
    };
    let numbers = Arc::new(Numbers {
        exits: watch::channel(Vec::new()).0,
        terminated: Mutex::default(),
        failures: Mutex::default(),
        panics: AtomicBool::default(),
    });
    let supervisor = Box::new(Supervisor::new(Arc::clone(&numbers) as Arc<dyn Runtimes>));
    let daemon = Daemon::new(layout, home, boot, store, transcripts, settings, supervisor);
    Bed {
        _dir: dir,
        daemon: Arc::new(daemon),
        numbers,
    }
}

impl Bed {
    pub(crate) async fn agent(&self, prompt: Option<&str>) -> AgentHandle {
        let ask = Create {
            name: Some("coder".to_owned()),
            prompt: prompt.map(str::to_owned),
            spec: AgentSpec {
                provider: Some("demo".to_owned()),
                ..AgentSpec::default()
            },
            ..Create::default()
        };
        let (id, _) = create(&self.daemon, ask, None).await.unwrap();
        self.daemon.handle(id).await.unwrap()
    }

    /// Waits until this many processes were started and the newest one is known.
    async fn started(&self, handle: &AgentHandle, count: usize) {
        let pid = count as u32 - 1;
        let known = handle.until(|guard| {
            let identity = guard.process.as_ref()?.identity?;
            (identity.pid == pid).then_some(())
        });
        known.await;
        assert_eq!(self.numbers.started(), count);
    }
}

#[tokio::test]
async fn an_agent_with_a_prompt_gets_a_process_and_another_one_when_it_dies() {
    let bed = bed();
    let handle = bed.agent(Some("hello")).await;
    bed.started(&handle, 1).await;
    bed.numbers.exit(0, Exit::Signal(9));
    bed.started(&handle, 2).await;
    assert_eq!(handle.lock().await.starts.deaths(), 1);
}

#[tokio::test]
async fn an_agent_without_work_gets_no_process() {
    let bed = bed();
    let handle = bed.agent(None).await;
    let mut guard = handle.lock().await;
    guard.reconcile();
    assert!(guard.process.is_none());
    assert_eq!(bed.numbers.started(), 0);
}

#[tokio::test]
async fn a_process_that_says_that_it_cannot_run_fails_the_agent_with_its_last_words() {
    let bed = bed();
    let handle = bed.agent(Some("hello")).await;
    bed.started(&handle, 1).await;
    bed.numbers.exit(0, Exit::Code(2));
    let failed = handle.until(|guard| guard.state.failed).await;
    assert_eq!(failed, FailCause::CannotRun);
    let guard = handle.lock().await;
    assert!(guard.process.is_none());
    let note = crate::view::last_note(&bed.daemon, handle.id, guard.state.head).await;
    assert_eq!(note.as_deref(), Some("its last words"));
    assert_eq!(bed.numbers.started(), 1);
}

#[tokio::test]
async fn a_start_that_fails_is_tried_again() {
    let bed = bed();
    *bed.numbers.failures.lock().unwrap() = 2;
    let handle = bed.agent(Some("hello")).await;
    bed.started(&handle, 1).await;
    assert_eq!(handle.lock().await.starts.deaths(), 2);
}

#[tokio::test]
async fn a_process_without_a_connection_is_asked_to_end_by_a_signal() {
    let bed = bed();
    let handle = bed.agent(Some("hello")).await;
    bed.started(&handle, 1).await;
    handle.lock().await.end_process();
    assert_eq!(*bed.numbers.terminated.lock().unwrap(), [0]);
    // It ended as requested, so this is no death; another process is started, because there is still work.
    bed.started(&handle, 2).await;
    assert_eq!(handle.lock().await.starts.deaths(), 0);
}

#[tokio::test]
async fn a_process_of_an_earlier_daemon_is_watched_instead_of_a_new_one() {
    let bed = bed();
    let handle = bed.agent(None).await;
    let limits = Limits::default();
    let started = bed.numbers.start(handle.id, "coder", &limits).unwrap();
    {
        let mut guard = handle.lock().await;
        guard.adopt(started.identity);
        assert!(guard.process.as_ref().is_some_and(|it| it.is_adopted));
        // The same process again changes nothing.
        guard.adopt(started.identity);
    }
    bed.numbers.exit(0, Exit::Code(0));
    handle
        .until(|guard| guard.process.is_none().then_some(()))
        .await;
    assert_eq!(bed.numbers.started(), 1);
}
