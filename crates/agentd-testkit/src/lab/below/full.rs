//! A disk that is completely full for some seconds, with the daemon's log on it, while several agents are in
//! mid-turn. When there is space again, all turns end by themselves, and an interrupt works.

use super::ground::Disk;
use super::{fault, told_clearly, try_send, verified};
use crate::lab::reader;
use crate::lab::testbed::{Result, Stuck, Testbed, pause};
use crate::model::script::shell;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const AGENTS: [&str; 4] = ["ada", "bob", "cyd", "dot"];
const SIZE: u64 = 32 << 20;
/// How long nothing can be written.
const FULL: Duration = Duration::from_secs(3);

pub fn run(testbed: &Testbed) -> Result<()> {
    Disk::make(testbed, SIZE)?;
    for agent in AGENTS {
        testbed.create(agent, "")?;
    }
    std::thread::scope(|scope| {
        for agent in AGENTS {
            scope.spawn(move || reader::follow(testbed, agent));
        }
        let done = turns(testbed).and_then(|()| testbed.wait_idle(&AGENTS));
        testbed.is_at_rest.store(true, Ordering::Relaxed);
        done
    })?;
    verified(testbed)
}

fn turns(testbed: &Testbed) -> Result<()> {
    for agent in AGENTS {
        super::completed(testbed, agent, "do: say before")?;
    }
    // Each turn is in progress when the disk fills up: some stream, some run a command.
    let mut under_way = Vec::new();
    for (n, agent) in AGENTS.into_iter().enumerate() {
        let words = "word ".repeat(60);
        let call = shell(&testbed.tool(&format!("full-{n}"), 1000));
        let text = match n % 2 {
            0 => format!("do: slowly 40 {words}"),
            _ => format!("do: {call} ;; slowly 10 {words}"),
        };
        under_way.push(testbed.send(agent, &text, &[])?);
    }
    for agent in AGENTS {
        testbed.until_event(agent, "request_sent", 2)?;
    }
    let filler = testbed.home().join("filler");
    fault(testbed, "disk", "ENOSPC")?;
    let begin = Instant::now();
    pad(&testbed.home().join("daemon.log"))?;
    fill(&filler)?;
    let text = format!("do: say {}", "much ".repeat(2000));
    // A little space may be left inside existing files.
    let refused = loop {
        let (number, ran) = try_send(testbed, AGENTS[0], &text)?;
        if ran.code != Some(0) {
            break ran;
        }
        under_way.push(number);
        fill(&filler)?;
    };
    told_clearly(&refused, &["full", "space", "disk"])?;
    // Reads still work.
    testbed.show(AGENTS[1])?;
    while begin.elapsed() < FULL {
        // Use up space that was freed in the meantime.
        fill(&filler)?;
        pause();
    }
    fs::remove_file(&filler)?;
    fault(testbed, "disk", "room again")?;
    for number in under_way {
        testbed.answer(number)?;
    }
    for agent in AGENTS {
        super::completed(testbed, agent, "do: say after")?;
    }
    interrupted(testbed)
}

/// An agent can still be interrupted.
fn interrupted(testbed: &Testbed) -> Result<()> {
    let agent = AGENTS[0];
    let number = testbed.send(
        agent,
        &format!("do: slowly 100 {}", "word ".repeat(200)),
        &[],
    )?;
    testbed.until_running(agent)?;
    testbed.order(agent, "interrupt", None, &["interrupt", agent, "--json"])?;
    match testbed.answer(number)?.as_str() {
        "interrupted" => Ok(()),
        other => Err(Stuck::Wrong(format!(
            "an interrupted turn ended as {other}"
        ))),
    }
}

/// Uses up what is left of the log's last block: the next line needs another block, and there is none.
fn pad(log: &Path) -> Result<()> {
    const BLOCK: u64 = 4096;
    let mut file = File::options().append(true).open(log)?;
    let room = BLOCK - file.metadata()?.len() % BLOCK;
    Ok(file.write_all(&vec![b'\n'; room as usize])?)
}

/// Uses up all space, byte by byte in the end.
fn fill(filler: &Path) -> Result<()> {
    let mut file = File::options().create(true).append(true).open(filler)?;
    let mut size = 1 << 20;
    while size > 0 {
        match file.write(&vec![0; size]) {
            Ok(written) if written == size => {}
            _ => size /= 2,
        }
    }
    Ok(())
}
