//! The journal's head: the store detects a journal that has lost acknowledged events.

use crate::lab::{Author, Lab, events_of, run};
use agentd_core::event::{NewEvent, Note};
use agentd_core::id::{AgentId, Seq};
use agentd_core::time::Timestamp;
use agentd_store::{
    Append, Checked, Disk, DraftChunk, Error, HeadState, Import, Options, SqliteStore, Store as _,
    Unreadable,
};
use agentd_testkit::faulty_disk::{Fault, FaultyDisk, FileKind, How, Op};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Two agents as a killed process leaves them. The last events of the second one are only in the log.
struct Killed {
    lab: Lab,
    hit: AgentId,
    /// The last event of `hit` that is in the file, and its last one of all.
    kept: Seq,
    head: Seq,
}

impl Killed {
    async fn new() -> Self {
        let lab = Lab::new();
        let store = lab.open();
        let mut safe = Author::create(&store, 1, "safe").await;
        let events = safe.turn("hello", "there");
        safe.append(&store, events).await;
        let mut hit = Author::create(&store, 2, "hit").await;
        store.checkpoint().await.unwrap();
        let kept = hit.head;
        for n in 0..3 {
            let events = hit.turn(&format!("number {n}"), "acknowledged");
            hit.append(&store, events).await;
        }
        Self {
            hit: hit.agent,
            kept,
            head: hit.head,
            lab: lab.copy(),
        }
    }

    fn copy(&self) -> Self {
        Self {
            lab: self.lab.copy(),
            ..*self
        }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.lab.dir().join(name)
    }

