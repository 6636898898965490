//! A command that waits for an answer asks the user about calls that need approval, and then goes on waiting.

use crate::connect::Connection;
use crate::error::Error;
use crate::live::Line;
use crate::output::Output;
use crate::showing::Showing;
use crate::watch::{self, Awaited};
use crate::{ask, keys, overwritten, render};
use agentd_client::api::{Agent, Answer, AnswerQuestion, Approval, Approve, Deny, Status};
use agentd_client::{Client, Kind};
use agentd_core::mcp::Question;
use serde_json::{Map, Value};
use std::time::Duration;

/// How often the daemon is asked whether a call was answered elsewhere.
const LOOK: Duration = Duration::from_millis(500);

/// What the user says to a call.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Yes,
    Always,
    No(Option<String>),
    /// The answer to a question of an MCP server.
    Filled(Map<String, Value>),
}

/// Waits like [`watch::answer`]. If the live view is shown and the user can be asked, returns only when the turn, or an earlier
/// one that the prompt is queued behind, waits for something else than an approval, or the user gives no answer.
pub async fn answer(
    connection: &mut Connection,
    name: &str,
    mut awaited: Awaited,
    showing: &mut Showing,
    out: &mut Output,
) -> Result<Answer, Error> {
    let is_asked = matches!(showing, Showing::Live(_)) && ask::is_possible();
    loop {
        let answer = watch::answer(connection, name, &mut awaited, showing, out).await?;
        if answer.status != Status::Waiting || !is_asked {
            return Ok(answer);
        }
        showing.pause();
        let client = connection.client.clone();
        let Some(asked) = client.agent(name).await?.approvals.into_iter().next() else {
            return Ok(answer);
        };
        if answer.turn.is_none() {
            out.aside("Your prompt is queued behind a turn that waits for your approval:")?;
        }
        show(&asked, out)?;
        let is_over = tokio::select! {
            biased;
            () = gone(&client, name, &asked) => false,
            is_over = ask_and_send(&client, name, &asked, out) => is_over?,
        };
        if is_over {
            return Ok(answer);
        }
    }
}

/// Asks until an answer is accepted. Returns whether the user gave none.
async fn ask_and_send(
    client: &Client,
    name: &str,
    asked: &Approval,
    out: &mut Output,
) -> Result<bool, Error> {
    let mut offer = Offer::of(asked);
    loop {
        let reply = match &asked.question {
            Some(question) => form(question, out).await?,
            None => question(&offer).await?,
        };
        let Some(reply) = reply else {
            return Ok(true);
        };
        let is_always = reply == Reply::Always;
        match send(client, name, asked, reply).await {
            // A rule of the user may stand against it: the call still waits.
            Err(error) if is_always => {
                out.aside(&error)?;
                offer = Offer::Once;
            }
            sent => return sent.map(|()| false),
        }
    }
}

/// Shows the call. A long line of the model is broken here, so that no row of it looks like a line of ours.
fn show(asked: &Approval, out: &mut Output) -> Result<(), Error> {
    let (none, quote) = (Line::default(), Line::plain(render::approval::QUOTE));
    let width = out.width().map_or(80, usize::from);
    let before = asked.what.as_ref().and_then(overwritten::text);
    for line in render::approval::lines_with(asked, before.as_deref()) {
        let is_quoted = line.starts_with(render::approval::QUOTE);
        let more = if is_quoted { &quote } else { &none };
        for row in Line::of_painted(&line) {
            for row in row.wrapped(width, &none, more) {
                out.aside(row)?;
            }
        }
    }
    Ok(())
}

/// Which answers are offered.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Offer {
    /// With what a rule would allow.
    Always(String),
    /// No rule can express the call, or the rule was refused.
    Once,
}

impl Offer {
    fn of(asked: &Approval) -> Self {
        let call = asked.what.as_ref();
        match call.filter(|call| call.once_only().is_none()) {
            Some(call) => Self::Always(render::approval::always(call)),
            None => Self::Once,
        }
    }

    fn question(&self) -> String {
        let always = match self {
            Self::Always(what) => format!(" (a)lways ({what}),"),
            Self::Once => String::new(),
        };
        format!("Run it? (y)es,{always} (n)o, or `n` and the reason:")
    }
}

