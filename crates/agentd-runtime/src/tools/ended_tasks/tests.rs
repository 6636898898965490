//! Tests of what is removed, and what stays.

use super::*;
use std::time::Duration;
use uuid::Uuid;

struct State {
    dir: tempfile::TempDir,
    ended: EndedTasks,
}

impl State {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ended = EndedTasks::new(dir.path(), 1000);
        Self { dir, ended }
    }

    fn tasks(&self) -> PathBuf {
        self.dir.path().join("tasks")
    }

    /// The directory of a task whose exit file has this.
    fn task(&self, exit: &str) -> TaskId {
        let id = TaskId::new(Uuid::now_v7());
        let dir = self.dir_of(id);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("output"), "text").unwrap();
        if !exit.is_empty() {
            fs::write(dir.join("exit"), exit).unwrap();
        }
        id
    }

    fn dir_of(&self, id: TaskId) -> PathBuf {
        self.tasks().join(id.to_string())
    }

    fn count(&self) -> usize {
        fs::read_dir(self.tasks()).unwrap().count()
    }

    /// Lists and removes.
    async fn tidy(&self, open: &[TaskId]) {
        let phase = || self.ended.phase.lock().unwrap();
        *phase() = Phase::Waits(EVERY);
        self.ended.tidy(BTreeSet::new);
        while !matches!(*phase(), Phase::Listed(_)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.ended.tidy(|| open.iter().copied().collect());
        while !matches!(*phase(), Phase::Waits(0)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn exit(foreground: bool, output_bytes: u64) -> String {
    format!(
        r#"{{"code":0,"signal":null,"timed_out":false,"stopped":false,"output_bytes":{output_bytes},"dropped_bytes":0,"duration_ms":1,"foreground":{foreground}}}"#
    )
}

#[tokio::test]
async fn the_newest_stay_and_what_the_model_was_told_about_stays_longest() {
    let state = State::new();
    let told = [state.task(&exit(true, 1001)), state.task(&exit(false, 1))];
    let earlier = state.task(
        r#"{"code":0,"signal":null,"timed_out":false,"stopped":false,"output_bytes":1,"dropped_bytes":0,"duration_ms":1}"#,
    );
    let open = state.task(&exit(true, 1));
    let small: Vec<TaskId> = (0..300).map(|_| state.task(&exit(true, 1000))).collect();
    state.tidy(&[open]).await;
    assert_eq!(state.count(), OTHERS + 4);
    for id in told.iter().chain([&earlier, &open]).chain(&small[250..]) {
        assert!(state.dir_of(*id).is_dir());
    }
    let large: Vec<TaskId> = (0..TOLD).map(|_| state.task(&exit(true, 2000))).collect();
    state.tidy(&[open]).await;
    assert_eq!(state.count(), OTHERS + 1 + TOLD);
    assert!(large.iter().all(|id| state.dir_of(*id).is_dir()));
    assert!(!state.dir_of(told[0]).exists() && state.dir_of(open).exists());
}

/// A process that is killed while it removes a directory leaves one that is no task's.
#[tokio::test]
async fn what_a_killed_process_left_is_removed_and_is_no_task() {
    let state = State::new();
    let stays = state.task(&exit(true, 1));
    let half = state.tasks().join(format!("{}.removed", Uuid::now_v7()));
    fs::create_dir(&half).unwrap();
    fs::write(half.join("claim"), "").unwrap();
    assert_eq!(state.ended.dirs.list(), [stays]);
    state.tidy(&[]).await;
    assert!(!half.exists() && state.dir_of(stays).exists());
}

#[tokio::test]
async fn the_newest_files_of_outputs_stay() {
    let state = State::new();
    let outputs = state.dir.path().join("outputs");
    fs::create_dir(&outputs).unwrap();
    for n in 0..TOLD + 10 {
        let path = outputs.join(format!("{n}.txt"));
        fs::write(&path, "").unwrap();
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(n as u64);
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(at).unwrap();
    }
    state.tidy(&[]).await;
    assert_eq!(fs::read_dir(&outputs).unwrap().count(), TOLD);
    assert!(!outputs.join("9.txt").exists() && outputs.join("10.txt").exists());
}

#[test]
fn a_text_that_misses_a_kept_output_gets_a_note() {
    let state = State::new();
    let there = state.dir_of(state.task("")).join("output");
    let gone = state.dir_of(TaskId::new(Uuid::now_v7())).join("output");
    let misses = |path: &Path| {
        let path = path.display();
        let text = format!("a\ntail: cannot open '{path}' for reading: No such file or directory");
        note(state.dir.path(), &text).is_some()
    };
    assert!(misses(&gone) && !misses(&there) && !misses(Path::new("/tmp/none")));
    assert_eq!(note(state.dir.path(), &gone.display().to_string()), None);
}
