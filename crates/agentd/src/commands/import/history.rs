//! `agentd import --from`: sessions of other programs become agents.

use super::{Args, settings};
use crate::connect;
use crate::error::{Error, Exit};
use crate::histories::{self, Source};
use crate::output::Output;
use crate::render::table::{Head, table};
use crate::render::{count, line_of, time};
use agentd_client::Client;
use agentd_client::api::time::rfc3339;
use agentd_client::api::{Agent, Import};
use agentd_core::import_history::{Conversion, Found, Program, Reading, Record, Report};
use agentd_daemon::clock;
use agentd_store::{DAMAGED_RECORD, JournalFile};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Seek as _};
use std::path::Path;
use tempfile::TempDir;

/// How many bytes are read between two displays of the progress.
const STEP: u64 = 4 * 1024 * 1024;

/// A session after the first pass over its records.
struct Session {
    source: Source,
    found: Found,
}

impl Session {
    fn id(&self) -> &str {
        self.found.info.id.as_deref().unwrap_or_default()
    }

    fn to_json(&self) -> Value {
        let info = &self.found.info;
        json!({
            "session": info.id,
            "name": self.found.name(),
            "agent": self.found.agent,
            "path": self.source.path,
            "title": info.shown_title(),
            "cwd": info.cwd,
            "provider": info.provider,
            "model": info.model,
            "began": info.began.map(rfc3339),
            "ended": info.ended.map(rfc3339),
            "prompts": info.prompts,
            "replies": info.replies,
            "subagent": info.is_subagent,
        })
    }
}

pub async fn list(program: Program, args: &Args, out: &mut Output) -> Result<(), Error> {
    let scratch = scratch()?;
    let (sessions, _) = read(program, args, &scratch, out).await?;
    if args.json {
        let sessions: Vec<Value> = sessions.iter().map(Session::to_json).collect();
        return out.json(&json!({ "sessions": sessions }));
    }
    let head = [
        Head::Kept("SESSION"),
        Head::Kept("ENDED"),
        Head::Spare("PROMPTS", 2),
        Head::Spare("REPLIES", 1),
        Head::Spare("DIRECTORY", 0),
        Head::Kept("TITLE"),
    ];
    let rows: Vec<Vec<String>> = sessions.iter().map(row).collect();
    for line in table(&head, &rows, out.width()) {
        out.line(line)?;
    }
    Ok(())
}

fn row(session: &Session) -> Vec<String> {
    let info = &session.found.info;
    let title = line_of(info.shown_title().unwrap_or("-"));
    vec![
        session.id().to_owned(),
        info.ended.map_or_else(|| "-".to_owned(), time::date),
        info.prompts.to_string(),
        info.replies.to_string(),
        info.cwd.clone().unwrap_or_else(|| "-".to_owned()),
        match info.is_subagent {
            true => format!("(subagent) {title}"),
            false => title,
        },
    ]
}

pub async fn import(program: Program, args: &Args, out: &mut Output) -> Result<(), Error> {
    let scratch = scratch()?;
    let (sessions, passed_over) = read(program, args, &scratch, out).await?;
    if args.name_it.is_some() && sessions.len() != 1 {
        let what = format!("--as names one agent, and there are {}", sessions.len());
        return Err(Error::new(Exit::Usage, what).next("choose one with --session"));
    }
    let client = connect::client().await?.under(args.op.id);
    let mut done = Done::default();
    let is_only = sessions.len() == 1;
    for session in sessions {
        let (id, path) = (session.id().to_owned(), session.source.path.clone());
        match import_one(session, args, &client, out).await {
            Ok((agent, report, moved)) if args.json => {
                done.imported
                    .push(imported_json(&id, &path, &agent, &report));
                drop(moved);
            }
            Ok((agent, report, moved)) => {
                done.count += 1;
                tell(&agent, &report, moved.as_deref(), out)?;
            }
            Err(error) => {
                if !args.json && !is_only {
                    out.aside(format_args!("not imported: session {id}: {error}"))?;
                }
                done.failed.push(json!({
                    "session": id,
                    "path": path,
                    "problem": error.to_string(),
                }));
                done.error = Some(error);
            }
        }
    }
    done.tell(args.json, passed_over, out)
}

