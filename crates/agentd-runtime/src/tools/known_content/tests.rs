//! What the model does not know is not overwritten, and what changed is shown.

use super::super::tests::{Fixture, call, words};
use super::super::{Consent, Prepared, Toolbox};
use super::{MAX_KNOWN_BYTES, SHOWN_BYTES};
use crate::driver::Tools as _;
use agentd_core::message::CallOutcome;
use agentd_core::state::StartedCall;
use agentd_core::turn::Finished;
use agentd_core::window::SeenFiles;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use tokio::sync::watch;

fn read(path: &str) -> Value {
    json!({"file_path": path})
}

fn write(path: &str, content: &str) -> Value {
    json!({"file_path": path, "content": content})
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"file_path": path, "old_string": old, "new_string": new})
}

/// One process: it remembers the texts that it has shown.
struct Process {
    toolbox: Toolbox,
    seen: SeenFiles,
}

impl Process {
    fn new(fixture: &Fixture) -> Self {
        Self {
            toolbox: fixture.toolbox(),
            seen: SeenFiles::default(),
        }
    }

    async fn finish(&mut self, tool: &str, arguments: Value) -> Finished {
        let call = call(tool, arguments);
        let prepared = self.toolbox.prepare(&call, Consent::NotAsked, &self.seen);
        let started = match prepared.await {
            Prepared::Run(started, _) => StartedCall {
                tool: started.tool,
                task: started.task,
                boot: started.boot,
                change: started.change,
                patched: started.patched,
            },
            Prepared::Refuse { outcome, blocks } => return Finished::new(outcome, blocks),
            Prepared::Ask(why) => panic!("{why}"),
        };
        let (_sender, cancelled) = watch::channel(false);
        let finished = self.toolbox.run(call, started, cancelled).await;
        self.seen.extend(&finished.seen);
        finished
    }

    async fn ok(&mut self, tool: &str, arguments: Value) -> String {
        let finished = self.finish(tool, arguments).await;
        assert_eq!(finished.outcome, CallOutcome::Ok, "{finished:?}");
        words(&finished.blocks)
    }

    async fn error(&mut self, tool: &str, arguments: Value) -> String {
        let finished = self.finish(tool, arguments).await;
        assert_eq!(finished.outcome, CallOutcome::Error, "{finished:?}");
        words(&finished.blocks)
    }
}

#[tokio::test]
async fn a_file_that_was_not_read_is_not_changed() {
    let fixture = Fixture::new();
    fixture.file("a", "old words");
    for (tool, arguments) in [
        ("write_file", write("a", "new")),
        ("edit_file", edit("a", "old", "new")),
        // Without a sandbox there is nothing to leave, and the user is not asked.
        (
            "write_file",
            json!({"file_path": "a", "content": "new", "escalate": "I want to"}),
        ),
    ] {
        let text = fixture.error(tool, arguments).await;
        assert!(
            text.contains("a exists, and you have not read it"),
            "{text}"
        );
        assert!(text.contains("nothing was written"), "{text}");
    }
    assert_eq!(fixture.text("a"), "old words");
    // The same content is no change.
    fixture.ok("write_file", write("a", "old words")).await;
    fixture.file("b", "b");
    fixture.ok("read_file", read("b")).await;
    fixture.ok("write_file", write("b", "new")).await;
}

#[tokio::test]
async fn what_was_read_or_written_may_be_changed_under_any_of_its_names() {
    let fixture = Fixture::new();
    fixture.file("dir/a", "one\ntwo\n");
    symlink("dir", fixture.path("link")).unwrap();
    // A part of it is enough to edit it.
    let part = json!({"file_path": "link/a", "offset": 2, "limit": 1});
    fixture.ok("read_file", part).await;
    fixture
        .ok("edit_file", edit("dir/../dir/a", "two", "2"))
        .await;
    fixture.ok("edit_file", edit("link/a", "one", "1")).await;
    assert_eq!(fixture.text("dir/a"), "1\n2\n");
    fixture.ok("write_file", write("new", "x")).await;
    fixture.ok("edit_file", edit("new", "x", "y")).await;
    fixture.ok("write_file", write("new", "z")).await;
    // A file that is gone is a new one.
    fs::remove_file(fixture.path("new")).unwrap();
    fixture.ok("write_file", write("new", "z")).await;
    // So is an empty one that was read, an image and a binary file.
    for (name, content) in [
        ("empty", &b""[..]),
        ("image", b"\x89PNG\r\n\x1a\n..."),
        ("binary", b"\x00\x01"),
    ] {
        fixture.file(name, content);
        let finished = fixture.finish("read_file", read(name)).await;
        assert_eq!(finished.outcome, CallOutcome::Ok);
        fixture.ok("write_file", write(name, "text")).await;
    }
}

#[tokio::test]
async fn what_changed_is_shown_and_must_be_read_again() {
    let fixture = Fixture::new();
    let mut process = Process::new(&fixture);
    fixture.file("a", "one\ntwo\nthree\n");
    process.ok("read_file", read("a")).await;
    fixture.file("a", "one\n2 sk-0123456789\nthree\n");
    for (tool, arguments) in [
        ("edit_file", edit("a", "three", "3")),
        ("write_file", write("a", "new")),
    ] {
        let text = process.error(tool, arguments).await;
        assert!(text.contains("a has changed since you last read"), "{text}");
        assert!(text.contains("\n-two\n+2 "), "{text}");
        assert!(text.contains("Read the file again"), "{text}");
        assert!(!text.contains("sk-0123456789"), "{text}");
    }
    assert_eq!(fixture.text("a"), "one\n2 sk-0123456789\nthree\n");
    process.ok("read_file", read("a")).await;
    process.ok("edit_file", edit("a", "three", "3")).await;
    // Its own change is known, a later one is not.
    process.ok("edit_file", edit("a", "one", "1")).await;
    fixture.file("a", "");
    let text = process.error("edit_file", edit("a", "3", "4")).await;
    assert!(text.contains("\n-1\n"), "{text}");
}

#[tokio::test]
async fn without_the_text_the_change_is_not_shown() {
    let fixture = Fixture::new();
    let mut first = Process::new(&fixture);
    fixture.file("a", "one");
    first.ok("read_file", read("a")).await;
    let mut second = Process::new(&fixture);
    second.seen = first.seen.clone();
    second.ok("edit_file", edit("a", "one", "two")).await;
    let mut third = Process::new(&fixture);
    third.seen = second.seen.clone();
    fixture.file("a", "three");
    let text = third.error("edit_file", edit("a", "three", "four")).await;
    assert!(text.contains("The difference cannot be shown."), "{text}");
}

#[tokio::test]
async fn a_long_difference_is_cut_after_a_line() {
    let fixture = Fixture::new();
    let mut process = Process::new(&fixture);
    fixture.file("a", "x\n".repeat(10_000));
    process.ok("read_file", read("a")).await;
    fixture.file("a", "yé\n".repeat(10_000));
    let text = process.error("write_file", write("a", "z")).await;
    assert!(text.len() < SHOWN_BYTES + 500, "{}", text.len());
    assert!(text.contains("The beginning of what changed"), "{text}");
    assert!(text.contains("-x\n…\n"), "{text}");
}

#[tokio::test]
async fn a_file_that_is_too_large_to_be_known_is_not_replaced() {
    let fixture = Fixture::new();
    let file = File::create(fixture.path("a")).unwrap();
    file.set_len(MAX_KNOWN_BYTES + 1).unwrap();
    fixture.ok("read_file", read("a")).await;
    let text = fixture.error("write_file", write("a", "x")).await;
    assert!(text.contains("remove it with shell first"), "{text}");
}
