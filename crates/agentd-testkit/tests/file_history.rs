//! Restores of files, on random histories in memory: a restore to any position gives exactly the bytes of that position,
//! an undo gives back what was there before, and nothing that another process changed is overwritten.
#![expect(
    clippy::panic,
    reason = "a test fails by panicking, in what it calls too"
)]

use agentd_core::digest::sha256;
use agentd_core::event::{
    Body, Event, FileBefore, FileChange, FileKept, FileSeen, FileState, FilesPlan, FilesRestored,
    KeptBy, KeptContent, NewEvent, PlannedFile, Position, RestoreTarget, RestoredFile,
    RestoredOutcome, ToolEnded, ToolStarted,
};
use agentd_core::files::{
    CannotRestore, Compared, History, RestorePlan, Selection, Target, compare, restore, undo,
};
use agentd_core::id::{AgentId, CallId, ConversationId, OpId, Seq, TurnId};
use agentd_core::message::CallOutcome;
use agentd_core::time::Timestamp;
use proptest::prelude::*;
use std::collections::BTreeMap;
use uuid::Uuid;

/// Files by their paths, with their modes.
type Tree = BTreeMap<String, (Vec<u8>, u32)>;

/// A journal and the files that it describes.
struct Bench {
    events: Vec<Event>,
    tree: Tree,
    /// The files after each event.
    trees: Vec<Tree>,
    calls: u64,
}

#[derive(Clone, Debug)]
enum Step {
    Write {
        path: u8,
        content: Vec<u8>,
        mode: u32,
    },
    /// The call was refused: nothing is written.
    Refused {
        path: u8,
    },
    Restore {
        to: usize,
    },
    Undo,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let content = || proptest::collection::vec(any::<u8>(), 0..6);
    let mode = prop_oneof![Just(0o644), Just(0o755), Just(0o600)];
    let step = prop_oneof![
        6 => (0..4u8, content(), mode)
            .prop_map(|(path, content, mode)| Step::Write { path, content, mode }),
        1 => (0..4u8).prop_map(|path| Step::Refused { path }),
        2 => (0..30usize).prop_map(|to| Step::Restore { to }),
        1 => Just(Step::Undo),
    ];
    proptest::collection::vec(step, 1..20)
}

fn path_of(n: u8) -> String {
    format!("/work/f{n}")
}

fn state(file: Option<&(Vec<u8>, u32)>) -> FileState {
    file.map_or(FileState::Absent, |(content, mode)| FileState::File {
        mode: *mode,
        hash: sha256(content),
    })
}

impl Bench {
    fn new() -> Self {
        Self {
            events: Vec::new(),
            tree: Tree::new(),
            trees: vec![Tree::new()],
            calls: 0,
        }
    }

    fn agent() -> AgentId {
        AgentId::new(Uuid::from_u128(1))
    }

    fn push(&mut self, body: impl Into<Body>) {
        let event = NewEvent {
            at: Timestamp::from_millis(1),
            conversation: ConversationId::new(Uuid::from_u128(2)),
            turn: Some(TurnId::new(Uuid::from_u128(3))),
            body: body.into(),
        };
        let seq = Seq(self.events.len() as u64 + 1);
        self.events.push(event.placed(Self::agent(), seq));
        self.trees.push(self.tree.clone());
    }

    fn keep(&mut self, by: KeptBy, path: &str) {
        let before = match self.tree.get(path) {
            None => FileBefore::Absent,
            Some((content, mode)) => FileBefore::File {
                mode: *mode,
                size: content.len() as u64,
                hash: sha256(content),
                content: KeptContent::Base64 {
                    base64: format!("{content:?}"),
                },
            },
        };
        self.push(FileKept {
            by,
            path: path.to_owned(),
            before,
            part: 0,
            parts: 1,
        });
    }

