//! `agentd schedule`.

use crate::error::{Error, Exit};
use crate::op::Op;
use crate::output::Output;
use crate::render::schedule::{self, print};
use crate::render::{named, time};
use crate::{complete, connect, prompt, zone};
use agentd_client::Client;
use agentd_client::api::{AddSchedule, Schedule, Schedules, When};
use agentd_core::event::{
    FiringOutcome, MissedPolicy, OverlapPolicy, PausedBecause, ScheduleAction,
};
use agentd_core::schedule::{has_offset, parse_at};
use agentd_core::state::Phase;
use agentd_daemon::clock;
use clap::{Subcommand, ValueEnum};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  agentd schedule add coder \"0 9 * * 1-5\" \"Review what was committed yesterday\"
  agentd schedule add coder --every 2h \"Look at the open issues\"
  agentd schedule add coder --at 18:30 \"Summarize the day\"
  agentd schedule add coder \"0 4 * * *\" --reset
  agentd schedule list
  agentd schedule pause coder s1
  agentd schedule list --json | jq -r '.schedules[].next[0]'

The daemon fires schedules without any client: each due time at most once, whatever happens to the daemon and to the clock. \
Times are shown in the zone of the schedule, which is named; those of --every in the zone of this computer.";

/// Send prompts to an agent, or reset it, at certain times
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Add a schedule: a cron expression, --at or --every, and a prompt
    #[command(
        after_help = "Examples:\n  agentd schedule add coder \"0 9 * * 1-5\" \"Review yesterday's commits\"\n  agentd schedule add coder \"*/30 * * * *\" --fresh --name watch \"Look at the logs\"\n  agentd schedule add coder --every 2h --missed skip \"Look at the open issues\"\n  agentd schedule add coder --at 2026-12-24T18:30 --zone Europe/Zurich \"Say goodbye\"\n  agentd schedule add coder @daily --reset\n\nThe fields of a cron expression are minute, hour, day of month, month and day of week. A prompt `-` is read from standard input."
    )]
    Add(Box<Add>),
    /// List schedules, with their next due times
    #[command(
        after_help = "Examples:\n  agentd schedule list\n  agentd schedule list coder\n  agentd schedule list coder --json | jq '.schedules[].next'"
    )]
    List {
        /// The agent [default: all agents]
        #[arg(add = complete::agents())]
        name: Option<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Do not fire until the schedule is resumed
    #[command(after_help = "Examples:\n  agentd schedule pause coder s1")]
    Pause(One),
    /// Fire again, from the next due time on; what was due during the pause is not made up for
    #[command(after_help = "Examples:\n  agentd schedule resume coder s1")]
    Resume(One),
    /// Fire now; the due times stay as they are
    #[command(
        after_help = "Examples:\n  agentd schedule run coder s1\n  agentd schedule run coder s1 --json | jq -r .last.outcome.prompt"
    )]
    Run(One),
    /// Remove a schedule
    #[command(after_help = "Examples:\n  agentd schedule rm coder s1")]
    Rm(One),
}

