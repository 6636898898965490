//! Agents whose program is a command: prompts in, text or JSON lines out, whatever ends meanwhile.

use crate::test_daemon::{TestDaemon, kill, until};
use agentd_client::api::{Answer, Reset, Status};
use agentd_core::event::{Body, Direction, FailureClass, Kind, NoticeCause, TurnStatus};
use agentd_core::message::{Block, CallOutcome};
use agentd_core::outer::ProgramMemory;
use agentd_core::spec::{AgentSpec, Command, Runtime};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/shell-agent.sh");

/// Records each prompt in `effects`, says that it has begun, and answers when the file `go` is there.
const WAITS: &str = r#"#!/bin/bash
trap 'stopped=yes' INT
while IFS= read -r -d '' prompt; do
  echo "$prompt" >> effects
  printf 'begun %s; ' "$prompt"
  stopped=
  while [ ! -e go ] && [ -z "$stopped" ]; do sleep 0.02; done
  printf 'done\0'
done
"#;

pub fn spec(daemon: &TestDaemon, command: Command) -> AgentSpec {
    AgentSpec {
        runtime: Runtime::Command,
        command: Some(command),
        provider: None,
        model: None,
        ..daemon.spec()
    }
}

fn script(daemon: &TestDaemon, text: &str) -> Command {
    let path: PathBuf = daemon.work().join("agent.sh");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Command {
        program: path.display().to_string(),
        ..Command::default()
    }
}

fn create(daemon: &TestDaemon, command: Command) {
    daemon.create_with("coder", spec(daemon, command));
}

pub fn reset(daemon: &TestDaemon, step: Option<Direction>) -> Option<ProgramMemory> {
    let reset = Reset {
        step,
        ..Reset::default()
    };
    let done = daemon.block(daemon.client().reset("coder", &reset));
    done.unwrap().program
}

fn text(answer: &Answer) -> String {
    answer.text.clone()
}

/// The processes of the script itself.
fn scripts(daemon: &TestDaemon) -> Vec<u32> {
    let all = daemon.processes().into_iter();
    let own =
        all.filter(|(_, arguments)| arguments.contains("agent.sh") && !arguments.contains("shim"));
    own.map(|(pid, _)| pid).collect()
}

fn begun(daemon: &TestDaemon, prompt: &str) {
    until("the prompt in the program", || {
        daemon.effects().contains(&prompt.to_owned()).then_some(())
    });
}

fn until_no_script(daemon: &TestDaemon) {
    until("no process of the program", || {
        scripts(daemon).is_empty().then_some(())
    });
}

#[test]
fn the_shell_script_of_the_examples_is_an_agent() {
    let daemon = TestDaemon::new();
    let text_of_example = fs::read_to_string(EXAMPLE).unwrap();
    create(&daemon, script(&daemon, &text_of_example));
    let first = text(&daemon.completed("coder", "hello there"));
    assert_eq!(first.trim(), "Turn 1. You said: hello there");
    // One process answers all prompts of a conversation, as long as it is awake.
    let second = text(&daemon.completed("coder", "two\nlines"));
    assert_eq!(second.trim(), "Turn 2. You said: two\nlines");
    let old = daemon.show("coder").conversation.unwrap().id;
    assert_eq!(reset(&daemon, None), Some(ProgramMemory::Empty));
    let third = text(&daemon.completed("coder", "again"));
    assert_eq!(third.trim(), "Turn 1. You said: again");
    let undone = reset(&daemon, Some(Direction::Undo));
    assert_eq!(undone, Some(ProgramMemory::Files));
    assert_eq!(daemon.show("coder").conversation.unwrap().id, old);
    let fourth = text(&daemon.completed("coder", "back"));
    assert_eq!(fourth.trim(), "Turn 1. You said: back");
    daemon.verify();
    assert!(daemon.cli(&["stop", "coder"]).status.success());
    until_no_script(&daemon);
}

