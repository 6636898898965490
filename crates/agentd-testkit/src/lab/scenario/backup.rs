//! Backups under load: two agents work, one of them is reset, and a conversation of a third one is purged, while a client makes
//! full and incremental backups. Two of the backups are restored in the end: the first into a new directory, and a chain into one
//! that exists.

use crate::lab::clients::Ran;
use crate::lab::testbed::{Result, Stuck, Testbed, pause};
use crate::lab::{reader, restored};
use crate::model::script::shell;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const AGENTS: [&str; 2] = ["ada", "bob"];
/// It is reset after its second turn.
const RESET: &str = "ada";
/// Its first conversation is purged between two backups. It is not among the agents of the run, because other promises
/// are about content that is gone then.
const PURGED: &str = "old";
/// The fewest and the most turns of an agent. In between, it works for as long as backups are made.
const TURNS: (usize, usize) = (3, 12);
const INCREMENTAL: &str = "--incremental";

pub fn run(testbed: &Testbed) -> Result<()> {
    let mut backups = Backups::new(testbed)?;
    for agent in AGENTS {
        testbed.create(agent, "")?;
    }
    create_purged(testbed)?;
    let is_over = AtomicBool::new(false);
    let made = std::thread::scope(|scope| {
        let is_over = &is_over;
        for agent in AGENTS {
            scope.spawn(move || reader::follow(testbed, agent));
        }
        let load = AGENTS.map(|agent| scope.spawn(move || turns(testbed, agent, is_over)));
        let made = backups.make_all();
        is_over.store(true, Ordering::Relaxed);
        let mut worked = Ok(());
        for one in load {
            let one = one.join();
            let one = one.unwrap_or_else(|_| Err(Stuck::Wrong("a client panicked".to_owned())));
            worked = worked.and(one);
        }
        testbed.wait_idle(&AGENTS)?;
        worked.and(made)
    })?;
    backups.check()?;
    let mut number = 0;
    for (file, target) in made.iter().zip([Target::New, Target::Existing]) {
        number += 1;
        if target == Target::Existing {
            fs::create_dir(restored_home(testbed, number))?;
        }
        while restore(testbed, file, number)? == Restored::Cut {
            pause();
            if target == Target::New {
                number += 1;
            }
        }
    }
    Ok(())
}

/// The directory that a backup is restored into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// Another one for each attempt.
    New,
    /// A restore that was killed is repeated into the same one.
    Existing,
}

/// The turns of one agent.
fn turns(testbed: &Testbed, agent: &str, is_over: &AtomicBool) -> Result<()> {
    let (fewest, most) = TURNS;
    for n in 0..most {
        if n >= fewest && is_over.load(Ordering::Relaxed) {
            break;
        }
        let call = shell(&testbed.tool(&format!("{agent}-{n}"), 40));
        let script = format!("do: slowly 5 a few words first | {call} ;; say done with {n}");
        testbed.ask(agent, &script)?;
        if agent == RESET && n == 1 {
            testbed.reset(agent, "reset", &testbed.op(1), &[])?;
        }
    }
    Ok(())
}

fn create_purged(testbed: &Testbed) -> Result<()> {
    let file = testbed.agent_file(PURGED, "")?.display().to_string();
    let create = ["create", PURGED, "-f", &file, "--json"];
    testbed.order(PURGED, "create", None, &create)?;
    let text = "do: say this is purged later";
    let send = ["send", PURGED, "--no-wait", "--json", "--key", "old", text];
    testbed.order(PURGED, "send", None, &send).map(drop)
}

fn purge(testbed: &Testbed) -> Result<()> {
    testbed.reset(PURGED, "reset", &testbed.op(2), &[])?;
    let op = testbed.op(3);
    let args = [
        "purge",
        PURGED,
        "--conversation",
        "1",
        "--yes",
        "--op",
        &op,
        "--json",
    ];
    let ran = testbed.order(PURGED, "purge", Some(&op), &args)?;
    match ran.code {
        Some(0) => Ok(()),
        _ => Err(Stuck::Wrong(format!("not purged: {}", ran.stderr))),
    }
}

/// The client that makes backups.
struct Backups<'a> {
    testbed: &'a Testbed,
    /// A directory in which each backup gets a name of its own.
    dir: PathBuf,
    /// A file that each backup replaces, in another directory: it cannot be a part of a chain.
    file: PathBuf,
    /// The newest backup that was acknowledged, for each of these two.
    newest: BTreeMap<PathBuf, String>,
}

impl<'a> Backups<'a> {
    fn new(testbed: &'a Testbed) -> Result<Self> {
        let dir = testbed.root.join("backups");
        let other = testbed.root.join("latest");
        fs::create_dir(&dir)?;
        fs::create_dir(&other)?;
        Ok(Self {
            testbed,
            dir,
            file: other.join("latest.backup"),
            newest: BTreeMap::new(),
        })
    }

