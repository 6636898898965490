//! `agentd queue`.

use super::test_cli::{Ran, TestCli};
use serde_json::Value;

/// An agent that is stopped, so that its prompts wait.
fn stopped(prompts: &[&str]) -> TestCli {
    let cli = TestCli::with_coder();
    cli.ok(&["stop", "coder"]);
    for prompt in prompts {
        cli.ok(&["send", "coder", "--no-wait", prompt]);
    }
    cli
}

fn texts(queue: &Value) -> Vec<&str> {
    let prompts = queue["prompts"].as_array().unwrap().iter();
    prompts.map(|it| it["text"].as_str().unwrap()).collect()
}

#[test]
fn prompts_that_wait_are_listed_in_their_order_with_their_texts() {
    let cli = stopped(&["run `echo one`", "run `echo two`"]);
    let queue = cli.json(&["queue", "coder"]);
    assert_eq!(texts(&queue), ["run `echo one`", "run `echo two`"]);
    assert_eq!(queue["prompts"][1]["position"], 2);
    assert_eq!(queue["prompts"][1]["mode"], "queue");
    let text = cli.ok(&["queue", "coder"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("#  PROMPT"), "{text}");
    assert!(
        lines[1].starts_with("1  ") && lines[1].ends_with("run `echo one`"),
        "{text}"
    );
    cli.ok(&["queue", "rm", "coder", "1", "2"]);
    assert_eq!(cli.ok(&["queue", "coder"]), "no prompt waits for coder\n");
}

#[test]
fn an_edited_prompt_keeps_its_id_its_key_and_its_place_and_is_answered_with_the_new_text() {
    let cli = stopped(&[]);
    let send = ["send", "coder", "--no-wait", "--key", "k", "run `echo old`"];
    let sent = cli.json(&send);
    cli.ok(&["send", "coder", "--no-wait", "run `echo two`"]);
    let queue = cli.json(&["queue", "edit", "coder", "1", "run `echo new`"]);
    assert_eq!(texts(&queue), ["run `echo new`", "run `echo two`"]);
    assert_eq!(queue["prompts"][0]["prompt"], sent["prompt"]);
    assert_eq!(queue["prompts"][0]["edits"], 1);
    // The same prompt again, under its key: it is accepted once, and the edit stays.
    assert_eq!(cli.json(&send)["prompt"], sent["prompt"]);
    assert_eq!(texts(&cli.json(&["queue", "coder"]))[0], "run `echo new`");
    let other = ["send", "coder", "--no-wait", "--key", "k", "run `echo new`"];
    cli.refused(3, &other);
    cli.ok(&["start", "coder"]);
    let prompt = sent["prompt"].as_str().unwrap();
    let answer = cli.json(&["wait", "coder", prompt]);
    assert!(
        answer["text"].as_str().unwrap().contains("new"),
        "{answer:#}"
    );
    let log = cli.ok(&["logs", "coder"]);
    assert!(log.contains("the queued prompt was changed to:"), "{log}");
}

#[test]
fn the_text_is_edited_in_the_editor_and_kept_if_it_comes_too_late() {
    let cli = stopped(&["run `echo old`"]);
    let edit = |editor: &str, status: i32| {
        let mut command = cli.command(&["queue", "edit", "coder", "1"]);
        let ran: Ran = command.env("VISUAL", editor).output().unwrap().into();
        assert_eq!(ran.code, Some(status), "{ran:#?}");
        ran.err
    };
    edit("sed -i s/old/new/", 0);
    assert_eq!(texts(&cli.json(&["queue", "coder"])), ["run `echo new`"]);
    edit("true", 0);
    assert_eq!(cli.json(&["queue", "coder"])["prompts"][0]["edits"], 1);
    // The prompt is gone when the editor exits.
    let agentd = env!("CARGO_BIN_EXE_agentd");
    let slow = format!("{agentd} queue rm coder 1 >/dev/null; sed -i s/new/late/");
    let told = edit(&slow, 7);
    let (_, path) = told.split_once("your text is in ").unwrap();
    let path = path.lines().next().unwrap().trim();
    assert_eq!(
        std::fs::read_to_string(path).unwrap().trim(),
        "run `echo late`"
    );
}

#[test]
fn a_prompt_is_moved_by_its_number_or_by_the_beginning_of_its_id() {
    let cli = stopped(&["run `echo a`", "run `echo b`", "run `echo c`"]);
    let order = |args: &[&str]| {
        let queue = cli.json(&[&["queue", "move", "coder"], args].concat());
        let texts = texts(&queue).into_iter();
        texts
            .map(|text| {
                text.trim_start_matches("run `echo ")
                    .trim_end_matches('`')
                    .to_owned()
            })
            .collect::<Vec<_>>()
            .join("")
    };
    assert_eq!(order(&["3", "--first"]), "cab");
    assert_eq!(order(&["1", "--last"]), "abc");
    assert_eq!(order(&["3", "--before", "2"]), "acb");
    assert_eq!(order(&["1", "--first"]), "acb");
    let id = cli.json(&["queue", "coder"])["prompts"][2]["prompt"].clone();
    assert_eq!(order(&[id.as_str().unwrap(), "--first"]), "bac");
    cli.refused(7, &["queue", "move", "coder", "9", "--first"]);
    cli.refused(2, &["queue", "move", "coder", "1"]);
}

#[test]
fn a_command_that_waits_for_a_removed_prompt_ends_with_exit_code_3() {
    let cli = stopped(&["run `echo one`"]);
    let id = cli.json(&["queue", "coder"])["prompts"][0]["prompt"].clone();
    let id = id.as_str().unwrap();
    let remove = ["queue", "rm", "coder", id, "--op", "my-op"];
    cli.ok(&remove);
    // The same command again changes nothing and succeeds.
    cli.ok(&remove);
    cli.refused(7, &["queue", "rm", "coder", id]);
    let ran = cli.run(&["wait", "coder", id, "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let answer: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(answer["status"], "removed", "{answer:#}");
    cli.ok(&["start", "coder"]);
    cli.ok(&["send", "coder", "run `echo two`"]);
    let log = cli.ok(&["logs", "coder"]);
    assert!(log.contains("removed from the queue: 1 prompt"), "{log}");
    cli.until_phase("coder", "idle");
}