#[test]
fn a_program_may_run_once_for_each_turn() {
    let daemon = TestDaemon::new();
    let cat = Command {
        program: "cat".to_owned(),
        per_turn: true,
        ..Command::default()
    };
    create(&daemon, cat);
    assert_eq!(text(&daemon.completed("coder", "one")), "one");
    assert_eq!(text(&daemon.completed("coder", "two")), "two");
    let fails = Command {
        program: "sh".to_owned(),
        args: ["-c", "echo half; echo oops >&2; exit 3"]
            .map(str::to_owned)
            .into(),
        per_turn: true,
        ..Command::default()
    };
    daemon.create_with("broken", spec(&daemon, fails));
    let answer = daemon.ask("broken", "go");
    assert_eq!(answer.status, Status::Failed, "{answer:#?}");
    let notes = daemon
        .events("broken")
        .into_iter()
        .filter_map(|event| match event.body {
            Body::Note(note) => Some(note.text),
            _ => None,
        });
    let notes: Vec<String> = notes.collect();
    let note = notes.join("\n");
    assert!(
        note.contains("exit code 3") && note.contains("oops"),
        "{note}"
    );
    let quiet = Command {
        program: "true".to_owned(),
        per_turn: true,
        ..Command::default()
    };
    daemon.create_with("quiet", spec(&daemon, quiet));
    assert_eq!(text(&daemon.completed("quiet", "go")), "(no output)");
    let missing = Command {
        program: "no-such-program-of-this-test".to_owned(),
        per_turn: true,
        ..Command::default()
    };
    daemon.create_with("missing", spec(&daemon, missing));
    assert_eq!(daemon.ask("missing", "go").status, Status::Failed);
    daemon.verify();
}

/// As `codex exec` and `codex exec resume`: it remembers each conversation in a file, and fails if there is none.
const FORGETS: &str = r#"#!/bin/bash
prompt=$(cat)
echo "$* $prompt" >> effects
case $prompt in fail*) exit 3 ;; esac
case $1 in
  exec) echo "$prompt" > session-$AGENTD_CONVERSATION ;;
  resume) [ -e session-$AGENTD_CONVERSATION ] || exit 4; echo "$prompt" >> session-$AGENTD_CONVERSATION ;;
esac
tr '\n' ' ' < session-$AGENTD_CONVERSATION
"#;

#[test]
fn a_program_that_runs_once_for_each_turn_continues_its_own_conversation() {
    let daemon = TestDaemon::new();
    let program = Command {
        per_turn: true,
        first_args: vec!["exec".to_owned()],
        later_args: vec!["resume".to_owned(), "--last".to_owned()],
        ..script(&daemon, FORGETS)
    };
    create(&daemon, program);
    // A turn that fails leaves nothing to continue.
    assert_eq!(daemon.ask("coder", "fail now").status, Status::Failed);
    assert_eq!(text(&daemon.completed("coder", "one")), "one ");
    assert_eq!(text(&daemon.completed("coder", "two")), "one two ");
    // A later turn that fails does not begin another conversation.
    assert_eq!(daemon.ask("coder", "fail again").status, Status::Failed);
    daemon.kill_runtime("coder");
    assert_eq!(text(&daemon.completed("coder", "three")), "one two three ");
    reset(&daemon, None);
    assert_eq!(text(&daemon.completed("coder", "four")), "four ");
    reset(&daemon, Some(Direction::Undo));
    assert_eq!(
        text(&daemon.completed("coder", "five")),
        "one two three five "
    );
    let began = daemon.effects().into_iter();
    let began: Vec<String> = began.filter(|it| it.starts_with("exec")).collect();
    assert_eq!(began, ["exec fail now", "exec one", "exec four"]);
    daemon.verify();
}

#[test]
fn json_lines_bring_calls_and_costs() {
    let daemon = TestDaemon::new();
    let lines = [
        json!({"kind": "delta", "type": "text", "text": "I lo"}),
        json!({"kind": "message", "body": {"status": "complete", "blocks": [
            {"type": "text", "text": "I look."},
            {"type": "tool_call", "id": "theirs-1", "name": "look", "arguments": {"object": {"at": "x"}}},
        ]}}),
        json!({"kind": "tool_started", "body": {"call": "theirs-1"}}),
        json!({"kind": "result", "body": {"call": "theirs-1", "outcome": "ok",
            "blocks": [{"type": "text", "text": "seen"}]}}),
        json!({"kind": "message", "body": {"status": "complete", "blocks": [{"type": "text", "text": "It is x."}]}}),
        json!({"kind": "turn_result", "status": "completed", "text": "It is x.",
            "usage": {"input_tokens": 7, "output_tokens": 5, "cost_usd": 0.25}}),
    ];
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let text_of_script = format!(
        "#!/bin/bash\nwhile IFS= read -r -d '' prompt; do cat <<'EOF'\n{}\nEOF\ndone\n",
        lines.join("\n")
    );
    create(&daemon, script(&daemon, &text_of_script));
    let answer = daemon.completed("coder", "what is it?");
    assert_eq!(text(&answer), "It is x.");
    assert_eq!(answer.usage.input_tokens, 7);
    assert_eq!(answer.usage.cost_usd, Some(0.25));
    let events = daemon.events("coder");
    let call = events.iter().find_map(|event| match &event.body {
        Body::MessageAdded(message) => message.blocks.iter().find_map(Block::as_call).cloned(),
        _ => None,
    });
    let call = call.unwrap();
    assert_eq!(call.name, "look");
    let ended = events.iter().find_map(|event| match &event.body {
        Body::ResultAdded(result) if result.call == call.id => Some(result.clone()),
        _ => None,
    });
    let ended = ended.unwrap();
    assert_eq!(ended.outcome, CallOutcome::Ok);
    assert_eq!(ended.blocks, [Block::text("seen")]);
    assert_eq!(daemon.count("coder", Kind::ToolStarted), 1);
    daemon.verify();
}

