//! The key reaches the provider only: it is in no file, no line of output and no tool.

use super::judge::judge;
use super::process::{Ended, until};
use super::test_agent::{Run, TestAgent, contains};
use agentd_testkit::model::Format;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The key of a provider that the agent does not use.
const OTHER: &str = "gm-canary-550a1b7e2c9d8f46";
const CANARY: &str = "sk-canary-7d1f0c2b9a8e4f53";

fn run(harness: &TestAgent) -> Run<'_> {
    let file = harness.agent_file("");
    let run = harness.run().arg("--file").arg(file);
    run.env("ANTHROPIC_API_KEY", CANARY)
        .env("GEMINI_API_KEY", OTHER)
}

/// Searches all files except the one in which the user stored the key.
fn nothing_in(dir: &Path, known: &Path) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            nothing_in(&path, known);
        } else if kind.is_file() && path != known {
            for key in [CANARY, OTHER] {
                let found = contains(path.to_str().unwrap(), key.as_bytes());
                assert!(!found, "a key is in {}", path.display());
            }
        }
    }
}

fn nothing_said(ended: &Ended) {
    for key in [CANARY, OTHER] {
        assert!(!ended.stdout.contains(key), "{}", ended.stdout);
        assert!(!ended.stderr.contains(key), "{}", ended.stderr);
    }
}

#[test]
fn the_key_is_in_no_file_no_line_and_no_tool() {
    let harness = TestAgent::new(Format::Anthropic);
    let key_file = harness.work().join("key.txt");
    fs::write(&key_file, format!("{CANARY}\n{OTHER}")).unwrap();
    let script = r#"do: call shell {"command": "env; cat /proc/self/environ; cat /proc/$PPID/environ"}
        | call shell {"command": "cat key.txt; echo; cat key.txt >&2"}
        | call shell {"command": "head -c 14 key.txt; sleep 0.2; tail -c +15 key.txt"}
        | call read_file {"file_path": "key.txt"}
        | call search_files {"pattern": "canary.*"}
        | call shell {"command": "cat key.txt; until [ -e release ]; do sleep 0.02; done; cat key.txt"}
        ;; say done"#;
    let agent = run(&harness).prompt(script).start();
    agent.nth_line("result", 4, |line| line["kind"] == "result");
    let tools = until("the last tool", || {
        let tools = harness.tool_processes();
        (!tools.is_empty()).then_some(tools)
    });
    for pid in [tools, harness.shims()].concat() {
        for what in ["environ", "cmdline"] {
            let file = format!("/proc/{pid}/{what}");
            for key in [CANARY, OTHER] {
                assert!(!contains(&file, key.as_bytes()), "{file}");
            }
        }
    }
    let killed = agent.kill();
    nothing_said(&killed);
    nothing_in(harness.path(), &key_file);
    fs::write(harness.work().join("release"), "").unwrap();
    let resumed = run(&harness).resume().continue_turn().ended();
    assert_eq!(resumed.statuses(), ["completed"], "{resumed:#?}");
    nothing_said(&resumed);
    judge(&harness, &[&killed, &resumed]);
    nothing_in(harness.path(), &key_file);
    for request in harness.model.requests() {
        let body = request.body.to_string();
        assert!(!body.contains(CANARY) && !body.contains(OTHER));
    }
}

#[test]
fn the_key_is_in_no_failure() {
    let harness = TestAgent::new(Format::Anthropic);
    let nowhere = Path::new("");
    let refused = run(&harness).prompt("do: fail 401").ended();
    assert_eq!(refused.code, Some(1), "{refused:#?}");
    nothing_said(&refused);
    // No server listens there.
    let agent = run(&harness)
        .resume()
        .prompt("do: say one")
        .base_url("http://127.0.0.1:1")
        .start();
    agent.event("note");
    let killed = agent.kill();
    nothing_said(&killed);
    for text in ["no address", "http://user:secret@127.0.0.1:1/?key=x"] {
        let agent = run(&harness).resume().prompt("do: say one");
        let mut agent = agent.base_url(text).start();
        until("a failure", || {
            let lines = agent.lines();
            let failed = lines.iter().any(|line| line["kind"] == "note");
            (failed || !agent.is_running()).then_some(())
        });
        nothing_said(&if agent.is_running() {
            agent.kill()
        } else {
            agent.ended()
        });
    }
    nothing_in(harness.path(), nowhere);
}

#[test]
fn the_process_that_holds_the_key_cannot_be_looked_into() {
    let harness = TestAgent::new(Format::Anthropic);
    let mut agent = run(&harness).open().start();
    agent.send("do: say one");
    agent.turn_result(0);
    // The files in /proc of a process that is not dumpable belong to root, whichever user runs it.
    let owner = fs::metadata(format!("/proc/{}/environ", agent.pid())).unwrap();
    assert_eq!(owner.uid(), 0);
    let maps = fs::metadata(format!("/proc/{}/maps", agent.pid())).unwrap();
    assert_eq!(maps.uid(), 0);
    agent.close();
    nothing_said(&agent.ended());
}
