//! One run, in its own process.

use super::THEMES;
use super::attack::{Attack, Needs};
use super::layers::Mode;
use super::run::{Ground, Order, Tried, may_trace};
use super::testbed::{Level, Testbed};
use std::fs;
use std::io;
use std::time::Instant;

/// Conversations grow with each attack, and so does every request.
const ATTACKS_PER_WORLD: usize = 30;

/// How often an attack is tried in a control run before it counts as one that does not work.
const CONTROL_TRIES: usize = 3;

/// Executes a run, in this process.
pub fn work(order: &Order) -> io::Result<Vec<Tried>> {
    let mode = Mode::parse(&order.mode).ok_or_else(|| io::Error::other("no such mode"))?;
    let level = match order.ground.has_namespaces() {
        true => Level::Default,
        false => Level::ReadOnly,
    };
    let mut testbeds = 0;
    let mut shared: Option<Testbed> = None;
    let mut tried = Vec::new();
    let mut attacks = 0;
    let mut make = || -> io::Result<Testbed> {
        testbeds += 1;
        let root = order.root.join(testbeds.to_string());
        fs::create_dir(&root)?;
        Testbed::new(&root, mode, level).map_err(io::Error::other)
    };
    for theme in &THEMES {
        for attack in theme.attacks {
            let is_wanted = match &order.only {
                Some(only) => *only == attack.name || *only == theme.name,
                // Attacks that do not depend on the sandbox are tried with namespaces.
                None => theme.is_about_sandbox || order.ground.has_namespaces(),
            };
            if !is_wanted || !can(attack, order.ground) {
                continue;
            }
            let begin = Instant::now();
            let testbed = match shared.take() {
                Some(testbed) => testbed,
                None => {
                    attacks = 0;
                    make()?
                }
            };
            let mut went = (attack.run)(&testbed);
            // Without the defence an attack must succeed. What it looks for on a busy host is not always there at once.
            for _ in 1..CONTROL_TRIES {
                if mode != Mode::Control || attack.is_alone || matches!(went, Ok(Some(_))) {
                    break;
                }
                if matches!(testbed.restore(), Ok(true)) {
                    went = (attack.run)(&testbed);
                }
            }
            let took_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
            let saw = testbed.last_seen();
            // A testbed is not reused after an `alone` attack that did not simply fail, or if it cannot be restored.
            let is_used_up = attack.is_alone && !matches!(went, Ok(None));
            attacks += 1;
            if !is_used_up && attacks < ATTACKS_PER_WORLD && matches!(testbed.restore(), Ok(true)) {
                shared = Some(testbed);
            }
            let (evidence, error) = match went {
                Ok(evidence) => (evidence, None),
                Err(stuck) => (None, Some(stuck.to_string())),
            };
            tried.push(Tried {
                theme: theme.name.to_owned(),
                attack: attack.name.to_owned(),
                evidence,
                error,
                saw,
                took_ms,
            });
        }
    }
    if !order.ground.has_namespaces() && order.only.is_none() {
        tried.push(default_refuses(&mut make)?);
    }
    Ok(tried)
}

/// Without namespaces an agent with the default sandbox runs no command at all.
fn default_refuses(make: &mut dyn FnMut() -> io::Result<Testbed>) -> io::Result<Tried> {
    let begin = Instant::now();
    let testbed = make()?;
    let mut spec = testbed.spec();
    spec.sandbox = None;
    let ran = testbed.create_known("hostile", spec).and_then(|()| {
        testbed.turn(
            "hostile",
            r#"do: call shell {"command":"touch made"} ;; say done"#,
        )
    });
    let evidence = testbed.made(&testbed.work().join("made"));
    Ok(Tried {
        theme: "no namespaces".to_owned(),
        attack: "default-runs".to_owned(),
        evidence,
        error: ran.err().map(|stuck| stuck.to_string()),
        saw: testbed.last_seen(),
        took_ms: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

fn can(attack: &Attack, ground: Ground) -> bool {
    match attack.needs {
        Needs::Nothing => true,
        Needs::Workspace => ground.has_namespaces(),
        Needs::Root => ground == Ground::Root,
        Needs::Tracing => ground.is_root() || may_trace(),
    }
}
