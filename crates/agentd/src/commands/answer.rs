//! `agentd answer`.

use super::approve::{none_waits, one};
use super::tell;
use crate::error::{Error, Exit};
use crate::op::Op;
use crate::output::Output;
use crate::{complete, connect, keys, render};
use agentd_client::api::{AnswerQuestion, Approval};
use agentd_core::id::IdPrefix;
use serde_json::{Map, Value};

const EXAMPLES: &str = "\
Examples:
  agentd answer coder path=/srv/data sure=yes
  agentd answer coder
  agentd answer coder --id 0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f path=/srv/data

An MCP server may have a question while one of its calls runs, and so may the program of an ACP agent. `agentd show` prints \
the question and its fields. `agentd deny` declines it. If several clients answer, the first answer counts.";

/// Answer the question of an MCP server or of an agent's program
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// The fields to fill in; several values of one field are separated by commas
    #[arg(value_name = "FIELD=VALUE")]
    fields: Vec<String>,
    /// The id of the question, or its beginning [default: the only one that is waiting]
    #[arg(long = "id", value_name = "ID", add = complete::approvals())]
    which: Option<IdPrefix>,
    #[command(flatten)]
    op: Op,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?.under(args.op.id);
    let name = args.name.as_str();
    keys::merge_env(&client, name).await?;
    let mut waiting = client.agent(name).await?.approvals;
    // A call that waits for approval has no question.
    waiting.retain(|asked| asked.question.is_some() || args.which.is_some());
    if waiting.is_empty() {
        let what = format!("no question waits for the user of {name}");
        let error = Error::new(Exit::Refused, what);
        return Err(error.because("it was answered, or it was withdrawn"));
    }
    let asked = one(waiting, name, args.which.as_ref())?;
    let asked = asked.ok_or_else(|| none_waits(name))?;
    let content = content(name, &asked, &args.fields)?;
    let answer = AnswerQuestion { content };
    let agent = client.answer_question(name, asked.id, &answer).await?;
    if !args.json {
        let lines = render::approval::lines(&asked);
        out.line(format_args!("answered {}", lines.join("\n")))?;
    }
    tell(&agent, args.json, out)
}

fn content(name: &str, asked: &Approval, fields: &[String]) -> Result<Map<String, Value>, Error> {
    let Some(question) = &asked.question else {
        let what = "the call waits for approval, and asks no question";
        return Err(Error::new(Exit::Refused, what).next("`agentd approve`, or `agentd deny`"));
    };
    let wrong = |why: String| {
        let fields = match question.to_fill_in() {
            open if open.is_empty() => vec!["FIELD=…".to_owned()],
            open => open,
        };
        let next = format!(
            "`agentd answer {name} {}`, or `agentd deny {name}`",
            fields.join(" ")
        );
        let error = Error::new(Exit::Usage, "the answer does not fit the question");
        error.because(why).next(next)
    };
    question.filled(fields).map_err(wrong)
}
