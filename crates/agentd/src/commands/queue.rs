//! `agentd queue`.

use crate::error::{Error, Exit};
use crate::op::Op;
use crate::output::Output;
use crate::render::table::{Head, table};
use crate::render::{line_of, named, time, word};
use crate::{complete, connect, editor, prompt};
use agentd_client::Client;
use agentd_client::api::{EditPrompt, MovePrompt, Queue, QueuedPrompt, RemovePrompts};
use agentd_core::id::{Chosen, IdPrefix};
use agentd_core::outbox::binding::shown_text;
use agentd_core::time::Timestamp;
use agentd_daemon::clock;

const EXAMPLES: &str = "\
Examples:
  agentd queue coder
  agentd queue edit coder 1
  agentd queue edit coder 0198c5a2 \"Fix the tests, but keep their names\"
  agentd queue move coder 3 --first
  agentd queue rm coder 2 3
  agentd queue coder --json | jq -r '.prompts[].text'

Prompts that are sent while a turn runs wait here. They can be changed until their turn begins. A prompt that was \
sent with --steer joins the running turn before the others. With --op, name a prompt by its id: numbers change.";

/// The beginning of an id has at least so many characters.
const SHORTEST_ID: usize = 4;

/// List, edit, move or remove the prompts that wait for an agent
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The agent
    #[arg(required = true, add = complete::agents())]
    name: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Change the text of a queued prompt; its id, its key and its place stay
    #[command(
        after_help = "Examples:\n  agentd queue edit coder 1\n  agentd queue edit coder 1 \"Fix the tests\"\n  git diff | agentd queue edit coder 1 -\n\nWithout TEXT, the prompt is opened in $VISUAL, $EDITOR or vi."
    )]
    Edit(Edit),
    /// Change when a queued prompt is answered
    #[command(
        after_help = "Examples:\n  agentd queue move coder 3 --first\n  agentd queue move coder 1 --before 4"
    )]
    Move(Move),
    /// Remove prompts from the queue; a command that waits for one of them ends with exit code 3
    #[command(
        alias = "remove",
        after_help = "Examples:\n  agentd queue rm coder 2\n  agentd queue rm coder 2 3 0198c5a2"
    )]
    Rm(Rm),
}

#[derive(Debug, clap::Args)]
struct Edit {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// The prompt: its number in the list, its id, or the beginning of its id
    #[arg(add = complete::queued())]
    prompt: String,
    /// The new text; `-` reads it from standard input
    text: Option<String>,
    #[command(flatten)]
    op: Op,
    /// Print the queue as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Move {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// The prompt: its number in the list, its id, or the beginning of its id
    #[arg(add = complete::queued())]
    prompt: String,
    #[command(flatten)]
    to: To,
    #[command(flatten)]
    op: Op,
    /// Print the queue as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct To {
    /// Answer it next
    #[arg(long)]
    first: bool,
    /// Answer it last
    #[arg(long)]
    last: bool,
    /// Answer it before this prompt
    #[arg(long, value_name = "PROMPT", add = complete::queued())]
    before: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Rm {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// The prompts: their numbers in the list, their ids, or the beginnings of their ids
    #[arg(value_name = "PROMPT", required = true, add = complete::queued())]
    prompts: Vec<String>,
    #[command(flatten)]
    op: Op,
    /// Print the queue as one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Ctrl-C belongs to the editor while it runs.
    pub const fn handles_signals(&self) -> bool {
        matches!(&self.verb, Some(Verb::Edit(edit)) if edit.text.is_none())
    }
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let (queue, json) = match (&args.verb, &args.name) {
        (Some(Verb::Edit(edit)), _) => (self::edit(&client, edit).await?, edit.json),
        (Some(Verb::Move(order)), _) => (move_prompt(&client, order).await?, order.json),
        (Some(Verb::Rm(rm)), _) => (remove(&client, rm).await?, rm.json),
        (None, name) => {
            let name = name.as_deref().unwrap_or_default();
            (client.queue(name).await?, args.json)
        }
    };
    match json {
        true => out.json(&queue),
        false => print(&queue, out),
    }
}

async fn edit(client: &Client, args: &Edit) -> Result<Queue, Error> {
    let queue = client.queue(&args.name).await?;
    let (edit, file) = match &args.text {
        Some(text) => {
            let edit = EditPrompt {
                prompt: id(&queue, &args.prompt)?,
                text: prompt::read(text)?,
                edits: None,
            };
            (edit, None)
        }
        None => {
            let queued = find(&queue, &args.prompt)?;
            let (text, file) = editor::edit(&queued.text)?;
            if text == queued.text {
                return Ok(queue);
            }
            let edit = EditPrompt {
                prompt: queued.prompt.to_string(),
                text,
                edits: Some(queued.edits),
            };
            (edit, Some(file))
        }
    };
    let client = client.under(args.op.id);
    let edited = client.edit_prompt(&args.name, &edit).await;
    edited.map_err(|error| editor::kept(file, error.into()))
}

async fn move_prompt(client: &Client, args: &Move) -> Result<Queue, Error> {
    let queue = client.queue(&args.name).await?;
    let order = MovePrompt {
        prompt: id(&queue, &args.prompt)?,
        first: args.to.first,
        before: match &args.to.before {
            Some(before) => Some(id(&queue, before)?),
            None => None,
        },
    };
    let client = client.under(args.op.id);
    Ok(client.move_prompt(&args.name, &order).await?)
}

async fn remove(client: &Client, args: &Rm) -> Result<Queue, Error> {
    let queue = client.queue(&args.name).await?;
    let prompts = args.prompts.iter().map(|given| id(&queue, given));
    let remove = RemovePrompts {
        prompts: prompts.collect::<Result<_, Error>>()?,
    };
    let client = client.under(args.op.id);
    Ok(client.remove_prompts(&args.name, &remove).await?)
}

/// The prompt with this number in the list.
fn numbered<'a>(queue: &'a Queue, given: &str) -> Option<&'a QueuedPrompt> {
    let number: usize = given.parse().ok()?;
    queue.prompts.iter().find(|it| it.position == number)
}

