//! `agentd purge`.

use crate::conversation::Which;
use crate::error::{Error, Exit};
use crate::op::Op;
use crate::output::Output;
use crate::render::count;
use crate::{ask, complete, connect};
use agentd_client::api::{LeftSession, Purge, Purged};

const EXAMPLES: &str = "\
Examples:
  agentd purge coder --conversation 2
  agentd rm coder; agentd purge coder --dry-run
  agentd purge coder --yes

Permanently deletes prompts, messages, results and every copy of them. The structure of the journal and the \
costs remain. The current conversation of an agent cannot be purged: use `agentd reset` or `agentd rm` first. Shows \
what would be deleted and asks for confirmation; without a terminal it needs --yes.";

/// Permanently delete the content of an agent or of one conversation
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::archived())]
    name: String,
    /// Only this conversation, by its id or number
    #[arg(long, value_name = "ID|N", add = complete::conversations())]
    conversation: Option<Which>,
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long, conflicts_with = "dry_run")]
    yes: bool,
    #[command(flatten)]
    op: Op,
    /// Print what was deleted as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?.under(args.op.id);
    let conversation = match &args.conversation {
        Some(which) => Some(which.of(&client, &args.name).await?),
        None => None,
    };
    let mut purge = Purge {
        conversation,
        dry_run: true,
    };
    let would_go = client.purge(&args.name, &purge).await?;
    if args.dry_run {
        return match args.json {
            true => out.json(&would_go),
            false => out.line(format_args!("would be deleted: {}", what(&would_go))),
        };
    }
    if !args.yes {
        let name = &args.name;
        out.aside(format_args!(
            "this permanently deletes from {name}: {}",
            what(&would_go)
        ))?;
        if !ask::is_possible() {
            let error = Error::new(Exit::Refused, "nothing was deleted");
            return Err(error
                .because("confirmation needs a terminal")
                .next("pass --yes"));
        }
        let answer = ask::line("delete it? [y/N]").await?;
        if !matches!(answer.as_deref(), Some("y" | "Y" | "yes")) {
            return Err(Error::new(Exit::Refused, "nothing was deleted"));
        }
    }
    purge.dry_run = false;
    let gone = client.purge(&args.name, &purge).await?;
    if args.json {
        return out.json(&gone);
    }
    out.line(format_args!("deleted: {}", what(&gone)))?;
    for deleted in &gone.deleted {
        let (program, session) = (&deleted.program, &deleted.session);
        out.aside(format_args!("{program} deleted its session {session}"))?;
    }
    for left in &gone.left {
        out.aside(format_args!("{}", not_deleted(left)))?;
    }
    Ok(())
}

fn not_deleted(left: &LeftSession) -> String {
    let (program, session) = (&left.program, &left.session);
    let (places, there) = match left.places.as_slice() {
        [] => (String::new(), ""),
        places => (format!(" in {}", places.join(", ")), "there, or "),
    };
    let why = left.why.as_ref().map(|why| format!(" ({why})"));
    let why = why.unwrap_or_default();
    format!(
        "not deleted: what {program} may keep of its session {session}{places}{why}; delete it {there}with the program \
         itself"
    )
}

fn what(purged: &Purged) -> String {
    let mut parts = vec![count(purged.conversations.len() as u64, "conversation")];
    for (n, unit) in [(purged.events, "event"), (purged.blobs, "file")] {
        if n > 0 {
            parts.push(count(n, unit));
        }
    }
    parts.join(", ")
}
