//! `--json`: docs/json.md lists every field of every object, and errors are objects, too.

mod objects;

use super::test_cli::{TestCli, until};
use agentd_client::api::*;
use agentd_core::event::{
    BeginSource, CommandCut, CommandEnd, FiringOutcome, HoldReason, LimitKind, MissedPolicy, Mode,
    OverlapPolicy, PauseReason, PausedBecause, PlanSet, ScheduleAction, SealReason, SkippedBecause,
    SubagentOutcome, TaskExit, TurnStatus,
};
use agentd_core::hook::{self, HookEvent, Layer, OnFailure};
use agentd_core::id::*;
use agentd_core::import_history::Program;
use agentd_core::mcp::Question;
use agentd_core::outer::ProgramMemory;
use agentd_core::spec::{Network, Runtime, Sandbox};
use agentd_core::state::{CompactionOutcome, Phase, ScheduleWaits};
use agentd_core::time::Timestamp;
use agentd_testkit::histories;
use objects::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use uuid::Uuid;

const PAGE: &str = include_str!("../../../../docs/json.md");
const ID: Uuid = Uuid::from_u128(1);

/// The fields that a section lists: every word in code in the first cells of its table.
fn listed(section: &str) -> BTreeSet<String> {
    let body = PAGE.split(&format!("\n### {section}\n")).nth(1);
    let body = body.unwrap_or_else(|| panic!("no section `{section}`"));
    let body = body.split("\n#").next().unwrap();
    let rows = body.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap());
    let words = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    words.map(str::to_owned).collect()
}

#[track_caller]
fn same(section: &str, object: &Value) {
    let found: BTreeSet<String> = object.as_object().unwrap().keys().cloned().collect();
    assert_eq!(listed(section), found, "docs/json.md, `{section}`");
}

#[test]
fn the_page_lists_every_field_of_agents_and_conversations() {
    let agent = json!(agent());
    same("agent", &agent);
    same("agent reference", &agent["parent"]);
    same("process", &agent["process"]);
    same("current conversation", &agent["conversation"]);
    same("last turn", &agent["last_turn"]);
    same("approval", &agent["approvals"][0]);
    same("question", &agent["approvals"][0]["question"]);
    same("call", &agent["approvals"][0]["what"]);
    same("subagent", &agent["children"][0]);
    same("usage", &agent["usage"]);
    let line = AgentLine {
        id: AgentId::new(ID),
        name: text(),
        mode: Mode::Persistent,
        phase: Phase::Idle,
        process: Process {
            state: ProcessState::Up,
            pid: None,
        },
        generation: 1,
        conversations: 1,
        usage: Usage::default(),
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(0),
        archived: false,
        parent: None,
        title: Some(text()),
        model: Some(text()),
        provider: Some(text()),
        cwd: Some(text()),
        summary: Some(text()),
        next_due: Some(Timestamp::from_millis(0)),
        no_tools: Some(text()),
        approvals: agent_approvals(),
    };
    same("agent line", &json!(line));
    let list = Agents {
        agents: Vec::new(),
        total: 0,
        next: None,
    };
    same("list", &json!(list));
    same("conversation", &json!(conversation()));
    same("origin", &json!(origin()));
    let all = Conversations {
        current: None,
        undo: None,
        redo: None,
        conversations: Vec::new(),
    };
    same("conversations", &json!(all));
    let turn = EndedTurn {
        number: 1,
        id: TurnId::new(ID),
        conversation: ConversationId::new(ID),
        seq: Seq(1),
        ended_at: Timestamp::from_millis(0),
        status: TurnStatus::Completed,
        compacts: true,
        prompt: Some(text()),
        files: Some(1),
        files_unknown: true,
    };
    same("ended turn", &json!(turn));
    let hit = Hit {
        agent: agent_ref(),
        conversation: ConversationId::new(ID),
        ordinal: Some(1),
        turn: Some(TurnId::new(ID)),
        number: Some(1),
        seq: Seq(1),
        at: Timestamp::from_millis(0),
        role: Role::User,
        snippet: text(),
        matches: Vec::new(),
    };
    same("hit", &json!(hit));
    let found = Found {
        hits: vec![hit],
        next: None,
        incomplete: true,
    };
    same("found", &json!(found));
    let row = UsageRow::default();
    same("usage row", &json!(row));
    let report = UsageReport {
        by: UsageBy::Agent,
        rows: Vec::new(),
        total: row,
    };
    same("usage report", &json!(report));
}

