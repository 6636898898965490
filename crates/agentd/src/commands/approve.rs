//! `agentd approve`.

use super::tell;
use crate::complete;
use crate::connect;
use crate::error::{Error, Exit};
use crate::keys;
use crate::op::Op;
use crate::output::Output;
use agentd_core::event::Decision;
use agentd_core::id::ApprovalId;

const EXAMPLES: &str = "\
Examples:
  agentd approve coder
  agentd approve coder 0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f

Without an id, the only call that waits is meant; `agentd show` lists them, and `agentd logs` shows what \
they would do. The first answer counts, from whichever client it comes.";

/// Say yes to a call that waits for your leave
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub question: Question,
}

/// A call that waits for leave.
#[derive(Debug, clap::Args)]
pub struct Question {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// Which of its calls, by the id of the question [default: the only one that waits]
    approval: Option<ApprovalId>,
    #[command(flatten)]
    op: Op,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    decide(&args.question, Decision::Allow, out).await
}

/// Answers a question, with yes or no.
pub async fn decide(
    question: &Question,
    decision: Decision,
    out: &mut Output,
) -> Result<(), Error> {
    let client = connect::client().await?.under(question.op.id);
    let name = question.name.as_str();
    keys::bring(&client, name).await?;
    let approval = match question.approval {
        Some(approval) => approval,
        None => {
            let waiting = client.agent(name).await?.approvals;
            match &waiting[..] {
                [only] => only.id,
                [] => {
                    let what = format!("no call of {name} waits for leave");
                    let error = Error::new(Exit::Refused, what);
                    return Err(error.because("it was answered or withdrawn, or never asked"));
                }
                several => {
                    let ids: Vec<String> =
                        several.iter().map(|asked| asked.id.to_string()).collect();
                    let what = format!("{} calls of {name} wait for leave", several.len());
                    let next = format!("say which: {}", ids.join(", "));
                    return Err(Error::new(Exit::Usage, what).next(next));
                }
            }
        }
    };
    let agent = client.decide(name, approval, decision).await?;
    tell(&agent, question.json, out)
}