    /// Makes all backups, and returns those that are to be restored.
    fn make_all(&mut self) -> Result<Vec<String>> {
        let (dir, file) = (self.dir.clone(), self.file.clone());
        let first = self.make(&dir, &[])?;
        self.make(&file, &["--force"])?;
        purge(self.testbed)?;
        self.make(&dir, &[INCREMENTAL])?;
        self.make(&file, &["--force"])?;
        let last = self.make(&dir, &[INCREMENTAL])?;
        Ok(vec![first, last])
    }

    /// Makes a backup, and repeats it until one is acknowledged. After each attempt that failed, the earlier ones are
    /// checked.
    fn make(&mut self, to: &Path, more: &[&str]) -> Result<String> {
        let path = to.display().to_string();
        let mut args = vec!["backup", &path, "--json"];
        args.extend(more);
        loop {
            let heads = self.heads();
            let at = self.testbed.record.at();
            let ran = self.testbed.cli("", &args)?;
            let made = ran.json().filter(|_| ran.code == Some(0));
            let made = made.unwrap_or_default();
            let line = json!({"at": at, "until": self.testbed.record.at(), "to": path, "heads": heads,
                              "file": made["file"], "digest": made["digest"], "exit": ran.code,
                              "error": ran.stderr});
            self.testbed.record.line("backups.jsonl", &line)?;
            if let Some(file) = made["file"].as_str() {
                // The first one is whole, so there is no reason to make another full one.
                if more.contains(&INCREMENTAL) && made["incremental"] != true {
                    return Err(Stuck::Wrong(format!("not incremental: {made}")));
                }
                self.newest.insert(to.to_owned(), file.to_owned());
                return Ok(file.to_owned());
            }
            if ran.code == Some(2) {
                return Err(Stuck::Wrong(format!("{args:?}: {}", ran.stderr)));
            }
            self.check()?;
            pause();
        }
    }

    /// The last event of each agent, as the API shows it: the backup that follows must have it.
    fn heads(&self) -> Map<String, Value> {
        let looks = AGENTS.iter().filter_map(|agent| {
            let shown = self.testbed.look(agent)?;
            let head = shown["head"].as_u64()?;
            Some(((*agent).to_owned(), json!(head)))
        });
        looks.collect()
    }

    /// Records whether the newest backups, and those that they need, can be used.
    fn check(&self) -> Result<()> {
        for file in self.newest.values() {
            let args = ["backup", "--verify", file, "--json"];
            let ran = until_done(self.testbed, &self.testbed.home(), &args)?;
            let told = ran.json().unwrap_or_default();
            let line = json!({"at": self.testbed.record.at(), "file": file, "is_whole": ran.code == Some(0),
                              "digest": told["digest"], "text": ran.stderr});
            self.testbed.record.line("backup_checks.jsonl", &line)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Restored {
    Recorded,
    /// The client was killed before there was a home.
    Cut,
}

fn restored_home(testbed: &Testbed, number: usize) -> PathBuf {
    testbed.root.join(format!("restored-{number}"))
}

/// Restores a backup into a home, and records what `agentd verify` says of it and its journals.
fn restore(testbed: &Testbed, file: &str, number: usize) -> Result<Restored> {
    let home = restored_home(testbed, number);
    let into = home.display().to_string();
    let args = ["restore-backup", file, "--into", &into, "--json"];
    let at = testbed.record.at();
    let ran = testbed.cli_at(&testbed.home(), &args)?;
    if is_cut(&ran) && !is_home(&home) {
        return Ok(Restored::Cut);
    }
    let is_restored = ran.code == Some(0) || is_cut(&ran);
    let (mut is_clean, mut text) = (false, ran.stderr);
    if is_restored {
        let verified = until_done(testbed, &home, &["verify", "--json"])?;
        let report = verified.json().unwrap_or_default();
        is_clean = verified.code == Some(0) && report["clean"] == true;
        text = verified.stderr;
    }
    if is_clean {
        restored::record(testbed, &home, number)?;
    }
    let line = json!({"at": at, "number": number, "file": file, "is_restored": is_restored,
                      "is_clean": is_clean, "text": text});
    testbed.record.line("restored.jsonl", &line)?;
    Ok(Restored::Recorded)
}

/// Whether a restore that was killed had already completed the home.
fn is_home(home: &Path) -> bool {
    home.join("journal.db").exists() && !home.join(".agentd-restore").exists()
}

/// Repeats a command that changes nothing until it was not cut off.
fn until_done(testbed: &Testbed, home: &Path, args: &[&str]) -> Result<Ran> {
    loop {
        let ran = testbed.cli_at(home, args)?;
        if !is_cut(&ran) {
            return Ok(ran);
        }
        pause();
    }
}

/// Whether a signal ended the client.
fn is_cut(ran: &Ran) -> bool {
    matches!(ran.code, None | Some(130 | 143))
}