    fn call(&mut self, path: &str, new: Option<(Vec<u8>, u32)>, is_kept: bool) {
        self.calls += 1;
        let call = CallId::new(format!("call{}", self.calls));
        let before = self.tree.get(path).map(|(content, _)| sha256(content));
        let after = new
            .as_ref()
            .map_or_else(|| sha256(b"refused"), |new| sha256(&new.0));
        if is_kept && before.as_ref() != Some(&after) {
            let call = call.clone();
            self.keep(KeptBy::Call { call }, path);
        }
        self.push(ToolStarted {
            call: call.clone(),
            tool: "write_file".to_owned(),
            task: None,
            boot: None,
            change: Some(FileChange {
                file: Some(FileSeen::file_of(path.as_bytes())),
                before,
                after: after.clone(),
                kept_bytes: 0,
                is_private: false,
            }),
            patched: Vec::new(),
            may_change_files: false,
        });
        let outcome = match new {
            Some((content, mode)) => {
                // A tool keeps the mode of an existing file.
                let mode = self.tree.get(path).map_or(mode, |(_, mode)| *mode);
                self.tree.insert(path.to_owned(), (content, mode));
                CallOutcome::Ok
            }
            None => CallOutcome::NotStarted,
        };
        let mut ended = ToolEnded::new(call, outcome);
        if outcome.is_ok() {
            ended.seen.push(FileSeen {
                file: FileSeen::file_of(path.as_bytes()),
                content: after,
            });
        }
        self.push(ended);
    }

    fn history(&self) -> History {
        History::of(&self.events)
    }

    /// What a restore to this position is to do.
    fn restore(&self, to: Seq) -> RestorePlan {
        let history = self.history();
        restore(&history, history.own(to), &Selection::default())
    }

    /// The content that an event keeps.
    fn kept_at(&self, at: Seq) -> Option<(Vec<u8>, u32)> {
        self.trees.get(at.0 as usize - 1)?;
        let Body::FileKept(kept) = &self.events.get(at.0 as usize - 1)?.body else {
            panic!("no kept file at {at}");
        };
        self.trees[at.0 as usize - 1].get(&kept.path).cloned()
    }

    /// Carries a plan out as the daemon does. Returns the paths that another process changed.
    fn carry_out(&mut self, op: OpId, plan: &RestorePlan) -> Vec<String> {
        let mut conflicts = Vec::new();
        let mut files = Vec::new();
        for wanted in &plan.wanted {
            let Target::Kept {
                at, state: target, ..
            } = &wanted.target
            else {
                panic!("no git here");
            };
            let now = state(self.tree.get(&wanted.path));
            match compare(&now, target, &wanted.expected) {
                Compared::Same => {}
                Compared::Changed => conflicts.push(wanted.path.clone()),
                Compared::AsLeft => files.push((wanted.path.clone(), at.seq, now)),
            }
        }
        if !conflicts.is_empty() || files.is_empty() {
            return conflicts;
        }
        let planned = files.iter().map(|(path, at, now)| PlannedFile {
            path: path.clone(),
            target: RestoreTarget::Kept {
                at: Position {
                    agent: Self::agent(),
                    seq: *at,
                },
                state: Some(state(self.kept_at(*at).as_ref())),
            },
            expected: now.clone(),
        });
        let plan = FilesPlan {
            op,
            files: planned.collect(),
            not_restored: None,
        };
        self.push(plan);
        for (path, _, _) in &files {
            self.keep(KeptBy::Restore { op }, path);
        }
        let mut done = Vec::new();
        for (path, at, _) in files {
            match self.kept_at(at) {
                Some(file) => self.tree.insert(path.clone(), file),
                None => self.tree.remove(&path),
            };
            let outcome = RestoredOutcome::Restored;
            done.push(RestoredFile { path, outcome });
        }
        self.push(FilesRestored { op, files: done });
        conflicts
    }
}

fn op(n: usize) -> OpId {
    OpId::new(Uuid::from_u128(n as u128 + 1))
}