/// What became of all sessions.
#[derive(Default)]
struct Done {
    imported: Vec<Value>,
    failed: Vec<Value>,
    count: usize,
    /// The last one.
    error: Option<Error>,
}

impl Done {
    fn tell(self, is_json: bool, passed_over: u64, out: &mut Output) -> Result<(), Error> {
        if is_json {
            out.json(&json!({
                "imported": self.imported,
                "failed": self.failed,
                "subagents": passed_over,
            }))?;
        } else if passed_over > 0 {
            let sessions = count(passed_over, "session");
            out.line(format_args!(
                "{sessions} of subagents, or without messages, not imported; --list shows them, --session imports one"
            ))?;
        }
        let failed = self.failed.len();
        let error = match self.error {
            // One error says what is wrong better than a count.
            Some(error) if failed == 1 && self.imported.is_empty() && self.count == 0 => error,
            Some(error) => {
                let what = format!("{} could not be imported", count(failed as u64, "session"));
                Error::new(Exit::Refused, what).because(error)
            }
            None => return Ok(()),
        };
        Err(if is_json { error.printed() } else { error })
    }
}

fn imported_json(id: &str, path: &Path, agent: &Agent, report: &Report) -> Value {
    json!({
        "session": id,
        "path": path,
        "agent": agent,
        "prompts": report.prompts,
        "replies": report.replies,
        "calls": report.calls,
        "events": report.events,
        "cuts": report.cuts,
        "left_out": report.skipped().map(|it| json!({
            "reason": it.reason,
            "text": it.reason.text(),
            "count": it.count,
            "records": it.records,
        })).collect::<Vec<Value>>(),
    })
}

fn tell(
    agent: &Agent,
    report: &Report,
    moved: Option<&str>,
    out: &mut Output,
) -> Result<(), Error> {
    let name = &agent.name;
    let (prompts, replies) = (count(report.prompts, "prompt"), report.replies);
    out.line(format_args!(
        "imported {name}: {prompts}, {}, {}",
        match replies {
            1 => "1 reply".to_owned(),
            n => format!("{n} replies"),
        },
        count(report.calls, "call")
    ))?;
    for left in report.skipped().filter(|it| !it.reason.is_routine()) {
        let records: Vec<String> = left.records.iter().map(u64::to_string).collect();
        let more = if left.count > left.records.len() as u64 {
            ", …"
        } else {
            ""
        };
        out.line(format_args!(
            "  {} (record {}{more})",
            left.reason.counted(left.count),
            records.join(", ")
        ))?;
    }
    if report.cuts > 0 {
        out.line("  its beginning is in the history, and too long for the model to see")?;
    }
    if let Some(moved) = moved {
        out.line(format_args!("  {moved}"))?;
    }
    super::super::tell_displaced(agent, out)?;
    out.line(format_args!("  next: `agentd start {name}`"))
}

async fn import_one(
    session: Session,
    args: &Args,
    client: &Client,
    out: &mut Output,
) -> Result<(Agent, Report, Option<String>), Error> {
    let (spec, moved) = settings::of(&session.found, args, out).await?;
    let name = session.found.name();
    let agent = session.found.agent;
    let seed = session.found.seed;
    let source = session.source;
    let conversion = session.found.convert(&name, &spec, clock::now());
    let file = tempfile::tempfile().map_err(|error| no_file(&error))?;
    let journal = JournalFile::new(BufWriter::new(&file), agent, seed);
    let journal = journal.map_err(|error| not_converted(&error))?;
    let report = convert(&source, conversion, journal, out).await?;
    let mut file = file;
    file.rewind().map_err(|error| no_file(&error))?;
    let import = Import {
        name: args.name_it.clone(),
    };
    Ok((client.import(file, &import).await?, report, moved))
}

