//! Clients, daemon and runtimes die at any moment: an acknowledged prompt runs once, or ends in a state that the client
//! is told.

use crate::test_daemon::{TestDaemon, kill, until};
use agentd_client::api::{Send, Status};
use agentd_core::event::{Body, Kind};
use agentd_core::id::PromptId;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::time::Duration;

/// A sequence of numbers that is determined by its seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

fn sends() -> usize {
    let long = std::env::var_os("AGENTD_TEST_LONG").is_some();
    if long { 1000 } else { 100 }
}

#[test]
fn what_was_acknowledged_runs_once() {
    let seed = std::env::var("AGENTD_SEED")
        .ok()
        .and_then(|it| it.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("AGENTD_SEED={seed}");
    let mut dice = Dice(seed);
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.start_daemon();
    let names: Vec<String> = (0..4).map(|n| format!("agent-{n}")).collect();
    for name in &names {
        daemon.create(name);
    }
    let mut acknowledged: BTreeMap<String, (String, PromptId)> = BTreeMap::new();
    let (mut clients, mut daemons, mut runtimes) = (0, 0, 0);
    for n in 0..sends() {
        let name = &names[n % names.len()];
        let call = serde_json::json!({ "command": format!("echo {n} >> effects") });
        let send = Send {
            text: format!("do: call shell {call} ;; say done {n}"),
            key: Some(format!("key-{n}")),
            env: daemon.caller(),
            ..Send::default()
        };
        // Sent until it is acknowledged; the client may die, and be started again, at any moment.
        let prompt = until("an acknowledgement", || {
            let dies = dice.below(4) == 0;
            let patience = match dies {
                true => Duration::from_micros(dice.below(3000)),
                false => Duration::from_secs(5),
            };
            let sent = daemon.block(async {
                let client = daemon.client();
                tokio::time::timeout(patience, client.send(name, &send)).await
            });
            clients += usize::from(dies);
            Some(sent.ok()?.ok()?.prompt)
        });
        acknowledged.insert(format!("key-{n}"), (name.clone(), prompt));
        match dice.below(8) {
            0 => {
                daemons += 1;
                daemon.kill_daemon();
                daemon.start_daemon();
            }
            1 | 2 => {
                if let Some(pid) = daemon.pid(name) {
                    runtimes += 1;
                    kill(pid, Signal::KILL);
                }
            }
            _ => {}
        }
    }
    println!("{clients} clients, {daemons} daemons and {runtimes} runtimes died");
    assert!(daemons > 0 && runtimes > 0 && clients > 0);

    let mut statuses: BTreeMap<String, usize> = BTreeMap::new();
    let effects = {
        for (name, prompt) in acknowledged.values() {
            let answer = daemon.answer(name, *prompt);
            *statuses.entry(format!("{:?}", answer.status)).or_default() += 1;
            assert!(
                matches!(answer.status, Status::Completed | Status::Lost),
                "{answer:#?}"
            );
        }
        daemon.effects()
    };
    println!("{statuses:?}");
    for n in 0..sends() {
        let ran = effects
            .iter()
            .filter(|line| **line == n.to_string())
            .count();
        assert!(ran <= 1, "{n} ran {ran} times");
    }
    for name in &names {
        let events = daemon.events(name);
        for (key, (of, prompt)) in &acknowledged {
            if of != name {
                continue;
            }
            let queued = events.iter().filter(|event| match &event.body {
                Body::PromptQueued(queued) => queued.key.as_ref() == Some(key),
                _ => false,
            });
            assert_eq!(queued.count(), 1, "{key}");
            let taken = events.iter().filter(|event| match &event.body {
                Body::PromptsTaken(taken) => taken.prompts.contains(prompt),
                _ => false,
            });
            assert_eq!(taken.count(), 1, "{key}");
        }
        let of = |kind: Kind| events.iter().filter(|event| event.kind() == kind).count();
        assert_eq!(of(Kind::TurnStarted), of(Kind::TurnEnded));
    }
    daemon.requests();
    daemon.verify();
}
