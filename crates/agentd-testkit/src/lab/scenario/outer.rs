//! An agent whose program is a command, or speaks the Agent Client Protocol, through turns, a reset and its undo. No
//! prompt reaches the program twice.

use crate::lab::reader;
use crate::lab::testbed::{Result, Stuck, Testbed};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

const AGENT: &str = "worker";

/// The same as an agent of the Agent Client Protocol, which can load its sessions.
const ACP_SCRIPT: &str = r#"#!/bin/bash
session=none
while IFS= read -r line; do
  [[ $line =~ \"id\":([0-9]+) ]] && id=${BASH_REMATCH[1]}
  case $line in
    *'"method":"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
    *'"method":"session/new"'*) session=s-$$; result="{\"sessionId\":\"$session\"}" ;;
    *'"method":"session/load"'*) result='{}' ;;
    *'"method":"session/prompt"'*)
      [[ $line =~ .*\"text\":\"([^\"]*)\" ]] && echo "${BASH_REMATCH[1]}" >> "$DELIVERED"
      for word in one word after the other; do
        echo "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"$session\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$word \"}}}}"
        sleep 0.02
      done
      result='{"stopReason":"end_turn"}' ;;
    *) continue ;;
  esac
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$result}"
done
"#;

/// Records each prompt before it answers, a word at a time.
const SCRIPT: &str = r#"#!/bin/bash
while IFS= read -r -d '' prompt; do
  echo "$prompt" >> "$DELIVERED"
  for word in the answer to "$prompt"; do printf '%s ' "$word"; sleep 0.02; done
  printf '\0'
done
"#;

pub fn run_command(testbed: &Testbed) -> Result<()> {
    run(testbed, "command", SCRIPT)
}

pub fn run_acp(testbed: &Testbed) -> Result<()> {
    run(testbed, "acp", ACP_SCRIPT)
}

fn run(testbed: &Testbed, runtime: &str, text: &str) -> Result<()> {
    let script = testbed.root.join("agent.sh");
    fs::write(&script, text)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    // Its process ends soon after the last turn, so that none is left at rest.
    let more = format!(
        "runtime: {runtime}\ncommand:\n  program: /usr/bin/env\n  args: [\"DELIVERED={}\", \"{}\"]\nidle_ms: 50\n",
        delivered(testbed).display(),
        script.display()
    );
    testbed.create(AGENT, &more)?;
    let done = std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, AGENT));
        let done = turns(testbed);
        testbed.wait_idle(&[AGENT])?;
        done
    });
    once(testbed)?;
    done
}

fn delivered(testbed: &Testbed) -> PathBuf {
    testbed.root.join("delivered.txt")
}

fn turns(testbed: &Testbed) -> Result<()> {
    testbed.ask(AGENT, "the first prompt")?;
    testbed.ask(AGENT, "the second prompt")?;
    testbed.reset(AGENT, "reset", &testbed.op(1), &[])?;
    testbed.ask(AGENT, "the third prompt")?;
    testbed.reset(AGENT, "undo", &testbed.op(2), &[])?;
    testbed.ask(AGENT, "the last prompt")?;
    testbed.until("sleep", || {
        let shown = testbed.look(AGENT)?;
        (shown["process"]["state"] == "asleep").then_some(())
    })
}

/// No prompt has reached the program twice.
fn once(testbed: &Testbed) -> Result<()> {
    let lines = fs::read_to_string(delivered(testbed)).unwrap_or_default();
    let mut known = BTreeSet::new();
    match lines.lines().find(|line| !known.insert(*line)) {
        Some(twice) => Err(Stuck::Wrong(format!(
            "`{twice}` was delivered to the program twice"
        ))),
        None => Ok(()),
    }
}