/// A turn that fails has used something, too.
#[test]
fn the_tokens_of_a_failed_turn_are_charged() {
    let daemon = TestDaemon::new();
    let failed = json!({"kind": "turn_result", "status": "failed", "text": "", "error": "no luck",
        "usage": {"input_tokens": 7, "output_tokens": 5, "cost_usd": 0.25}});
    let text_of_script =
        format!("#!/bin/bash\nwhile IFS= read -r -d '' prompt; do echo '{failed}'; done\n");
    create(&daemon, script(&daemon, &text_of_script));
    let answer = daemon.ask("coder", "go");
    assert_eq!(answer.status, Status::Failed, "{answer:#?}");
    assert_eq!(answer.usage.input_tokens, 7);
    assert_eq!(answer.usage.cost_usd, Some(0.25));
    daemon.verify();
}

/// Answers one prompt. Then it cannot answer any more, although it does not end.
const ONCE: &str = r#"#!/bin/bash
IFS= read -r -d '' prompt
echo "$prompt" >> effects
printf 'done\0'
exec >&-
touch closed
sleep 300
"#;

#[test]
fn a_program_whose_output_has_ended_is_started_again_for_the_next_prompt() {
    let daemon = TestDaemon::new();
    create(&daemon, script(&daemon, ONCE));
    assert_eq!(text(&daemon.completed("coder", "one")), "done");
    until("the end of its output", || {
        daemon.work().join("closed").exists().then_some(())
    });
    assert_eq!(text(&daemon.completed("coder", "two")), "done");
    assert_eq!(daemon.effects(), ["one", "two"]);
    daemon.verify();
}

/// It cannot answer any more, although it does not end.
const CLOSES: &str = r#"#!/bin/bash
IFS= read -r -d '' prompt
echo "$prompt" >> effects
exec >&-
sleep 300
"#;

#[test]
fn a_program_that_closes_its_output_in_a_turn_is_killed_and_the_turn_fails() {
    let daemon = TestDaemon::new();
    create(&daemon, script(&daemon, CLOSES));
    let answer = daemon.ask("coder", "one");
    assert_eq!(answer.status, Status::Failed, "{answer:#?}");
    until_no_script(&daemon);
    assert_eq!(daemon.effects(), ["one"]);
    daemon.verify();
}

#[test]
fn an_interrupt_reaches_the_program_and_the_next_prompt_is_answered() {
    let daemon = TestDaemon::new();
    create(&daemon, script(&daemon, WAITS));
    let sent = daemon.send("coder", "one");
    begun(&daemon, "one");
    let before = scripts(&daemon);
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted, "{answer:#?}");
    fs::write(daemon.work().join("go"), "").unwrap();
    let next = daemon.completed("coder", "two");
    assert!(text(&next).contains("begun two; done"), "{next:#?}");
    // The program confirmed the interrupt, so it is the same one.
    let after = scripts(&daemon);
    assert!(
        after.iter().any(|pid| before.contains(pid)),
        "{before:?} {after:?}"
    );
    assert_eq!(daemon.effects(), ["one", "two"]);
    daemon.verify();
}

#[test]
fn a_program_that_is_killed_in_mid_turn_fails_the_turn_and_is_started_again() {
    let daemon = TestDaemon::new();
    create(&daemon, script(&daemon, WAITS));
    let sent = daemon.send("coder", "one");
    begun(&daemon, "one");
    for pid in scripts(&daemon) {
        kill(pid, Signal::KILL);
    }
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Failed, "{answer:#?}");
    fs::write(daemon.work().join("go"), "").unwrap();
    let next = daemon.completed("coder", "two");
    assert!(text(&next).contains("done"), "{next:#?}");
    assert_eq!(daemon.effects(), ["one", "two"]);
    daemon.verify();
}