/// Asks until the user gives one of the answers; none at the end of input.
async fn question(offer: &Offer) -> Result<Option<Reply>, Error> {
    ask::forget_typed();
    let question = offer.question();
    loop {
        let Some(line) = ask::line(&question).await? else {
            return Ok(None);
        };
        match reply(&line) {
            Some(Reply::Always) if *offer == Offer::Once => {}
            Some(reply) => return Ok(Some(reply)),
            None => {}
        }
    }
}

/// Asks whether the user answers the question of a server, and then for each field.
async fn form(question: &Question, out: &mut Output) -> Result<Option<Reply>, Error> {
    ask::forget_typed();
    loop {
        let Some(line) = ask::line("Answer it? (y)es, (n)o, or `n` and the reason:").await? else {
            return Ok(None);
        };
        match reply(&line) {
            Some(Reply::Yes) => break,
            Some(reply @ Reply::No(_)) => return Ok(Some(reply)),
            _ => {}
        }
    }
    let mut content = Map::new();
    for field in question.fields() {
        loop {
            let shown = format!("{}:", render::approval::field(&field));
            let Some(typed) = ask::line(&shown).await? else {
                return Ok(None);
            };
            let value = match (typed.is_empty(), field.usable_default()) {
                (true, Some(default)) => Ok(default),
                (true, None) if !field.is_required => break,
                _ => field.value(&typed),
            };
            match value {
                Ok(value) => {
                    content.insert(field.name.clone(), value);
                    break;
                }
                Err(why) => out.aside(why)?,
            }
        }
    }
    Ok(Some(Reply::Filled(content)))
}

fn reply(line: &str) -> Option<Reply> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
    match (word.to_ascii_lowercase().as_str(), rest) {
        ("y" | "yes", None) => Some(Reply::Yes),
        ("a" | "always", None) => Some(Reply::Always),
        ("n" | "no", reason) => Some(Reply::No(reason)),
        _ => None,
    }
}

async fn send(client: &Client, name: &str, asked: &Approval, reply: Reply) -> Result<(), Error> {
    keys::merge_env(client, name).await?;
    let hash = asked.what.as_ref().map(|call| call.hash.clone());
    let sent = match reply {
        Reply::No(reason) => client.deny(name, asked.id, &Deny { hash, reason }).await,
        Reply::Filled(content) => {
            let answer = AnswerQuestion { content };
            client.answer_question(name, asked.id, &answer).await
        }
        reply => {
            let always = reply == Reply::Always;
            let approve = Approve { hash, always };
            client.approve(name, asked.id, &approve).await
        }
    };
    match sent {
        // It was answered elsewhere.
        Err(agentd_client::Error::Problem(problem)) if problem.kind == Kind::Conflict => Ok(()),
        sent => Ok(sent.map(drop)?),
    }
}

/// Returns when the call does not wait any more, for example because another client has answered.
async fn gone(client: &Client, name: &str, asked: &Approval) {
    loop {
        // tidy: polls for the answer of another client
        tokio::time::sleep(LOOK).await;
        let agent = client.agent(name).await;
        let is_waiting = |agent: Agent| {
            let mut waiting = agent.approvals.iter();
            waiting.any(|it| it.id == asked.id)
        };
        // Without an answer, the call is taken to wait.
        if agent.is_ok_and(|agent| !is_waiting(agent)) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_says_what_always_would_allow() {
        let offer = Offer::Always("every call of mcp__git__push".to_owned());
        let expected =
            "Run it? (y)es, (a)lways (every call of mcp__git__push), (n)o, or `n` and the reason:";
        assert_eq!(offer.question(), expected);
        let once = "Run it? (y)es, (n)o, or `n` and the reason:";
        assert_eq!(Offer::Once.question(), once);
    }

    #[test]
    fn an_answer_is_a_word_and_a_denial_may_have_a_reason() {
        for (line, expected) in [
            ("y", Some(Reply::Yes)),
            ("YES", Some(Reply::Yes)),
            ("a", Some(Reply::Always)),
            ("n", Some(Reply::No(None))),
            ("n use make", Some(Reply::No(Some("use make".to_owned())))),
            ("", None),
            ("yes please", None),
            ("maybe", None),
        ] {
            assert_eq!(reply(line), expected, "{line}");
        }
    }
}