/// Writes the events of all records.
async fn convert(
    source: &Source,
    mut conversion: Conversion,
    mut journal: JournalFile<BufWriter<&File>>,
    out: &mut Output,
) -> Result<Report, Error> {
    let mut failed = None;
    with_progress(source, "converting", out, &mut |record| {
        for event in conversion.record(record) {
            if failed.is_none() {
                failed = journal.event(&event).err();
            }
        }
    })
    .await?;
    let (events, report) = conversion.finish();
    for event in events {
        if failed.is_none() {
            failed = journal.event(&event).err();
        }
    }
    match failed {
        Some(error) => Err(not_converted(&error)),
        None => {
            journal.finish().map_err(|error| not_converted(&error))?;
            Ok(report)
        }
    }
}

fn not_converted(error: &agentd_store::Error) -> Error {
    Error::new(Exit::Unavailable, "the history cannot be converted").because(error)
}

fn no_file(error: &std::io::Error) -> Error {
    Error::of_file("a temporary file cannot be used", error)
}

fn scratch() -> Result<TempDir, Error> {
    tempfile::tempdir().map_err(|error| no_file(&error))
}

/// The chosen sessions, and how many others were passed over.
async fn read(
    program: Program,
    args: &Args,
    scratch: &TempDir,
    out: &mut Output,
) -> Result<(Vec<Session>, u64), Error> {
    let path = match &args.file {
        Some(path) => path.clone(),
        None => histories::default_dir(program).ok_or_else(|| {
            let what = format!("the directory of {program} is not known");
            Error::new(Exit::Usage, what).next("give the file or the directory")
        })?,
    };
    let sources = histories::find(program, &path, scratch)?;
    let is_alone = sources.len() == 1;
    let (mut sessions, mut passed_over) = (Vec::new(), 0);
    let mut damaged: u64 = 0;
    for source in sources {
        let mut reading = Reading::new(program);
        with_progress(&source, "reading", out, &mut |record| {
            damaged += u64::from(matches!(record, Record::Text(DAMAGED_RECORD)));
            reading.record(record)
        })
        .await?;
        let found = reading.finish(&source.name());
        let id = found.info.id.clone().unwrap_or_default();
        let is_chosen = match args.sessions.is_empty() {
            true => args.list || is_alone || !(found.info.is_subagent || found.is_empty()),
            false => args.sessions.contains(&id),
        };
        match is_chosen {
            true => sessions.push(Session { source, found }),
            false if args.sessions.is_empty() => passed_over += 1,
            false => {}
        }
    }
    let is_found = |id: &&String| sessions.iter().any(|session| session.id() == id.as_str());
    if let Some(missing) = args.sessions.iter().find(|id| !is_found(id)) {
        let what = format!("there is no session {missing} in {}", path.display());
        return Err(Error::new(Exit::Usage, what).next("`--list` shows the sessions"));
    }
    if sessions.iter().all(|session| session.found.is_empty()) && !args.list {
        if damaged > 0 {
            let what = format!("no conversation in {} can be read", path.display());
            let why = format!("{damaged} of its records are damaged");
            let next = format!("restore the file from a backup, or repair it with {program}");
            return Err(Error::new(Exit::Failed, what).because(why).next(next));
        }
        let what = format!("there is no conversation in {}", path.display());
        let next = format!("check that {program} wrote it, and the value of --from");
        return Err(Error::new(Exit::Usage, what).next(next));
    }
    Ok((sessions, passed_over))
}

/// Passes on the records of a session, and shows how far it is.
async fn with_progress(
    source: &Source,
    doing: &str,
    out: &mut Output,
    each: &mut dyn FnMut(Record<'_>),
) -> Result<(), Error> {
    let name = source.name();
    let all = source.bytes().filter(|bytes| *bytes > STEP);
    let (mut done, mut shown) = (0, 0);
    let mut told = Ok(());
    source
        .each_record(&mut |record| {
            if let Record::Text(text) = record {
                done += text.len() as u64;
            }
            if let Some(all) = all.filter(|_| done - shown >= STEP) {
                shown = done;
                let percent = (done * 100 / all.max(1)).min(100);
                if told.is_ok() {
                    told = out.progress(format_args!("{doing} {name}: {percent} %"));
                }
            }
            each(record);
        })
        .await?;
    told
}