proptest! {
    #[test]
    fn a_restore_gives_the_bytes_of_its_position_and_its_undo_takes_it_back(steps in steps()) {
        let mut bench = Bench::new();
        let mut done: Vec<(OpId, Tree)> = Vec::new();
        for (n, step) in steps.into_iter().enumerate() {
            match step {
                Step::Write { path, content, mode } => {
                    bench.call(&path_of(path), Some((content, mode)), true);
                }
                Step::Refused { path } => bench.call(&path_of(path), None, true),
                Step::Restore { to } => {
                    // Between two steps no call is half done.
                    let ends = bench.events.iter().filter(|event| {
                        matches!(event.body, Body::ToolEnded(_) | Body::FilesRestored(_))
                    });
                    let ends: Vec<Seq> = ends.map(|event| event.seq).collect();
                    let to = ends.get(to % (ends.len() + 1)).copied().unwrap_or(Seq::ZERO);
                    let (before, wanted) = (bench.tree.clone(), bench.trees[to.0 as usize].clone());
                    let plan = bench.restore(to);
                    prop_assert_eq!(&plan.not_restored, &[]);
                    prop_assert_eq!(bench.carry_out(op(n), &plan), Vec::<String>::new());
                    prop_assert_eq!(&bench.tree, &wanted);
                    if bench.history().plan(op(n)).is_some() {
                        done.push((op(n), before));
                    }
                }
                Step::Undo => {
                    let Some((last, before)) = done.pop() else { continue };
                    let is_untouched = matches!(
                        bench.events.last().map(|event| &event.body),
                        Some(Body::FilesRestored(restored)) if restored.op == last
                    );
                    let plan = undo(&bench.history(), last, &Selection::default());
                    let conflicts = bench.carry_out(op(n), &plan);
                    if is_untouched {
                        prop_assert_eq!(conflicts, Vec::<String>::new());
                        prop_assert_eq!(&bench.tree, &before);
                    }
                }
            }
        }
    }

    #[test]
    fn what_another_process_changed_is_a_conflict(steps in steps(), path in 0..4u8) {
        let mut bench = Bench::new();
        for step in steps {
            if let Step::Write { path, content, mode } = step {
                bench.call(&path_of(path), Some((content, mode)), true);
            }
        }
        let path = path_of(path);
        bench.tree.insert(path.clone(), (b"of the user".to_vec(), 0o644));
        let before = bench.tree.clone();
        let plan = bench.restore(Seq::ZERO);
        let is_changed = plan.wanted.iter().any(|wanted| wanted.path == path);
        let conflicts = bench.carry_out(op(1), &plan);
        if is_changed {
            prop_assert_eq!(conflicts, vec![path]);
            prop_assert_eq!(&bench.tree, &before);
        }
    }
}

/// The state before a change that is no longer kept is not taken for the state before a later one.
#[test]
fn a_path_with_a_purged_change_is_not_restored_to_a_later_state() {
    let mut bench = Bench::new();
    let (path, other) = (path_of(0), path_of(1));
    let content = |text: &str| Some((text.as_bytes().to_vec(), 0o644));
    bench.call(&path, content("one"), false);
    bench.call(&other, content("lost"), false);
    bench.call(&path, content("two"), true);
    let plan = bench.restore(Seq::ZERO);
    assert_eq!(plan.wanted, []);
    let why = plan.not_restored.iter().map(|it| (it.path.clone(), it.why));
    assert_eq!(
        why.collect::<Vec<_>>(),
        [
            (Some(path.clone()), CannotRestore::NoLongerKept),
            (None, CannotRestore::NoLongerKept),
        ]
    );
    // After the purged change, the path can be restored.
    let after_first = Seq(bench.events.len() as u64 - 3);
    let plan = bench.restore(after_first);
    assert_eq!(plan.wanted.len(), 1);
    bench.carry_out(op(1), &plan);
    assert_eq!(bench.tree[&path].0, b"one");
}
