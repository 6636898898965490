//! How often a new store syncs: counted from outside by `strace`, if that is installed.

use crate::lab::{Author, Lab, run};
use agentd_store::{Options, SqliteStore};
use agentd_testkit::faulty_disk::{FaultyDisk, FileKind};
use std::path::{Path, PathBuf};
use std::process::Command;

const DIR: &str = "AGENTD_SYNCS_DIR";
const WITH_AGENT: &str = "AGENTD_SYNCS_AGENT";

/// Not a test: the process that is traced. It does nothing unless its variable is set.
#[test]
fn watched_process() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let store = SqliteStore::open(Options::new(PathBuf::from(dir))).unwrap();
    if std::env::var_os(WITH_AGENT).is_some() {
        run(async { Author::create(&store, 1, "one").await });
    }
    // As a kill would: closing is not part of making it.
    std::process::exit(0);
}

/// The syncs of a process that creates a store; none if it cannot be traced.
fn syncs(dir: &Path, variables: &[&str]) -> Option<Vec<String>> {
    let log = dir.with_extension("strace");
    let mut strace = Command::new("strace");
    strace
        .args([
            "-f",
            "-qq",
            "-y",
            "-e",
            "trace=fsync,fdatasync,sync_file_range,msync",
        ])
        .arg("-o")
        .arg(&log)
        .arg(std::env::current_exe().unwrap())
        .args(["syncs::watched_process", "--exact"])
        .env(DIR, dir);
    for variable in variables {
        strace.env(variable, "1");
    }
    let ran = strace.output().ok()?;
    if !ran.status.success() {
        println!("skipped: {}", String::from_utf8_lossy(&ran.stderr));
        return None;
    }
    let text = std::fs::read_to_string(log).unwrap();
    let lines = text.lines().filter(|line| line.contains("sync"));
    Some(lines.map(str::to_owned).collect())
}

#[test]
fn a_new_store_is_made_with_few_syncs() {
    let lab = Lab::new();
    let Some(made) = syncs(&lab.dir(), &[]) else {
        println!("skipped: no strace");
        return;
    };
    // Leaves room for the home's identity within six.
    assert!(made.len() <= 4, "{made:#?}");
    assert!(!lab.dir().join("derived.db").exists());
    // What was left is a whole store.
    let report = SqliteStore::inspect(&lab.options()).unwrap();
    assert!(report.is_clean(), "{report:?}");

    let lab = Lab::new();
    let with_agent = syncs(&lab.dir(), &[WITH_AGENT]).unwrap();
    // The log, its directory, and one for each of the two commits.
    assert!(with_agent.len() <= made.len() + 4, "{with_agent:#?}");
}

/// The same from inside, wherever the tests run: SQLite syncs nothing before the first commit.
#[test]
fn sqlite_itself_syncs_nothing_to_make_a_store() {
    let (lab, disk) = (Lab::new(), FaultyDisk::new().unwrap());
    let options = Options {
        vfs: Some(disk.vfs().to_owned()),
        ..lab.options()
    };
    let store = SqliteStore::open(options).unwrap();
    assert_eq!(disk.counts().syncs, 0);
    assert_eq!(disk.counts_of(FileKind::Journal).writes, 0);
    run(async { Author::create(&store, 1, "one").await });
    assert!(disk.counts().syncs <= 3, "{:?}", disk.counts());
}
