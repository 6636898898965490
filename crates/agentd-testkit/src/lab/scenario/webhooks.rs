//! Messages from a bound address, whose answers go to a webhook that is broken, silent and slow at first. The address is
//! unbound while the agent still answers them. The same service is the user's destination of notifications.

use crate::harness::{Received, Reply, Webhooks, is_signed};
use crate::lab::testbed::{Prompted, Result, Stuck, Testbed, lock, pause};
use agentd_client::api::{BindingMessage, SetSecret, Unbind};
use agentd_client::{Error, Kind};
use agentd_core::outbox::binding::prompt_text;
use serde_json::json;
use std::time::Duration;

const AGENT: &str = "worker";
const ADDRESS: &str = "lab:thread/1";
const NAME: &str = "LAB_HOOK";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const MESSAGES: usize = 3;
/// Left for the end of the run. The checker decides about messages that did not arrive until then.
const LAST: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_secs(5);

pub fn run(testbed: &Testbed) -> Result<()> {
    let webhooks = Webhooks::start()?;
    webhooks.then([
        Reply::Status(500),
        Reply::Close,
        Reply::Slowly(Duration::from_millis(50), 200),
        Reply::Close,
    ]);
    notify(testbed, &webhooks)?;
    testbed.create(AGENT, "")?;
    until_done(testbed, "the secret", async || {
        let set = SetSecret {
            value: SECRET.to_owned(),
        };
        testbed.client().set_secret(NAME, &set).await.map(drop)
    })?;
    let url = webhooks.url();
    let args = [
        "bind",
        AGENT,
        ADDRESS,
        "--webhook",
        &url,
        "--secret",
        NAME,
        "--json",
    ];
    let bound = testbed.order(AGENT, "bind", None, &args)?;
    let bound = bound.json().unwrap_or_default();
    let Some(binding) = bound["id"].as_str() else {
        return Err(Stuck::Wrong(format!("not bound: {bound}")));
    };
    let mut numbers = Vec::new();
    for n in 1..=MESSAGES {
        numbers.push(post(testbed, binding, n)?);
    }
    unbind(testbed)?;
    for number in numbers {
        testbed.answer(number)?;
    }
    // An answer and a notification for each, and the last message of the binding.
    while webhooks.accepted().len() < 2 * MESSAGES + 1 && testbed.left() > LAST {
        // Starts a daemon if none runs.
        let _later = testbed.look(AGENT);
        pause();
    }
    testbed.wait_idle(&[AGENT])?;
    for received in webhooks.received() {
        testbed.record.line("webhooks.jsonl", &line(&received))?;
    }
    Ok(())
}

/// Ends the binding. What was accepted is still answered.
fn unbind(testbed: &Testbed) -> Result<()> {
    testbed.expect("unbound", json!(true));
    until_done(testbed, "the end of the binding", async || {
        let asked = testbed.client().unbind(ADDRESS, Unbind::default()).await;
        match asked {
            // It was unbound by a request whose answer was lost, and its last message was delivered.
            Err(Error::Problem(problem)) if problem.kind == Kind::NotFound => Ok(()),
            asked => asked.map(drop),
        }
    })
}

/// The settings of a user who wants to be notified of the end of every turn. No daemon runs yet.
fn notify(testbed: &Testbed, webhooks: &Webhooks) -> Result<()> {
    let file = testbed.home().join("config.toml");
    let settings = std::fs::read_to_string(&file)?;
    let url = webhooks.url();
    let more = format!(
        "[notify]\non = [\"completed\", \"failed\", \"limited\", \"lost\"]\n\
         [notify.webhooks.lab]\nurl = \"{url}\"\nsecret = \"{NAME}\"\n"
    );
    std::fs::write(&file, settings + &more)?;
    testbed.expect("notices", json!(true));
    Ok(())
}

fn line(received: &Received) -> serde_json::Value {
    json!({
        "id": received.id(),
        "accepted": received.accepted,
        "signed": is_signed(received, SECRET),
        "raw": received.raw,
    })
}

/// Posts a message until it is acknowledged, and registers the prompt that it became.
fn post(testbed: &Testbed, binding: &str, n: usize) -> Result<usize> {
    let (id, text) = (format!("m{n}"), format!("this is message number {n}"));
    let message = BindingMessage {
        id: id.clone(),
        sender: Some("ada".to_owned()),
        text: text.clone(),
    };
    let number = {
        let mut prompts = lock(&testbed.prompts);
        prompts.push(Prompted {
            at: testbed.record.at(),
            agent: AGENT.to_owned(),
            key: format!("{binding}:{id}"),
            text: prompt_text(ADDRESS, Some("ada"), &text),
            ..Prompted::default()
        });
        prompts.len() - 1
    };
    let sent = until_done(testbed, "a message", async || {
        testbed.client().post_message(ADDRESS, &message).await
    })?;
    if let Some(known) = lock(&testbed.prompts).get_mut(number) {
        known.prompt = Some(sent.prompt.to_string());
    }
    Ok(number)
}

/// Repeats a request until there is an answer. A daemon that does not run is started.
fn until_done<T>(
    testbed: &Testbed,
    what: &str,
    ask: impl AsyncFn() -> std::result::Result<T, Error>,
) -> Result<T> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build()?;
    loop {
        testbed.check_time(what)?;
        let asked = async { tokio::time::timeout(PATIENCE, ask()).await };
        match runtime.block_on(asked) {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(Error::Problem(problem))) if problem.kind != Kind::Unavailable => {
                return Err(Stuck::Wrong(format!("{what}: {problem:?}")));
            }
            Ok(Err(_)) | Err(_) => {
                let _later = testbed.look(AGENT);
                pause();
            }
        }
    }
}