#[test]
fn the_page_lists_every_field_of_receipts_and_tasks() {
    let sent = Sent {
        agent: agent_ref(),
        prompt: PromptId::new(ID),
        phase: Phase::Idle,
        repeated: false,
        seq: Seq(1),
    };
    same("sent", &json!(sent));
    let mut delta = json!(Delta {
        request: text(),
        text: text(),
        thinking: text(),
    });
    delta["kind"] = json!("delta");
    same("delta", &delta);
    let created = Created {
        agent: agent(),
        prompt: Some(PromptId::new(ID)),
    };
    same("created", &json!(created));
    let forked = Forked {
        agent: agent(),
        from: origin(),
        repeated: false,
        prompt: Some(PromptId::new(ID)),
        program: Some(ProgramMemory::Text),
    };
    same("forked", &json!(forked));
    let compacted = Compacted {
        op: OpId::new(ID),
        conversation: ConversationId::new(ID),
        outcome: CompactionOutcome::Failed,
        tokens: 1,
        error: Some(text()),
    };
    same("compacted", &json!(compacted));
    let ended = EndedCommand {
        agent: agent_ref(),
        conversation: ConversationId::new(ID),
        id: CommandId::new(ID),
        command: text(),
        output: text(),
        end: CommandEnd {
            exit: TaskExit::Unknown,
            cut: Some(CommandCut::TimedOut),
        },
        duration_ms: 1,
        repeated: false,
    };
    same("ended command", &json!(ended));
    let killed = Killed {
        calls: Vec::new(),
        tasks: Vec::new(),
        subagents: Vec::new(),
    };
    same("killed", &json!(killed));
    let report = HookReport {
        hook: HookId::new(ID),
        event: HookEvent::PreReset,
        outcome: None,
        decision: hook::Decision::default(),
    };
    same("hook report", &json!(report));
    let task = Task {
        id: TaskId::new(ID),
        agent: agent_ref(),
        conversation: ConversationId::new(ID),
        ordinal: Some(1),
        turn: None,
        tool: text(),
        command: None,
        started_at: Timestamp::from_millis(0),
        output_bytes: 0,
        state: TaskState::Ended,
        running: false,
        exit: Some(TaskExit::Code { code: 1 }),
    };
    same("task", &json!(task));
    same("tasks", &json!(Tasks { tasks: Vec::new() }));
    let schedule = schedule();
    same("schedule", &json!(schedule));
    same("last firing", &json!(schedule.last));
    same("schedules", &json!(Schedules::default()));
    let output = agentd_client::api::Output {
        text: text(),
        next: 1,
        is_over: true,
    };
    same("output", &json!(output));
    let checkpoint = Checkpointed {
        conversation: ConversationId::new(ID),
        label: text(),
        seq: Seq(1),
        transcript: text(),
    };
    same("checkpoint", &json!(checkpoint));
    let held = held();
    same("held", &json!(held));
    same("held prompt", &json!(held.queue[0]));
    same("held settings", &json!(held.settings));
    let ended = Ended {
        tasks: Vec::new(),
        subagents: Vec::new(),
    };
    same("ended", &json!(ended));
    let purged = Purged {
        conversations: Vec::new(),
        events: 0,
        blobs: 0,
        left: vec![LeftSession {
            conversation: ConversationId::new(ID),
            program: text(),
            session: text(),
            places: Vec::new(),
            why: Some(text()),
        }],
        deleted: vec![DeletedSession {
            conversation: ConversationId::new(ID),
            program: text(),
            session: text(),
        }],
    };
    same("purged", &json!(purged));
    same("left session", &json!(purged.left[0]));
    same("deleted session", &json!(purged.deleted[0]));
    let daemon = Daemon {
        turns: 1,
        waiting: 1,
        draining: true,
        version: text(),
        pid: 1,
        home: text(),
        started_at: Timestamp::from_millis(0),
        agents: 1,
        awake: 1,
        outdated: 1,
        build: Some(text()),
        memory: 1,
        home_id: text(),
        read_only: Some(text()),
        sandbox: Some(Sandbox::ReadOnly),
        without_scopes: Some(text()),
        failing_webhooks: vec![FailingWebhook {
            name: text(),
            attempts: 1,
            error: text(),
        }],
        failing_backup: Some(FailingBackup {
            directory: text(),
            since: Timestamp::from_millis(0),
            attempts: 1,
            error: text(),
        }),
        needs_restart: vec![text()],
    };
    same("daemon", &json!(daemon));
    same("failing backup", &json!(daemon.failing_backup));
    same("failing webhook", &json!(daemon.failing_webhooks[0]));
}

