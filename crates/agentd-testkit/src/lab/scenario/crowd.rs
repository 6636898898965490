//! Several agents at once, each with a few turns.

use crate::lab::reader;
use crate::lab::testbed::{Result, Stuck, Testbed};
use crate::model::script::shell;

const AGENTS: [&str; 4] = ["ada", "bob", "cyd", "dot"];

pub fn run(testbed: &Testbed) -> Result<()> {
    for agent in AGENTS {
        testbed.create(agent, "")?;
    }
    std::thread::scope(|scope| {
        for agent in AGENTS {
            scope.spawn(move || reader::follow(testbed, agent));
        }
        let all = AGENTS.map(|agent| scope.spawn(move || turns(testbed, agent)));
        let mut done = Ok(());
        for one in all {
            let one = one.join();
            let one = one.unwrap_or_else(|_| Err(Stuck::Wrong("a client panicked".to_owned())));
            done = done.and(one);
        }
        testbed.wait_idle(&AGENTS)?;
        done
    })
}

fn turns(testbed: &Testbed, agent: &str) -> Result<()> {
    for n in 0..3 {
        let call = shell(&testbed.tool(&format!("{agent}-{n}"), 60));
        testbed.ask(
            agent,
            &format!("do: slowly 10 a few words first | {call} ;; say done with {n}"),
        )?;
    }
    Ok(())
}
