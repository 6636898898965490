//! Several agents at once, each with a few turns.

use super::shell;
use crate::lab::reader;
use crate::lab::world::{Result, Stuck, World};

const AGENTS: [&str; 4] = ["ada", "bob", "cyd", "dot"];

pub fn run(world: &World) -> Result<()> {
    for agent in AGENTS {
        world.create(agent, "")?;
    }
    std::thread::scope(|scope| {
        for agent in AGENTS {
            scope.spawn(move || reader::follow(world, agent));
        }
        let all = AGENTS.map(|agent| scope.spawn(move || turns(world, agent)));
        let mut done = Ok(());
        for one in all {
            let one = one.join();
            let one = one.unwrap_or_else(|_| Err(Stuck::Wrong("a client panicked".to_owned())));
            done = done.and(one);
        }
        world.rest(&AGENTS)?;
        done
    })
}

fn turns(world: &World, agent: &str) -> Result<()> {
    for n in 0..3 {
        let call = shell(&world.tool(&format!("{agent}-{n}"), 60));
        world.ask(
            agent,
            &format!("do: slowly 10 a few words first | {call} ;; say done with {n}"),
        )?;
    }
    Ok(())
}