#[test]
fn no_prompt_is_sent_again_after_a_crash_of_the_runtime() {
    let daemon = TestDaemon::new();
    create(&daemon, script(&daemon, WAITS));
    let sent = daemon.send("coder", "one");
    begun(&daemon, "one");
    let old = scripts(&daemon);
    daemon.kill_runtime("coder");
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted, "{answer:#?}");
    let notice = daemon.until_event(
        "coder",
        |body| matches!(body, Body::Notice(notice) if notice.cause == NoticeCause::Crashed),
    );
    let Body::Notice(notice) = notice.body else {
        panic!("{notice:?}")
    };
    assert!(notice.text.contains("not sent again"), "{}", notice.text);
    until("the end of the old program", || {
        let left = scripts(&daemon);
        (!left.iter().any(|pid| old.contains(pid))).then_some(())
    });
    fs::write(daemon.work().join("go"), "").unwrap();
    daemon.completed("coder", "two");
    assert_eq!(daemon.effects(), ["one", "two"]);
    let ends = daemon
        .events("coder")
        .into_iter()
        .filter_map(|event| match event.body {
            Body::TurnEnded(ended) => Some(ended.status),
            _ => None,
        });
    let ends: Vec<TurnStatus> = ends.collect();
    assert_eq!(ends, [TurnStatus::Interrupted, TurnStatus::Completed]);
    daemon.verify();
}

#[test]
fn a_turn_survives_the_daemon() {
    let daemon = TestDaemon::new();
    create(&daemon, script(&daemon, WAITS));
    let sent = daemon.send("coder", "one");
    begun(&daemon, "one");
    daemon.kill_daemon();
    daemon.start_daemon();
    fs::write(daemon.work().join("go"), "").unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Completed, "{answer:#?}");
    assert!(text(&answer).contains("begun one; done"), "{answer:#?}");
    assert_eq!(daemon.effects(), ["one"]);
    daemon.verify();
}

#[test]
fn a_reset_in_mid_turn_ends_the_program() {
    let daemon = TestDaemon::new();
    create(&daemon, script(&daemon, WAITS));
    let sent = daemon.send("coder", "one");
    begun(&daemon, "one");
    let old = scripts(&daemon);
    reset(&daemon, None);
    assert!(daemon.answer("coder", sent.prompt).status.is_over());
    assert!(!scripts(&daemon).iter().any(|pid| old.contains(pid)));
    fs::write(daemon.work().join("go"), "").unwrap();
    daemon.completed("coder", "two");
    assert_eq!(daemon.effects(), ["one", "two"]);
    assert!(daemon.cli(&["daemon", "stop"]).status.success());
    until_no_script(&daemon);
}

#[test]
fn a_program_gets_only_the_secrets_that_its_env_refers_to() {
    let daemon = TestDaemon::new();
    let shows = Command {
        program: "sh".to_owned(),
        args: ["-c", "echo \"key=$KEY other=$ANTHROPIC_API_KEY\""]
            .map(str::to_owned)
            .into(),
        per_turn: true,
        ..Command::default()
    };
    let mut spec = spec(&daemon, shows);
    spec.env
        .insert("KEY".to_owned(), "${KEY_OF_MINE}".to_owned());
    daemon.caller_env("KEY_OF_MINE", "sk-something-secret");
    daemon.create_with("coder", spec);
    let answer = daemon.completed("coder", "show it");
    assert_eq!(text(&answer).trim(), "key=[redacted by agentd] other=");
    let journal = fs::read(daemon.home().join("journal.db")).unwrap();
    let secret = b"sk-something-secret";
    assert!(!journal.windows(secret.len()).any(|bytes| bytes == secret));
}

/// Commands and hooks in the sandbox can write the file in which hooks leave variables.
#[test]
fn a_variable_of_a_hook_reaches_a_program_as_it_is() {
    let daemon = TestDaemon::new();
    daemon.caller_env("VALUE_OF_MINE", "something");
    let says = Command {
        program: "sh".to_owned(),
        args: ["-c", "printf '%s|%s' \"$OWN\" \"$X\""]
            .map(str::to_owned)
            .into(),
        per_turn: true,
        ..Command::default()
    };
    let mut spec = spec(&daemon, says);
    spec.env
        .insert("OWN".to_owned(), "${VALUE_OF_MINE}".to_owned());
    let agent = daemon.create_with("coder", spec);
    assert_eq!(text(&daemon.completed("coder", "one")), "something|");
    let conversation = daemon.show("coder").conversation.unwrap().id;
    let dir = daemon.home().join("agents").join(agent.id.to_string());
    fs::create_dir_all(dir.join("tmp")).unwrap();
    let file = dir.join("tmp").join(format!("agentd-env-{conversation}"));
    fs::write(file, "X='${VALUE_OF_MINE}'\n").unwrap();
    let restarted = daemon.cli(&["restart", "coder"]);
    assert!(restarted.status.success(), "{restarted:?}");
    assert_eq!(
        text(&daemon.completed("coder", "two")),
        "something|${VALUE_OF_MINE}"
    );
    daemon.verify();
}