#[test]
fn the_page_lists_every_field_of_hooks() {
    let problem = hook::Problem {
        severity: hook::Severity::Error,
        at: text(),
        what: text(),
        hint: Some(text()),
    };
    same("hook problem", &json!(problem));
    let source = HookSource {
        layer: Layer::User,
        path: None,
        hash: None,
        trusted: true,
        problems: Vec::new(),
    };
    same("hook source", &json!(source));
    let line = HookLine {
        event: HookEvent::Stop,
        matcher: text(),
        layer: Layer::User,
        run: text(),
        handler: text(),
        timeout_ms: 1,
        is_async: false,
        on_failure: OnFailure::default(),
        state: HookState::Active,
        can_block: true,
        runtimes: vec![Runtime::Native],
    };
    same("hook", &json!(line));
    let list = HookList {
        sources: Vec::new(),
        hooks: Vec::new(),
    };
    same("hook list", &json!(list));
    let checked = CheckedHooks {
        handlers: 1,
        problems: Vec::new(),
        ok: true,
    };
    same("hook check", &json!(checked));
    let verdict = hook::Verdict {
        decision: hook::Decision::default(),
        reason: Some(text()),
        context: Some(text()),
        updated_input: Some(serde_json::Map::new()),
        updated_output: Some(text()),
        stop: Some(text()),
        title: Some(text()),
        initial_prompt: Some(text()),
        unheard: true,
        hookless: false,
    };
    same("hook verdict", &json!(verdict));
}

/// Objects that the command line itself creates, as it prints them.
#[test]
fn the_page_lists_every_field_that_the_command_line_prints() {
    let cli = TestCli::with_coder();
    fs::write(cli.work().join("a.md"), "---\nprovider: demo\n---\n").unwrap();
    let mut answer = cli.json(&["send", "coder", "run `true`"]);
    answer["op"] = Value::Null;
    answer["failure"] = Value::Null;
    same("answer", &answer);
    assert_eq!(answer["agent"]["name"], "coder");
    let mut receipt = cli.json(&["reset", "coder"]);
    receipt["program"] = Value::Null;
    same("receipt", &receipt);
    same("status", &cli.json(&["status"]));
    // It exits with 4 where there are no namespaces, and prints the same object.
    let doctor = cli.run(&["doctor", "--json"]);
    let doctor: Value = serde_json::from_str(&doctor.out).unwrap();
    same("doctor", &doctor);
    same("finding", &doctor["findings"][0]);
    same("export", &cli.json(&["export", "coder"]));
    same("applied", &cli.json(&["apply", "other", "-f", "a.md"]));
    same("config", &cli.json(&["config"]));
    let init = ["init", "--yes", "--provider", "demo"];
    same("init", &cli.json(&init));
    same("model", &cli.json(&["models"])["models"][0]);
    same("completions", &cli.json(&["completions", "bash"]));
    let mut set = cli.command(&["secret", "set", "SOME_KEY", "--json"]);
    let set = set.stdin(fs::File::open(cli.work().join("a.md")).unwrap());
    assert_eq!(
        set.output().unwrap().status.code(),
        Some(2),
        "more than one line"
    );
    fs::write(cli.work().join("key"), "some-value\n").unwrap();
    let mut set = cli.command(&["secret", "set", "SOME_KEY", "--json"]);
    let set = set.stdin(fs::File::open(cli.work().join("key")).unwrap());
    let set = set.output().unwrap();
    same("secret", &serde_json::from_slice(&set.stdout).unwrap());
    let secrets = cli.json(&["secret", "list"]);
    same("secrets", &secrets);
    same("secret", &secrets["secrets"][0]);
    same("secret", &cli.json(&["secret", "rm", "SOME_KEY"]));
    fs::write(
        cli.work().join("key"),
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
    )
    .unwrap();
    let mut set = cli.command(&["secret", "set", "SOME_HOOK", "--json"]);
    let set = set.stdin(fs::File::open(cli.work().join("key")).unwrap());
    assert!(set.output().unwrap().status.success());
    let bind = [
        "bind",
        "coder",
        "chat:1",
        "--webhook",
        "http://127.0.0.1:9/",
    ];
    let same_binding = |mut binding: Value| {
        // It is there if an attempt failed.
        binding["error"] = Value::Null;
        same("binding", &binding);
    };
    same_binding(cli.json(&[&bind[..], &["--secret", "SOME_HOOK"]].concat()));
    let bindings = cli.json(&["bindings"]);
    same("bindings", &bindings);
    same_binding(bindings["bindings"][0].clone());
    same_binding(cli.json(&["unbind", "chat:1", "--now"]));
    same("hook test", &cli.json(&["hooks", "test", "SessionStart"]));
    let checked = cli.json(&["hooks", "check"]);
    assert!(checked["ok"].is_boolean() && checked["sources"].is_array());
    let archived = cli.json(&["rm", "other"]);
    assert!(archived["ended"].is_object() && archived["id"].is_string());
    cli.ok(&["run", "--provider", "demo", "run `true`"]);
    let pruned = cli.json(&["prune", "--older-than", "0s"]);
    same("pruned", &pruned);
    same("pruned agent", &pruned["agents"][0]);
    let backup = cli.json(&["backup", "all.backup"]);
    same("backup", &backup);
    let file = backup["file"].as_str().unwrap();
    let verified = cli.json(&["backup", "--verify", file]);
    same("verified backup", &verified);
    let restored = cli.json(&["restore-backup", file, "--into", "restored"]);
    same("restored backup", &restored);
    same("daemon stopped", &cli.json(&["daemon", "stop"]));
    same("verify", &cli.json(&["verify"]));
    same("repaired", &cli.json(&["verify", "--repair"]));
}

