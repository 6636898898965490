//! `agentd approve`.

use super::tell;
use crate::complete;
use crate::connect;
use crate::error::{Error, Exit};
use crate::keys;
use crate::op::Op;
use crate::output::Output;
use crate::render;
use agentd_client::Client;
use agentd_client::api::{Agent, Approval, Approve, Call};
use agentd_core::id::{ApprovalId, Chosen, IdPrefix};

const EXAMPLES: &str = "\
Examples:
  agentd approve coder
  agentd approve coder --always
  agentd approve coder 0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f

Prints the call that it approves: the command or the change, the directory, the sandbox and why approval is \
needed. `agentd show` prints the same beforehand. Without an id, approves the only waiting call. The approval is \
bound to that exact call; if several clients answer, the first answer counts.";

/// Approve a tool call that is waiting for permission
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub question: Question,
    /// Also allow the same call in the future: adds a rule to the agent's settings
    #[arg(long)]
    always: bool,
}

/// A call that waits for approval.
#[derive(Debug, clap::Args)]
pub struct Question {
    /// The agent
    #[arg(add = complete::agents())]
    pub name: String,
    /// The id of the approval, or its beginning [default: the only one that is waiting]
    #[arg(value_name = "APPROVAL", add = complete::approvals())]
    approval: Option<IdPrefix>,
    #[command(flatten)]
    op: Op,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let always = args.always;
    let approve = async |client: &Client, name: &str, id, hash| {
        client.approve(name, id, &Approve { hash, always }).await
    };
    let asked = answer(&args.question, "approved", approve, out).await?;
    if args.always && !args.question.json {
        let call = asked.and_then(|asked| asked.what);
        out.line(rule_added(&args.question.name, call.as_ref()))?;
    }
    Ok(())
}

/// What the new rule allows: it may be more than this call.
fn rule_added(name: &str, call: Option<&Call>) -> String {
    let allows = call.map(|call| format!(", which allows {}", render::approval::always(call)));
    let allows = allows.unwrap_or_default();
    format!("  rule added to the settings of {name}{allows}; see `agentd edit {name}`")
}

/// Answers an approval request. `send` sends the answer, with the digest of the call that the user saw. Returns the request;
/// none if it was not waiting any more.
pub async fn answer(
    question: &Question,
    verb: &str,
    send: impl AsyncFnOnce(
        &Client,
        &str,
        ApprovalId,
        Option<String>,
    ) -> Result<Agent, agentd_client::Error>,
    out: &mut Output,
) -> Result<Option<Approval>, Error> {
    let client = connect::client().await?.under(question.op.id);
    let name = question.name.as_str();
    keys::merge_env(&client, name).await?;
    let asked = which(&client, question).await?;
    let given = question.approval.as_ref();
    let id = match (&asked, given.map(IdPrefix::whole)) {
        (Some(asked), _) => asked.id,
        // It was answered in the meantime. The daemon reports that, or that this op already answered it.
        (None, Some(Some(id))) => id,
        (None, Some(None)) => return Err(none_waits(name)),
        (None, None) => return Ok(None),
    };
    let call = asked.as_ref().and_then(|asked| asked.what.as_ref());
    let hash = call.map(|call| call.hash.clone());
    let agent = send(&client, name, id, hash).await?;
    if let (false, Some(asked)) = (question.json, &asked) {
        let lines = render::approval::lines(asked);
        out.line(format_args!("{verb} {}", lines.join("\n")))?;
    }
    tell(&agent, question.json, out)?;
    Ok(asked)
}

/// The approval to answer; none if the given id is not waiting.
async fn which(client: &Client, question: &Question) -> Result<Option<Approval>, Error> {
    let waiting = client.agent(&question.name).await?.approvals;
    one(waiting, &question.name, question.approval.as_ref())
}

/// The one that is given, or the only one; none if the given id is not among them.
pub fn one(
    mut waiting: Vec<Approval>,
    name: &str,
    given: Option<&IdPrefix>,
) -> Result<Option<Approval>, Error> {
    if let Some(given) = given {
        return match given.choose(waiting.iter().map(|asked| asked.id)) {
            Chosen::None => Ok(None),
            Chosen::One(id) => Ok(waiting.into_iter().find(|asked| asked.id == id)),
            Chosen::Several(ids) => {
                let what = format!("several approvals have an id that begins with {given}");
                Err(Error::new(Exit::Usage, what).next(one_of(&ids)))
            }
        };
    }
    match waiting.len() {
        1 => Ok(waiting.pop()),
        0 => Err(none_waits(name)),
        several => {
            let ids: Vec<ApprovalId> = waiting.iter().map(|asked| asked.id).collect();
            let what = format!("{several} calls of {name} are waiting for approval");
            Err(Error::new(Exit::Usage, what).next(one_of(&ids)))
        }
    }
}

fn one_of(ids: &[ApprovalId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    format!("pass one of these ids: {}", ids.join(", "))
}

pub fn none_waits(name: &str) -> Error {
    let what = format!("no call of {name} is waiting for approval");
    let error = Error::new(Exit::Refused, what);
    error.because("it was answered or withdrawn, or approval was never requested")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::approval::tests::asked;
    use serde_json::json;

    #[test]
    fn a_rule_for_a_whole_tool_is_said_to_be_one() {
        let added = |tool: &str, input| rule_added("coder", asked(tool, input).what.as_ref());
        let shell = added("shell", json!({"command": "ls"}));
        let end = "; see `agentd edit coder`";
        assert_eq!(
            shell,
            format!("  rule added to the settings of coder, which allows this call{end}")
        );
        let push = added("mcp__git__push", json!({"branch": "x"}));
        let all = "which allows every call of mcp__git__push";
        assert!(push.contains(all), "{push}");
        assert!(!rule_added("coder", None).contains("allows"));
    }
}
