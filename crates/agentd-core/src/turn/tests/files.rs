//! The history of files: what a call changes is kept with its start, and commands are scanned after their turn.

use super::harness::{Rig, calls, finishes, prepared, says};
use crate::event::*;
use crate::fixture::turn;
use crate::id::{BootId, CallId, OpId, TaskId, TurnId};
use crate::message::{Block, CallOutcome};
use crate::turn::{Finished, Input, Prepared};
use uuid::Uuid;

const A: &str = "call_1_1_0";

fn started(task: Option<TaskId>) -> ToolStarted {
    ToolStarted {
        call: CallId::new(A),
        tool: "shell".to_owned(),
        task,
        boot: None,
        change: None,
        patched: Vec::new(),
        may_change_files: false,
    }
}

fn kept(part: u32) -> FileKept {
    FileKept {
        by: KeptBy::Call {
            call: CallId::new(A),
        },
        path: "/a".to_owned(),
        before: FileBefore::Absent,
        part,
        parts: 2,
    }
}

/// A rig whose turn has run a command, and ended.
fn ran() -> (Rig, TurnId) {
    let mut rig = Rig::called(&["shell"]);
    let task = Some(TaskId::new(Uuid::from_u128(1)));
    rig.on(prepared(A, Prepared::Run(started(task), Vec::new())));
    rig.on(finishes(A, CallOutcome::Ok));
    let turn = rig.machine.agent().turn.as_ref().unwrap().id;
    rig.on(says("done")).ends_with("scan files");
    (rig, turn)
}

fn scanned(turn: TurnId) -> Input {
    let (files, more) = (Vec::new(), 0);
    let found = Scan::Known { files, more };
    Input::FilesScanned { turn, found }
}

#[test]
fn what_a_call_changes_is_kept_in_the_append_of_its_start_and_before_it() {
    let mut rig = Rig::called(&["shell"]);
    let run = Prepared::Run(started(None), vec![kept(0), kept(1)]);
    rig.on(prepared(A, run)).does([
        "append file_kept, file_kept, tool_started call_1_1_0",
        "run call_1_1_0",
    ]);
}

#[test]
fn no_turn_begins_before_the_scan_of_the_one_before_is_recorded() {
    let (mut rig, turn) = ran();
    rig.prompt("next").does([]);
    let mut seen = rig.give(scanned(turn)).0.into_iter();
    assert_eq!(seen.next().as_deref(), Some("append files_scanned"));
    assert_eq!(
        seen.next().as_deref(),
        Some("append turn_started, prompts_taken")
    );
    assert_eq!(rig.machine.agent().files.unscanned, None);
}

#[test]
fn a_turn_without_commands_is_not_scanned() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(prepared(A, Prepared::Run(started(None), Vec::new())));
    rig.on(finishes(A, CallOutcome::Ok));
    rig.on(says("done")).completes();
}

#[test]
fn a_turn_with_a_call_that_may_change_files_is_scanned() {
    let mut rig = Rig::called(&["mcp__files__put"]);
    let call = ToolStarted {
        may_change_files: true,
        ..started(None)
    };
    rig.on(prepared(A, Prepared::Run(call, Vec::new())));
    rig.on(finishes(A, CallOutcome::Ok));
    rig.on(says("done")).ends_with("scan files");
}

/// A turn that answers while a background command runs, and one after its end.
#[test]
fn turns_are_scanned_until_what_a_background_command_changed_is_known() {
    let mut rig = Rig::called(&["shell"]);
    let task = TaskId::new(Uuid::from_u128(1));
    rig.on(prepared(A, Prepared::Run(started(Some(task)), Vec::new())));
    let finished = Finished {
        background: Some(TaskStarted {
            task,
            call: CallId::new(A),
            tool: "shell".to_owned(),
            boot: BootId::new(Uuid::from_u128(1)),
        }),
        ..Finished::new(CallOutcome::Ok, vec![Block::text("started")])
    };
    let call = CallId::new(A);
    rig.give(Input::ToolFinished { call, finished });
    let answer = |rig: &mut Rig| {
        let turn = rig.machine.agent().turn.as_ref().unwrap().id;
        rig.on(says("done")).ends_with("scan files");
        rig.give(scanned(turn)).does(["append files_scanned"]);
    };
    answer(&mut rig);
    rig.prompt("more").ends_with("send 1.3");
    answer(&mut rig);
    rig.give(Input::TaskEnded {
        task,
        exit: TaskExit::Code { code: 0 },
        text: "it has ended".to_owned(),
    })
    .does(["append task_ended, notice task_ended"]);
    rig.prompt("more").ends_with("send 1.4");
    answer(&mut rig);
    rig.prompt("more").ends_with("send 1.5");
    rig.on(says("done")).completes();
}

#[test]
fn a_stop_waits_for_the_scan_and_leaving_does_not() {
    let (mut rig, turn) = ran();
    rig.give(Input::Stop).does([]);
    rig.give(scanned(turn))
        .does(["append files_scanned", "stopped"]);
    let (mut rig, turn) = ran();
    rig.give(Input::Leave).does(["stopped"]);
    rig.give(scanned(turn)).does([]);
}

#[test]
fn after_a_crash_the_next_process_scans_unless_it_is_too_late() {
    let (mut rig, turn) = ran();
    rig.take_over(After::Crash, |_| {}).does(["scan files"]);
    rig.give(scanned(turn)).does(["append files_scanned"]);
    let (mut rig, _) = ran();
    rig.journal.at = rig.journal.at.plus(11_000);
    rig.take_over(After::Crash, |_| {})
        .does(["append files_scanned"]);
    let last = rig.journal.events.last().map(|event| &event.body);
    let found = Scan::Unknown {
        why: ScanProblem::Timeout,
    };
    assert!(matches!(last, Some(Body::FilesScanned(scanned)) if scanned.found == found));
}

#[test]
fn a_scan_of_another_turn_is_ignored() {
    let (mut rig, _) = ran();
    rig.give(scanned(turn(99))).does([]);
    assert!(rig.machine.agent().files.unscanned.is_some());
}

#[test]
fn no_turn_begins_while_files_are_restored() {
    let op = OpId::new(Uuid::from_u128(5));
    let mut rig = Rig::new();
    let began = FilesRestoreBegan {
        op,
        undo_of: None,
        to: None,
        to_in: None,
        files: 0,
        kept_bytes: 0,
    };
    rig.write(vec![began.into()]).does([]);
    rig.prompt("hi").does([]);
    let ended = FilesRestoreEnded {
        op,
        outcome: RestoreOutcome::Done,
        restored: 0,
        failed: 0,
    };
    rig.write(vec![ended.into()]).ends_with("send 1.1");
    rig.on(calls(&["shell"]));
}