    /// Damages the log in one way.
    fn harm(&self, change: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>) {
        let path = self.path("journal.db-wal");
        match change(fs::read(&path).unwrap()) {
            Some(log) => fs::write(path, log).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
    }
}

type Harm = fn(Vec<u8>) -> Option<Vec<u8>>;

fn harms() -> [(&'static str, Harm); 4] {
    [
        ("deleted", |_| None),
        ("emptied", |_| Some(Vec::new())),
        ("cut", |mut log| {
            log.truncate(log.len() / 2);
            Some(log)
        }),
        ("flipped", |mut log| {
            log[100] ^= 1;
            Some(log)
        }),
    ]
}

#[test]
fn a_log_that_was_deleted_cut_or_flipped_after_a_kill_is_noticed() {
    run(async {
        let whole = Killed::new().await;
        for (name, harm) in harms() {
            println!("{name}");
            let killed = whole.copy();
            killed.harm(harm);
            let harmed = fs::read(killed.path("journal.db-wal")).ok();

            // `verify` names the agent and what it has lost; the other one is well.
            let report = SqliteStore::inspect(&killed.lab.options()).unwrap();
            assert!(!report.is_clean());
            assert_eq!(report.head, HeadState::Ahead);
            let [(agent, damage)] = report.damaged.as_slice() else {
                panic!("{:?}", report.damaged);
            };
            assert_eq!((*agent, damage.through), (killed.hit, killed.head));
            assert!(damage.from > killed.kept);
            assert_eq!(damage.reason, Unreadable::Missing);
            assert_eq!(report.names[&killed.hit], "hit");

            // Start-up says the same, and leaves the files as they are.
            let refused = SqliteStore::open(killed.lab.options())
                .map(drop)
                .unwrap_err();
            let Error::Behind { missing, .. } = &refused else {
                panic!("{refused:?}");
            };
            assert_eq!(missing.agents, report.damaged);
            assert!(!missing.and_maybe_more);
            let text = refused.to_string();
            assert!(text.contains("agentd verify --repair"), "{text}");
            // SQLite makes an empty log where there is none.
            let left = fs::read(killed.path("journal.db-wal")).unwrap_or_default();
            assert_eq!(left, harmed.unwrap_or_default());

            // So the log can be put back.
            let log = fs::read(whole.path("journal.db-wal")).unwrap();
            fs::write(killed.path("journal.db-wal"), log).unwrap();
            drop(fs::remove_file(killed.path("journal.db-shm")));
            let store = killed.lab.open();
            let events = events_of(&store, killed.hit).await;
            assert_eq!(events.len() as u64, killed.head.0);
            assert!(store.verify(None).await.unwrap().is_clean());
        }
    });
}

/// The control: without the head, the loss is not detected.
#[test]
fn without_a_head_a_lost_log_goes_unnoticed() {
    run(async {
        let whole = Killed::new().await;
        for (name, harm) in harms() {
            let killed = whole.copy();
            killed.harm(harm);
            fs::remove_file(killed.path("journal.head")).unwrap();
            let store = killed.lab.open();
            let report = store.verify(None).await.unwrap();
            assert!(report.is_clean(), "{name}: {report:?}");
            let events = events_of(&store, killed.hit).await;
            assert!((events.len() as u64) < killed.head.0, "{name}");
        }
    });
}

/// Long enough for each of these journals.
const CHECK: Duration = Duration::from_secs(60);

#[test]
fn a_quick_check_refuses_what_a_start_refuses_and_changes_nothing() {
    run(async {
        let whole = Killed::new().await;
        let well = whole.copy();
        let log = fs::read(well.path("journal.db-wal")).unwrap();
        let checked = SqliteStore::quick_check(&well.lab.options(), CHECK).unwrap();
        assert_eq!(checked, Checked::Sound);
        assert_eq!(fs::read(well.path("journal.db-wal")).unwrap(), log);
        for (name, harm) in harms() {
            let killed = whole.copy();
            killed.harm(harm);
            let refused = SqliteStore::quick_check(&killed.lab.options(), CHECK).unwrap_err();
            assert!(matches!(refused, Error::Behind { .. }), "{name}: {refused}");
        }
    });
}

#[test]
fn a_quick_check_finds_a_journal_that_is_gone_or_overwritten() {
    run(async {
        let whole = Killed::new().await;
        let nothing = Lab::new();
        let absent = SqliteStore::quick_check(&nothing.options(), CHECK).unwrap();
        assert_eq!(absent, Checked::Absent);
        for (name, contents) in [
            ("deleted", None),
            ("emptied", Some(Vec::new())),
            ("overwritten", Some(vec![b'x'; 40_960])),
        ] {
            let killed = whole.copy();
            let path = killed.path("journal.db");
            if name == "overwritten" {
                // Otherwise its pages may be read from the log.
                fs::remove_file(killed.path("journal.db-wal")).unwrap();
            }
            match contents {
                Some(contents) => fs::write(&path, contents).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let refused = SqliteStore::quick_check(&killed.lab.options(), CHECK).unwrap_err();
            let is_named = matches!(
                refused,
                Error::NoJournal { .. }
                    | Error::Behind { .. }
                    | Error::Unavailable(Disk::Corrupt(_))
            );
            assert!(is_named, "{name}: {refused}");
            assert!(refused.to_string().contains("agentd verify"), "{refused}");
        }
    });
}

#[test]
fn a_journal_that_is_gone_is_never_a_new_home() {
    run(async {
        let whole = Killed::new().await;
        let gone = |dir: &Path, name: &str| drop(fs::remove_file(dir.join(name)));
        let refused = |options: Options, why: &str| {
            let error = SqliteStore::open(options.clone()).map(drop).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::NoJournal { .. }), "{text}");
            assert!(text.contains(why), "{text}");
            assert!(text.contains("verify --repair"), "{text}");
            let error = SqliteStore::inspect(&options).unwrap_err();
            assert!(matches!(error, Error::NoJournal { .. }), "{error}");
        };

        // The head names events.
        let killed = whole.copy();
        let dir = killed.lab.dir();
        gone(&dir, "journal.db");
        gone(&dir, "journal.db-wal");
        refused(killed.lab.options(), "its head lists event");
        assert!(!killed.path("journal.db").exists());
        // So does an empty file not pass for a journal.
        fs::write(killed.path("journal.db"), b"").unwrap();
        refused(killed.lab.options(), "its head lists event");

        // Without a head: a log without its file, or the agents' directories.
        let killed = whole.copy();
        let dir = killed.lab.dir();
        gone(&dir, "journal.db");
        gone(&dir, "journal.head");
        refused(killed.lab.options(), "write-ahead log");
        gone(&dir, "journal.db-wal");
        let agents = dir.join("agents");
        fs::create_dir_all(agents.join(killed.hit.to_string())).unwrap();
        let beside = Options {
            beside: vec![agents.clone()],
            ..killed.lab.options()
        };
        refused(beside.clone(), &killed.hit.to_string());

        // With nothing left of any agent it is a new home.
        fs::remove_dir_all(&agents).unwrap();
        let store = SqliteStore::open(beside.clone()).unwrap();
        assert!(store.verify(None).await.unwrap().is_clean());
        drop(store);
        // Its head says that it is empty, and a directory without a journal is no contradiction.
        fs::create_dir_all(agents.join(killed.hit.to_string())).unwrap();
        drop(SqliteStore::open(beside).unwrap());
    });
}

#[test]
fn a_head_that_is_behind_absent_or_unreadable_is_brought_up_to_date() {
    run(async {
        let whole = Killed::new().await;
        let head = fs::read(whole.path("journal.head")).unwrap();
        let older = |slot: usize| {
            let mut head = head.clone();
            head[slot * 4096] ^= 1;
            head
        };
        let heads = [
            (older(0), HeadState::Good),
            (older(1), HeadState::Good),
            (vec![0; head.len()], HeadState::Unreadable),
            (Vec::new(), HeadState::Unreadable),
            (vec![0xa5; 3000], HeadState::Unreadable),
        ];
        for (bytes, state) in heads {
            let killed = whole.copy();
            fs::write(killed.path("journal.head"), bytes).unwrap();
            let report = SqliteStore::inspect(&killed.lab.options()).unwrap();
            assert!(report.is_clean(), "{report:?}");
            assert_eq!(report.head, state);
            drop(killed.lab.open());
            let report = SqliteStore::inspect(&killed.lab.options()).unwrap();
            assert_eq!((report.is_clean(), report.head), (true, HeadState::Good));
            // It counts again: the same journal cut behind its back.
            let journal = killed.lab.journal();
            journal
                .execute(
                    "DELETE FROM event WHERE position = (SELECT max(position) FROM event)",
                    [],
                )
                .unwrap();
            drop(journal);
            let refused = SqliteStore::open(killed.lab.options())
                .map(drop)
                .unwrap_err();
            assert!(matches!(refused, Error::Behind { .. }), "{refused}");
        }
    });
}

#[test]
fn a_head_that_cannot_be_written_fails_no_commit() {
    let lab = Lab::new();
    run(async {
        // A directory cannot be written as a file, not even by root.
        fs::create_dir_all(lab.dir().join("journal.head")).unwrap();
        let store = lab.open();
        let mut author = Author::create(&store, 1, "one").await;
        let events = author.turn("hello", "there");
        author.append(&store, events).await;
        let report = store.verify(None).await.unwrap();
        assert_eq!(
            (report.is_clean(), report.head),
            (true, HeadState::Unreadable)
        );
        // It is written with the next commit after it can be.
        fs::remove_dir(lab.dir().join("journal.head")).unwrap();
        let events = author.turn("once more", "well");
        author.append(&store, events).await;
        let report = store.verify(None).await.unwrap();
        assert_eq!((report.is_clean(), report.head), (true, HeadState::Good));
    });
}

/// Whether the loss of the log in a crash now would be detected.
fn notices_lost_log(lab: &Lab) -> bool {
    let copy = lab.copy();
    fs::remove_file(copy.dir().join("journal.db-wal")).unwrap();
    matches!(SqliteStore::open(copy.options()), Err(Error::Behind { .. }))
}

#[test]
fn whatever_appends_events_updates_the_head() {
    let (lab, other) = (Lab::new(), Lab::new());
    run(async {
        let store = lab.open();
        let mut author = Author::create(&store, 1, "one").await;
        let events = author.turn("hello", "there");
        author.append(&store, events).await;
        let events = author.reset();
        author.append(&store, events).await;
        store.checkpoint().await.unwrap();
        let at = Timestamp::from_millis(1);
        store.purge(author.fence, author.first, at).await.unwrap();
        // A purge empties the log itself, so the file has its event, and the head too.
        let report = SqliteStore::inspect(&lab.copy().options()).unwrap();
        assert_eq!((report.is_clean(), report.head), (true, HeadState::Good));

        let file = lab.dir().join("export");
        let out = Box::new(fs::File::create(&file).unwrap());
        store.export(author.agent, out).await.unwrap();
        let second = other.open();
        second.checkpoint().await.unwrap();
        let input = Box::new(fs::File::open(&file).unwrap());
        let order = Import::at(Timestamp::from_millis(1));
        second.import(input, order).await.unwrap();
        assert!(notices_lost_log(&other));

        // A claim that sets a damaged tail aside writes an event, too.
        second.checkpoint().await.unwrap();
        drop(second);
        let harm = "UPDATE event SET body = '{' WHERE agent = 1 AND seq = 3";
        assert_eq!(other.journal().execute(harm, []).unwrap(), 1);
        let second = other.open();
        second.checkpoint().await.unwrap();
        let claim = second.claim(author.agent, "next").await.unwrap();
        assert!(claim.quarantined.is_some());
        assert!(notices_lost_log(&other));
    });
}

/// How often the head was written.
fn writes(lab: &Lab) -> u64 {
    let bytes = fs::read(lab.dir().join("journal.head")).unwrap();
    let slots = bytes.chunks(4096);
    let generation = |slot: &[u8]| u64::from_le_bytes(slot[8..16].try_into().unwrap());
    slots.map(generation).max().unwrap()
}

#[test]
fn a_commit_writes_the_head_once_and_a_draft_never() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut author = Author::create(&store, 1, "one").await;
        let before = writes(&lab);
        let events = author.turn("hello", "there");
        author.append(&store, events).await;
        assert_eq!(writes(&lab), before + 1);
        let chunk = DraftChunk {
            request: author.next_try(),
            offset: 0,
            bytes: b"streaming".to_vec(),
        };
        store.write_draft(author.fence, chunk).await.unwrap();
        store.claim(author.agent, "next").await.unwrap();
        assert_eq!(writes(&lab), before + 1);
    });
}