#[test]
fn objects_about_files_are_on_the_page() {
    let not_restored = NotRestored {
        path: Some(text()),
        turn: Some(TurnId::new(ID)),
        turn_number: Some(1),
        why: CannotRestore::NoGit,
    };
    same("not restored", &json!(not_restored));
    let file = RestoredFile {
        path: text(),
        outcome: FileOutcome::Failed,
        action: Some(FileAction::Written),
        why: Some(text()),
    };
    same("restored file", &json!(file));
    let restored = RestoredFiles {
        agent: agent_ref(),
        op: OpId::new(ID),
        outcome: FilesOutcome::Done,
        files: vec![file],
        not_restored: vec![not_restored.clone()],
        undo: Some(text()),
    };
    same("restored files", &json!(restored));
    let change = FileChanged {
        by: ChangeBy::Command,
        turn: Some(TurnId::new(ID)),
        at: Timestamp::from_millis(0),
        change: Some(agentd_core::event::ScannedChange::Added),
    };
    same("file change", &json!(change));
    let changed = ChangedFile {
        path: text(),
        changes: vec![change],
        cannot_restore: Some(CannotRestore::NotInGit),
        cannot_restore_turn: Some(1),
    };
    same("changed file", &json!(changed));
    let files = ChangedFiles {
        agent: agent_ref(),
        files: vec![changed],
        unknown: vec![not_restored.clone()],
        undo_levels: 1,
        kept_bytes: 1,
        limit_bytes: 1,
    };
    same("changed files", &json!(files));
    let diff = FileDiff {
        path: text(),
        name: text(),
        by: ChangeBy::Tool,
        change: DiffChange::Edited,
        added: 1,
        removed: 1,
        diff: Some(text()),
        note: Some(text()),
    };
    same("file diff", &json!(diff));
    let child = FilesDiff {
        agent: agent_ref(),
        files: vec![diff],
        unknown: vec![not_restored],
        added: 1,
        removed: 1,
        subagents: Vec::new(),
    };
    let whole = FilesDiff {
        subagents: vec![child.clone()],
        ..child
    };
    same("files diff", &json!(whole));
}

#[test]
fn every_verb_is_on_the_page() {
    let help = TestCli::new().ok(&["--help"]);
    let verbs = help.split("Talk to agents:\n").nth(1).unwrap();
    let verbs = verbs.split("Options:\n").next().unwrap().lines();
    let table = PAGE.split("## Verbs").nth(1).unwrap();
    let table = table.split("## Objects").next().unwrap();
    for verb in verbs.filter_map(|line| line.strip_prefix("  ")) {
        let verb = verb.split_whitespace().next().unwrap_or_default();
        // The verbs of a group are on the page one by one.
        if [
            "help", "demo", "daemon", "hooks", "mcp", "schedule", "secret", "",
        ]
        .contains(&verb)
        {
            continue;
        }
        assert!(table.contains(&format!("`{verb}`")), "{verb}");
    }
}