/// The id of a prompt that is given by its number. An id is passed on as it is: the prompt of a repeated command is no
/// longer queued.
fn id(queue: &Queue, given: &str) -> Result<String, Error> {
    match numbered(queue, given) {
        Some(queued) => Ok(queued.prompt.to_string()),
        None if given.len() < SHORTEST_ID && given.parse::<usize>().is_ok() => {
            Err(not_queued(queue, given))
        }
        None => Ok(given.to_owned()),
    }
}

fn not_queued(queue: &Queue, given: &str) -> Error {
    let error = Error::new(Exit::NotFound, format!("no prompt `{given}` is queued"));
    error.next(format!("agentd queue {}", named(&queue.agent)))
}

/// The queued prompt that the user means.
fn find<'a>(queue: &'a Queue, given: &str) -> Result<&'a QueuedPrompt, Error> {
    if let Some(queued) = numbered(queue, given) {
        return Ok(queued);
    }
    let prefix: IdPrefix = given.parse().map_err(|why| {
        let what = format!("`{given}` is neither a number in the queue nor an id");
        Error::new(Exit::Usage, what).because(why)
    })?;
    let found = match prefix.choose(queue.prompts.iter().map(|it| it.prompt)) {
        Chosen::None => None,
        Chosen::One(id) => queue.prompts.iter().find(|it| it.prompt == id),
        Chosen::Several(_) => {
            let what = format!("several queued prompts have an id that begins with {given}");
            let error = Error::new(Exit::Usage, what);
            return Err(error.next("pass more characters, or the number in the list"));
        }
    };
    found.ok_or_else(|| not_queued(queue, given))
}

fn print(queue: &Queue, out: &mut Output) -> Result<(), Error> {
    if queue.prompts.is_empty() {
        return out.line(format_args!("no prompt waits for {}", named(&queue.agent)));
    }
    let now = clock::now();
    let rows: Vec<_> = queue.prompts.iter().map(|it| row(it, now)).collect();
    let head = [
        Head::Kept("#"),
        Head::Spare("PROMPT", 1),
        Head::Kept("MODE"),
        Head::Spare("AGE", 2),
        Head::Kept("TEXT"),
    ];
    for line in table(&head, &rows, out.width()) {
        out.line(line)?;
    }
    Ok(())
}

fn row(queued: &QueuedPrompt, now: Timestamp) -> Vec<String> {
    let mut text = vec![line_of(&shown_text(&queued.text))];
    text.extend(queued.attachments.iter().map(ToString::to_string));
    vec![
        queued.position.to_string(),
        queued.prompt.to_string(),
        word(queued.mode),
        time::rough(now.since(queued.at)),
        text.join(" "),
    ]
}