fn note(author: &mut Author) -> Vec<NewEvent> {
    let note = Note {
        about: None,
        text: "on a disk that fails".to_owned(),
    };
    vec![author.event(None, note)]
}

/// Whether a store with these mistakes leaves a head ahead of its journal when a commit fails.
fn is_ahead_after_a_failed_commit(injected_bugs: Option<agentd_store::InjectedBugs>) -> bool {
    let (lab, disk) = (Lab::new(), FaultyDisk::new().unwrap());
    run(async {
        let options = Options {
            vfs: Some(disk.vfs().to_owned()),
            lock_timeout: Duration::from_millis(200),
            injected_bugs,
            ..lab.options()
        };
        let store = SqliteStore::open(options).unwrap();
        let mut author = Author::create(&store, 1, "one").await;
        disk.fail(Fault::new(FileKind::Wal, Op::Write, How::NoSpace));
        let events = note(&mut author);
        let failed = store.append(Append::new(author.fence, events)).await;
        assert!(failed.is_err());
        let copy = lab.copy();
        match SqliteStore::open(copy.options()) {
            Ok(_) => false,
            Err(Error::Behind { .. }) => true,
            Err(error) => panic!("{error}"),
        }
    })
}

#[test]
fn a_head_that_is_written_before_its_commit_is_found() {
    assert!(!is_ahead_after_a_failed_commit(None));
    let mistake: agentd_store::InjectedBugs = |name| name == "head_before_commit";
    assert!(is_ahead_after_a_failed_commit(Some(mistake)));
}