/// Writes as much as the prompt asks for, at once.
const LARGE: &str = r#"
read -r prompt
case $prompt in
  *two*) yes x | head -c 2000000 ;;
  *twelve*) yes x | head -c 12000000 ;;
  *control*) head -c 8000000 /dev/zero | tr '\0' '\001' ;;
  *) echo small ;;
esac
"#;

/// The text of the newest reply.
fn newest_reply(daemon: &TestDaemon) -> String {
    let mut events = daemon.events("coder").into_iter().rev();
    let blocks = events.find_map(|event| match event.body {
        Body::MessageAdded(message) => Some(message.blocks),
        _ => None,
    });
    let texts = blocks.unwrap().into_iter().filter_map(|block| match block {
        Block::Text { text } => Some(text),
        _ => None,
    });
    texts.collect()
}

/// A piece of a draft has a limit, and so has a message. Beyond them the turn waited for ever.
#[test]
fn an_answer_of_any_size_ends_its_turn() {
    let daemon = TestDaemon::new();
    let large = Command {
        program: "sh".to_owned(),
        args: vec!["-c".to_owned(), LARGE.to_owned()],
        per_turn: true,
        ..Command::default()
    };
    create(&daemon, large);
    daemon.completed("coder", "two");
    let length = newest_reply(&daemon).len();
    assert!((1_999_000..2_001_000).contains(&length), "{length}");
    daemon.completed("coder", "twelve");
    let cut = newest_reply(&daemon);
    assert!(cut.len() < 9 * 1024 * 1024, "{}", cut.len());
    assert!(cut.contains("the rest of the answer was dropped"));
    // JSON needs six bytes for each of these.
    daemon.completed("coder", "control");
    let cut = newest_reply(&daemon);
    assert!(cut.len() < 1024 * 1024, "{}", cut.len());
    assert!(cut.contains("the rest of the answer was dropped"));
    assert_eq!(text(&daemon.completed("coder", "hello")).trim(), "small");
    daemon.verify();
}

#[test]
fn the_failure_of_a_program_is_called_that() {
    let daemon = TestDaemon::new();
    let fails = |program: &str, args: &[&str]| Command {
        program: program.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        per_turn: true,
        ..Command::default()
    };
    let exits = fails("sh", &["-c", "echo oops >&2; exit 3"]);
    let missing = fails("no-such-program-of-this-test", &[]);
    for (name, command, words) in [
        ("exits", exits, ["`sh` ended with exit code 3", "oops"]),
        (
            "missing",
            missing,
            ["`no-such-program-of-this-test`", "check `command`"],
        ),
    ] {
        daemon.create_with(name, spec(&daemon, command));
        let answer = daemon.ask(name, "go");
        assert_eq!(answer.status, Status::Failed, "{answer:#?}");
        assert_eq!(answer.failure, Some(FailureClass::ProgramFailed));
        let why = answer.error.unwrap();
        for word in words {
            assert!(why.contains(word), "{word}: {why}");
        }
        let shown = daemon.cli(&["logs", name]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("the agent's program failed"), "{shown}");
        assert!(!shown.contains("provider"), "{shown}");
    }
}

/// A program outside the directories that a sandbox shows does not exist in it.
#[test]
fn a_program_that_the_sandbox_hides_leads_to_readable() {
    let daemon = TestDaemon::new();
    let hidden = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = hidden.path().join("agent.sh");
    fs::write(&path, "#!/bin/sh\necho hello\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let program = Command {
        program: path.display().to_string(),
        per_turn: true,
        ..Command::default()
    };
    create(&daemon, program);
    let answer = daemon.ask("coder", "go");
    // Where there is no sandbox, the program is there.
    if answer.status != Status::Completed {
        let why = answer.error.unwrap();
        assert!(why.contains("`readable`"), "{why}");
    }
}
