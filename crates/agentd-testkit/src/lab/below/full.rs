//! A disk that is full, filled up to its last byte, so that the last writes before that are short.

use super::{completed, fault, told_clearly, try_send, verified, watched};
use crate::lab::world::{Result, World};
use std::fs::{self, File};
use std::io::Write as _;

const AGENT: &str = "worker";

pub fn run(world: &World) -> Result<()> {
    super::ground::small(world, "8m")?;
    world.create(AGENT, "")?;
    watched(world, AGENT, || turns(world))?;
    verified(world)
}

fn turns(world: &World) -> Result<()> {
    completed(world, AGENT, "do: say before")?;
    // One is under way when the disk is full.
    let words = "word ".repeat(60);
    let under_way = world.send(AGENT, &format!("do: slowly 10 {words}"), &[])?;
    world.until_event(AGENT, "request_sent", 2)?;
    let filler = world.home().join("filler");
    fault(world, "disk", "ENOSPC")?;
    fill(&filler)?;
    let text = format!("do: say {}", "much ".repeat(2000));
    let mut accepted = Vec::new();
    // A little room may be left inside of the files that there are.
    let refused = loop {
        let (number, ran) = try_send(world, AGENT, &text)?;
        if ran.code != Some(0) {
            break ran;
        }
        accepted.push(number);
        fill(&filler)?;
    };
    told_clearly(&refused, &["full", "space", "disk"])?;
    // It can still be asked.
    world.show(AGENT)?;
    fs::remove_file(&filler)?;
    world.answer(under_way)?;
    for number in accepted {
        world.answer(number)?;
    }
    completed(world, AGENT, "do: say after")
}

/// Takes what there is, byte by byte in the end.
fn fill(filler: &std::path::Path) -> Result<()> {
    let mut file = File::options().create(true).append(true).open(filler)?;
    let mut size = 64 * 1024;
    while size > 0 {
        match file.write(&vec![0; size]) {
            Ok(_) => {}
            Err(_) => size /= 2,
        }
    }
    Ok(())
}
