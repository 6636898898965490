//! Files that are created and edited by tools and by a command, while a reader looks at them all the time.

use crate::lab::reader;
use crate::lab::testbed::{Result, Stuck, Testbed};
use crate::model::script::shell;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const AGENT: &str = "worker";
/// The files that only file tools change.
const FILES: [&str; 2] = ["old.txt", "new.txt"];
const PAUSE: Duration = Duration::from_millis(1);

pub fn run(testbed: &Testbed) -> Result<()> {
    let work = fs::canonicalize(testbed.work())?;
    // Long enough that a write takes a moment.
    fs::write(work.join("old.txt"), text("old"))?;
    fs::write(work.join("by-command.txt"), "unchanged\n")?;
    repository(&work)?;
    testbed.create(AGENT, "")?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, AGENT));
        let watcher = scope.spawn(|| watch(testbed, &work, &FILES, &is_over));
        let done = turns(testbed).and_then(|()| testbed.wait_idle(&[AGENT]));
        is_over.store(true, Ordering::Relaxed);
        let watched = watcher.join().unwrap_or_else(|_| {
            let what = "the watcher of files panicked".to_owned();
            Err(Stuck::Wrong(what))
        });
        done.and(watched)
    })
}

/// Several lines, and short enough that nothing is compacted.
fn text(word: &str) -> String {
    format!("{word} line\n").repeat(150)
}

fn turns(testbed: &Testbed) -> Result<()> {
    let read = json!({"file_path": "old.txt"});
    let write = json!({"file_path": "new.txt", "content": text("first")});
    let edit = json!({
        "file_path": "new.txt", "old_string": "first", "new_string": "second", "replace_all": true
    });
    let replace = json!({
        "file_path": "old.txt", "old_string": "old", "new_string": "changed", "replace_all": true
    });
    let replies = [
        format!("call write_file {write}"),
        format!("call edit_file {edit}"),
        format!("call read_file {read}"),
        format!("call edit_file {replace}"),
        "say all files are written".to_owned(),
    ];
    testbed.ask(AGENT, &format!("do: {}", replies.join(" ;; ")))?;
    let command = shell("echo more >> by-command.txt; echo new > made-by-command.txt");
    testbed.ask(
        AGENT,
        &format!("do: {command} ;; say a command did the rest"),
    )?;
    testbed.ask(AGENT, "do: say that was all")?;
    Ok(())
}

/// A work tree, so that the changes of commands can be found.
fn repository(work: &Path) -> Result<()> {
    let identity = ["-c", "user.name=lab", "-c", "user.email=lab@example.com"];
    let commands: [&[&str]; 3] = [
        &["init", "--quiet"],
        &["add", "--all"],
        &["commit", "--quiet", "--message", "first"],
    ];
    for args in commands {
        let mut git = Command::new("git");
        git.args(identity).args(args).current_dir(work);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null");
        match git.status() {
            Ok(status) if status.success() => {}
            // Without git, the scan says so.
            Ok(_) | Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Records every content that a reader of the files sees.
pub(super) fn watch(
    testbed: &Testbed,
    work: &Path,
    files: &[&str],
    is_over: &AtomicBool,
) -> Result<()> {
    let paths: Vec<PathBuf> = files.iter().map(|name| work.join(name)).collect();
    let mut known: BTreeMap<&Path, Option<String>> = BTreeMap::new();
    for path in &paths {
        known.insert(path, look(testbed, path, "first")?);
    }
    while !is_over.load(Ordering::Relaxed) {
        for path in &paths {
            let now = fs::read_to_string(path).ok();
            if known.get(path.as_path()) != Some(&now) {
                known.insert(path, look(testbed, path, "seen")?);
                // The one that was compared, too: it may have been there for an instant.
                record(testbed, path, "seen", now.as_deref())?;
            }
        }
        std::thread::sleep(PAUSE);
    }
    for path in &paths {
        look(testbed, path, "last")?;
    }
    Ok(())
}

fn look(testbed: &Testbed, path: &Path, when: &str) -> Result<Option<String>> {
    let text = fs::read_to_string(path).ok();
    record(testbed, path, when, text.as_deref())?;
    Ok(text)
}

fn record(testbed: &Testbed, path: &Path, when: &str, text: Option<&str>) -> Result<()> {
    let line = json!({"at": testbed.record.at(), "path": path, "when": when, "text": text});
    Ok(testbed.record.line("files.jsonl", &line)?)
}