/// Regression: times were milliseconds, and money had a different name in each object.
#[test]
fn times_are_rfc_3339_and_money_is_cost_usd() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `true`"]);
    let agent = cli.json(&["show", "coder"]);
    for field in ["created_at", "updated_at", "completed_at"] {
        let text = agent[field].as_str().unwrap();
        assert!(text.len() == 24 && text.ends_with('Z'), "{field}: {text}");
    }
    let all = cli.json(&["conversations", "coder"]);
    let first = &all["conversations"][0];
    assert!(first["began_at"].is_string(), "{first}");
    assert!(first["usage"].get("cost_usd").is_some(), "{first}");
    // Lines of the journal are as they are in the chain.
    assert!(cli.lines(&["logs", "coder"])[0]["at"].is_i64());
}

/// Regression: with `--json`, errors printed nothing on standard output.
#[test]
fn errors_and_timeouts_are_objects_with_the_prompt_and_what_to_do() {
    let cli = TestCli::with_coder();
    let failure = |code: i32, args: &[&str]| {
        let ran = cli.run(&[args, &["--json"]].concat());
        assert_eq!(ran.code, Some(code), "{args:?}: {ran:#?}");
        assert_eq!(ran.out.lines().count(), 1, "{args:?}: {ran:#?}");
        let object: Value = serde_json::from_str(&ran.out).unwrap();
        object
    };
    let object = failure(7, &["show", "codr"]);
    same("error", &object);
    assert_eq!(
        (&object["kind"], &object["exit"]),
        (&json!("not_found"), &json!(7))
    );
    assert_eq!(object["next"], "did you mean `coder`?");
    assert_eq!(failure(2, &["nosuchverb"])["kind"], "usage");
    assert_eq!(failure(2, &["send", "coder", ""])["kind"], "usage");
    let send = ["send", "coder", "--timeout", "200ms", "run `sleep 100`"];
    let object = failure(124, &send);
    let prompt = object["prompt"].as_str().unwrap().to_owned();
    assert!(
        object["next"].as_str().unwrap().contains(&prompt),
        "{object}"
    );
    let object = failure(124, &["wait", "coder", &prompt, "--timeout", "200ms"]);
    assert_eq!(object["prompt"], json!(prompt));
    cli.ok(&["interrupt", "coder"]);
    until("the turn's end", || {
        (cli.json(&["show", "coder"])["phase"] == "idle").then_some(())
    });
    // What has an object of its own prints that alone, with what to do.
    let object = failure(130, &["wait", "coder", &prompt]);
    assert_eq!(
        (&object["status"], &object["prompt"]),
        (&json!("interrupted"), &json!(prompt))
    );
    assert!(object["next"].is_string(), "{object}");
    cli.ok(&["stop", "coder"]);
    let object = failure(6, &["send", "coder", "run `true`"]);
    assert_eq!(object["status"], "waiting");
    assert!(
        object["next"]
            .as_str()
            .unwrap()
            .contains("agentd start coder")
    );
}

#[test]
fn imported_histories_are_objects() {
    let cli = TestCli::new();
    let dir = cli.work().join("sessions");
    fs::create_dir(&dir).unwrap();
    histories::write(Program::ClaudeCode, &dir, &cli.work()).unwrap();
    let from = ["import", "--from", "claude-code", "sessions"];
    let listed = cli.json(&[&from[..], &["--list"]].concat());
    same("history sessions", &listed);
    same("history session", &listed["sessions"][0]);
    let args = [&from[..], &["--provider", "demo"]].concat();
    let imported = cli.json(&args);
    same("imported histories", &imported);
    same("imported history", &imported["imported"][0]);
    same("left out", &imported["imported"][0]["left_out"][0]);
    let again = cli.run(&[&args[..], &["--json"]].concat());
    assert_eq!(again.code, Some(3), "{again:?}");
    assert_eq!(again.out.lines().count(), 1, "{again:?}");
    let again: Value = serde_json::from_str(&again.out).unwrap();
    same("history that was not imported", &again["failed"][0]);
}