#[derive(Debug, clap::Args)]
struct Add {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// A cron expression, unless --at or --every is given, and then the prompt, unless --reset is given
    #[arg(value_name = "CRON|PROMPT", num_args = 0..=2)]
    words: Vec<String>,
    /// Once, at this time: 18:30, 2026-12-24T18:30 or 2026-12-24T18:30:00+01:00
    #[arg(long, value_name = "TIME", conflicts_with = "every")]
    at: Option<String>,
    /// After each interval, from now on: 30s, 15m, 2h or 1d
    #[arg(long, value_name = "TIME", value_parser = time::age)]
    every: Option<Duration>,
    /// The time zone [default: the one of this computer]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// Reset the agent; there is no prompt
    #[arg(long, conflicts_with = "fresh")]
    reset: bool,
    /// Reset the agent before the prompt
    #[arg(long)]
    fresh: bool,
    /// What to do about due times that passed while the daemon or the agent did not run
    #[arg(long, value_name = "POLICY", default_value = "once")]
    missed: Missed,
    /// What to do if the prompt of the firing before is not answered yet [default: skip; with --missed all: queue]
    #[arg(long, value_name = "POLICY")]
    overlap: Option<Overlap>,
    /// The name of the schedule [default: s1, s2, …]
    #[arg(long = "name", value_name = "NAME")]
    label: Option<String>,
    #[command(flatten)]
    op: Op,
    /// Print the schedule as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Missed {
    /// One firing for all of them
    Once,
    /// No firing
    Skip,
    /// One firing for each, at most 100
    All,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Overlap {
    /// Skip the due time
    Skip,
    /// Queue the prompt
    Queue,
}

#[derive(Debug, clap::Args)]
struct One {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// The name or the id of the schedule
    #[arg(add = complete::schedules())]
    schedule: String,
    #[command(flatten)]
    op: Op,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    match &args.verb {
        Verb::Add(add) => {
            let ask = asked(add)?;
            let client = client.under(add.op.id);
            let added = client.add_schedule(&add.name, &ask).await?;
            report(&added, "added", add.json, out)
        }
        Verb::List { name, json } => {
            let found = match name {
                Some(name) => client.schedules(name).await?,
                None => client.all_schedules().await?,
            };
            match json {
                true => out.json(&found),
                false => list(&found, name.as_deref(), out),
            }
        }
        Verb::Pause(one) => {
            let client = under(&client, one);
            let paused = client.pause_schedule(&one.name, &one.schedule).await?;
            report(&paused, "paused", one.json, out)
        }
        Verb::Resume(one) => {
            let client = under(&client, one);
            let resumed = client.resume_schedule(&one.name, &one.schedule).await?;
            report(&resumed, "resumed", one.json, out)
        }
        Verb::Run(one) => {
            let client = under(&client, one);
            let fired = client.run_schedule(&one.name, &one.schedule).await?;
            ran(&client, &fired, one.json, out).await
        }
        Verb::Rm(one) => {
            let client = under(&client, one);
            let left = client.remove_schedule(&one.name, &one.schedule).await?;
            match one.json {
                true => out.json(&left),
                false => out.line(format_args!(
                    "schedule {} of {} removed",
                    one.schedule, one.name
                )),
            }
        }
    }
}

fn under(client: &Client, one: &One) -> Client {
    client.under(one.op.id)
}

fn asked(add: &Add) -> Result<AddSchedule, Error> {
    let action = match (add.reset, add.fresh) {
        (true, _) => ScheduleAction::Reset,
        (_, true) => ScheduleAction::Fresh,
        _ => ScheduleAction::Prompt,
    };
    let wants_cron = add.at.is_none() && add.every.is_none();
    let (expression, text) = match (add.words.as_slice(), wants_cron, action.has_prompt()) {
        ([expression, text], true, true) => (Some(expression), Some(text)),
        ([expression], true, false) => (Some(expression), None),
        ([text], false, true) => (None, Some(text)),
        ([], false, false) => (None, None),
        _ => return Err(usage(add, action)),
    };
    let when = match (expression, &add.at, add.every) {
        (_, Some(text), _) => at_of(add, text)?,
        (_, None, Some(every)) => When::Every {
            every_ms: time::millis(every),
        },
        (expression, None, None) => When::Cron {
            expression: expression.cloned().unwrap_or_default(),
            zone: zone_of(add)?,
        },
    };
    Ok(AddSchedule {
        name: add.label.clone(),
        when,
        action,
        prompt: text.map(|text| prompt::read(text)).transpose()?,
        missed: match add.missed {
            Missed::Once => MissedPolicy::Once,
            Missed::Skip => MissedPolicy::Skip,
            Missed::All => MissedPolicy::All,
        },
        overlap: add.overlap.map(|overlap| match overlap {
            Overlap::Skip => OverlapPolicy::Skip,
            Overlap::Queue => OverlapPolicy::Queue,
        }),
    })
}

fn zone_of(add: &Add) -> Result<String, Error> {
    match &add.zone {
        Some(zone) => Ok(zone.clone()),
        None => zone::system_name(),
    }
}

fn at_of(add: &Add, text: &str) -> Result<When, Error> {
    let zone = match has_offset(text) {
        // The zone is only the one that the time is shown in.
        true => zone_of(add).unwrap_or_else(|_| "UTC".to_owned()),
        false => zone_of(add)?,
    };
    let at = parse_at(text, &zone, clock::now())
        .map_err(|error| Error::new(Exit::Usage, error.to_string()).next(error.next()))?;
    Ok(When::At { at, zone })
}

/// The words after the agent are not those that the options leave.
fn usage(add: &Add, action: ScheduleAction) -> Error {
    let wants_cron = add.at.is_none() && add.every.is_none();
    let (what, next) = match (wants_cron, action.has_prompt()) {
        (true, true) => (
            "a cron expression and a prompt are expected after the agent",
            "agentd schedule add coder \"0 9 * * 1-5\" \"Look at the logs\"",
        ),
        (true, false) => (
            "with --reset, only a cron expression is expected after the agent",
            "agentd schedule add coder \"0 4 * * *\" --reset",
        ),
        (false, true) => (
            "with --at or --every, only the prompt is expected after the agent",
            "agentd schedule add coder --every 2h \"Look at the logs\"",
        ),
        (false, false) => (
            "with --reset and --at or --every, nothing is expected after the agent",
            "agentd schedule add coder --every 1d --reset",
        ),
    };
    Error::new(Exit::Usage, what).next(next)
}

fn report(one: &Schedule, what: &str, json: bool, out: &mut Output) -> Result<(), Error> {
    if json {
        return out.json(one);
    }
    let (name, agent) = (&one.name, named(&one.agent));
    if one.paused == Some(PausedBecause::User) {
        return out.line(format_args!("schedule {name} of {agent} {what}"));
    }
    let due = schedule::next(one, clock::now());
    out.line(format_args!("schedule {name} of {agent} {what}; {due}"))
}

async fn ran(client: &Client, one: &Schedule, json: bool, out: &mut Output) -> Result<(), Error> {
    if json {
        return out.json(one);
    }
    let (name, agent) = (&one.name, named(&one.agent));
    match one.last.map(|last| last.outcome) {
        Some(FiringOutcome::Fired {
            prompt: Some(prompt),
            ..
        }) => {
            let waits = waits(client, one).await;
            out.line(format_args!(
                "schedule {name} of {agent} sent prompt {prompt}{waits}"
            ))
        }
        // A reset does not wait for the agent to be started.
        _ => out.line(format_args!("schedule {name} resets {agent}")),
    }
}

/// Says so if the prompt waits for the user. The schedule has run: an agent that cannot be looked at is no error.
async fn waits(client: &Client, one: &Schedule) -> String {
    let agent = client.agent(&one.agent.id.to_string()).await;
    match agent.map(|agent| agent.phase) {
        Ok(Phase::Stopped | Phase::Failed) => {
            format!("; it waits until `agentd start {}`", named(&one.agent))
        }
        _ => String::new(),
    }
}

fn list(found: &Schedules, name: Option<&str>, out: &mut Output) -> Result<(), Error> {
    if found.schedules.is_empty() {
        let whose = name.unwrap_or("any agent");
        out.line(format_args!("no schedules of {whose}"))?;
        return out.line("  add one with `agentd schedule add NAME \"0 9 * * 1-5\" \"…\"`");
    }
    print(&found.schedules, clock::now(), out)
}
