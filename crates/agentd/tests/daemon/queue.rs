//! The queue: prompts are edited, moved and removed until their turn begins, whatever is killed meanwhile.

use crate::hooks_fixture::{command, file, heard_of, keep_and, user};
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{EditPrompt, Queue, RemovePrompts, Start, Status, Stop};
use agentd_client::{Error, Kind as ProblemKind};
use agentd_core::event::{Kind, PromptMode};
use agentd_core::id::PromptId;

fn edit(daemon: &TestDaemon, prompt: PromptId, text: &str) -> Result<Queue, Error> {
    let edit = EditPrompt {
        prompt: prompt.to_string(),
        text: text.to_owned(),
        edits: None,
    };
    daemon.block(daemon.client().edit_prompt("coder", &edit))
}

fn remove(daemon: &TestDaemon, prompt: PromptId) -> Result<Queue, Error> {
    let remove = RemovePrompts {
        prompts: vec![prompt.to_string()],
    };
    daemon.block(daemon.client().remove_prompts("coder", &remove))
}

fn kind(result: Result<Queue, Error>) -> ProblemKind {
    match result {
        Err(Error::Problem(problem)) => problem.kind,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_changed_while_a_turn_ran_is_what_the_model_sees() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let first = daemon.send("coder", "do: hang");
    daemon.until_kind("coder", Kind::RequestSent);
    let edited = daemon.send("coder", "do: say the old text");
    let removed = daemon.block(daemon.client().send(
        "coder",
        &agentd_client::api::Send {
            text: "do: say never".to_owned(),
            mode: PromptMode::Steer,
            env: daemon.caller(),
            ..Default::default()
        },
    ));
    let removed = removed.unwrap();
    assert_eq!(
        kind(edit(&daemon, first.prompt, "too late")),
        ProblemKind::NotFound
    );
    assert_eq!(kind(remove(&daemon, first.prompt)), ProblemKind::NotFound);
    assert_eq!(
        kind(edit(&daemon, edited.prompt, " \n")),
        ProblemKind::Invalid
    );
    remove(&daemon, removed.prompt).unwrap();
    let queue = edit(&daemon, edited.prompt, "do: say the new text").unwrap();
    assert_eq!(queue.prompts.len(), 1);
    // All of it is durable, and known to the runtime and to the next one.
    daemon.kill_runtime("coder");
    daemon.kill_daemon();
    daemon.start_daemon();
    // The new daemon does not know the caller's key.
    let start = Start {
        env: daemon.caller(),
        ..Start::default()
    };
    let client = daemon.client();
    daemon.block(client.merge_env("coder", &start)).unwrap();
    let queue = daemon.block(client.queue("coder")).unwrap();
    assert_eq!(queue.prompts[0].text, "do: say the new text");
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    let answer = daemon.answer("coder", edited.prompt);
    assert_eq!(
        (answer.status, &*answer.text),
        (Status::Completed, "the new text")
    );
    assert_eq!(
        daemon.answer("coder", removed.prompt).status,
        Status::Removed
    );
    for request in daemon.requests() {
        let request = format!("{request:?}");
        assert!(
            !request.contains("the old text") && !request.contains("say never"),
            "{request}"
        );
    }
    daemon.verify();
}

#[test]
fn hooks_check_the_text_that_the_model_sees() {
    let daemon = TestDaemon::new();
    let judge = keep_and("echo asked >> effects; until test -e go; do sleep 0.01; done");
    user(&daemon, &file(&[("UserPromptSubmit", judge)]));
    daemon.create("coder");
    let sent = daemon.send("coder", "do: say one");
    until("the hook", || (daemon.effects().len() == 1).then_some(()));
    // Its verdict would be for another text.
    assert_eq!(
        kind(edit(&daemon, sent.prompt, "do: say two")),
        ProblemKind::Conflict
    );
    // With the agent stopped, no turn can begin, and the new text is checked from the start.
    let stop = Stop::default();
    daemon.block(daemon.client().stop("coder", &stop)).unwrap();
    until("its end", || {
        let journal = daemon.show("coder");
        journal.process.pid.is_none().then_some(())
    });
    edit(&daemon, sent.prompt, "do: say two").unwrap();
    std::fs::write(daemon.work().join("go"), "").unwrap();
    user(
        &daemon,
        &file(&[("UserPromptSubmit", command(crate::hooks_fixture::KEEP))]),
    );
    daemon
        .block(daemon.client().start(
            "coder",
            &Start {
                env: daemon.caller(),
                ..Default::default()
            },
        ))
        .unwrap();
    assert_eq!(daemon.answer("coder", sent.prompt).text, "two");
    let told = heard_of(&daemon, "UserPromptSubmit");
    let told: Vec<_> = told
        .iter()
        .map(|told| told["prompt"].as_str().unwrap())
        .collect();
    assert_eq!(told, ["do: say one", "do: say two"]);
    daemon.verify();
}
