//! The test prompt: a one-shot agent without tools, which is archived afterwards.

use super::questions::Answers;
use crate::connect;
use crate::described::{settle_cwd, settle_provider};
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::providers;
use agentd_client::Client;
use agentd_client::api::{Answer, Archive, Create, Status};
use agentd_core::catalog::Catalog;
use agentd_core::event::Mode;
use agentd_core::id::PromptId;
use agentd_core::spec::AgentSpec;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const PROMPT: &str = "This is a test of the connection. Reply with the single word: OK";
/// How long the model may take to answer.
const LIMIT: Duration = Duration::from_secs(60);
/// How long one request waits for the answer.
const STEP: Duration = Duration::from_millis(500);
/// How much of the answer is shown.
const SHOWN: usize = 60;

pub async fn run(catalog: &Catalog, answers: &Answers, out: &mut Output) -> Result<(), Error> {
    let mut spec = AgentSpec {
        provider: Some(answers.provider.name.clone()),
        model: Some(answers.model.clone()),
        tools: Some(Vec::new()),
        ..AgentSpec::default()
    };
    settle_cwd(&mut spec, None)?;
    settle_provider(&mut spec, catalog, &providers::stored())?;
    let create = Create {
        mode: Some(Mode::Oneshot),
        spec,
        prompt: Some(PROMPT.to_owned()),
        env: providers::env(catalog, &BTreeSet::new()),
        ..Create::default()
    };
    let (provider, model) = (&answers.provider.name, &answers.model);
    out.aside(format_args!(
        "sending a test prompt to {model} of {provider}"
    ))?;
    let client = connect::client().await?;
    let created = client.create(&create).await?;
    let name = created.agent.name.as_str();
    let Some(prompt) = created.prompt else {
        return Err(
            Error::new(Exit::Unavailable, "the test prompt was not accepted")
                .next("the daemon may have another version: `agentd daemon stop`, then try again"),
        );
    };
    let answer = wait(&client, name, prompt).await?;
    if answer.status != Status::Completed {
        return Err(failed(&answer, name));
    }
    // Only a finished one: the log of another one is worth a look.
    client.archive(name, &Archive::default()).await?;
    let first = answer.text.lines().next().unwrap_or_default();
    let shown: String = first.chars().take(SHOWN).collect();
    out.aside(format_args!("it answered: {shown}"))
}

async fn wait(client: &Client, name: &str, prompt: PromptId) -> Result<Answer, Error> {
    let begin = Instant::now();
    loop {
        let answer = client.answer(name, prompt, STEP).await?;
        if answer.status.is_over() || answer.status == Status::Waiting {
            return Ok(answer);
        }
        if begin.elapsed() >= LIMIT {
            client.interrupt(name).await?;
            let what = format!("no answer within {} seconds", LIMIT.as_secs());
            return Err(Error::new(Exit::TimedOut, what).next(format!("see `agentd logs {name}`")));
        }
    }
}

fn failed(answer: &Answer, name: &str) -> Error {
    let exit = match answer.status {
        Status::Waiting => Exit::Waiting,
        Status::Limited => Exit::Limited,
        Status::Interrupted => Exit::Interrupted,
        _ => Exit::Failed,
    };
    let error = Error::new(exit, "the test prompt was not answered");
    let error = match &answer.error {
        Some(why) => error.because(why),
        None => error,
    };
    error.next(format!(
        "see `agentd logs {name}`; `agentd init --no-test` writes the file without a test"
    ))
}
