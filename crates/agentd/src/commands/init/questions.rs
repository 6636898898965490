//! The three questions, and the answers that are proposed.

use super::Args;
use super::found::{Candidate, Found};
use crate::ask;
use crate::described::approval_mode;
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::providers::{self, KeySource};
use crate::render::table::{Head, table};
use crate::render::word;
use crate::ways;
use agentd_core::catalog::{Catalog, DEMO, ProviderEntry};
use agentd_core::spec::ApprovalMode;

/// How many models are shown.
const SHOWN: usize = 12;

pub struct Answers {
    pub provider: ProviderEntry,
    pub model: String,
    pub approval: ApprovalMode,
    /// The variable whose key is in the environment, and nowhere else.
    pub unstored_key: Option<String>,
}

pub async fn ask(
    args: &Args,
    catalog: &Catalog,
    found: &Found,
    out: &mut Output,
) -> Result<Answers, Error> {
    let chosen = provider(args, catalog, found, out).await?;
    let candidate = chosen.candidate();
    Ok(Answers {
        provider: candidate.entry.clone(),
        model: model(args, catalog, candidate, out).await?,
        approval: approval(args, catalog, out).await?,
        unstored_key: match &candidate.key {
            Some(KeySource::Variable(name)) => {
                (!providers::stored().contains(name)).then(|| name.clone())
            }
            _ => None,
        },
    })
}

enum Chosen<'a> {
    Listed(&'a Candidate),
    /// A provider that is not proposed, such as `openai-chat`.
    Named(Candidate),
}

impl Chosen<'_> {
    const fn candidate(&self) -> &Candidate {
        match self {
            Self::Listed(candidate) => candidate,
            Self::Named(candidate) => candidate,
        }
    }
}

/// A provider that can be used. The user is asked again after an answer that names none.
async fn provider<'a>(
    args: &Args,
    catalog: &Catalog,
    found: &'a Found,
    out: &mut Output,
) -> Result<Chosen<'a>, Error> {
    let usual = usual_provider(catalog, found);
    match (&args.provider, args.yes) {
        (Some(name), _) => usable(name, catalog, found).await,
        (None, true) => match usual {
            Some(name) => usable(name, catalog, found).await,
            None => {
                let error = Error::new(Exit::Usage, "no provider can be used");
                Err(error.next(ways::next(catalog)))
            }
        },
        (None, false) => {
            for line in list(found) {
                out.aside(line)?;
            }
            loop {
                let answer = answer("Provider", usual.unwrap_or(DEMO)).await?;
                let number = answer.parse().ok().and_then(|n: usize| n.checked_sub(1));
                let numbered = number.and_then(|n| found.candidates.get(n));
                let name = numbered.map_or(answer, |it| it.entry.name.clone());
                match usable(&name, catalog, found).await {
                    Err(error) => out.aside(&error)?,
                    usable => return usable,
                }
            }
        }
    }
}

/// The provider with this name, if it can be used.
async fn usable<'a>(name: &str, catalog: &Catalog, found: &'a Found) -> Result<Chosen<'a>, Error> {
    let chosen = match found.get(name) {
        Some(candidate) => Chosen::Listed(candidate),
        None => {
            let entry = catalog.named(name).map_err(|error| {
                Error::new(Exit::Usage, "the provider is not known").because(error)
            })?;
            Chosen::Named(Candidate::look(entry, &providers::stored()).await)
        }
    };
    let candidate = chosen.candidate();
    if !candidate.is_ready() {
        let what = format!("{name} cannot be used: {}", candidate.state());
        return Err(Error::new(Exit::Usage, what).next(candidate.advice()));
    }
    Ok(chosen)
}

/// That of the file, else the one that a new agent gets, else a local server that has models.
fn usual_provider<'a>(catalog: &'a Catalog, found: &'a Found) -> Option<&'a str> {
    if let Some(name) = &catalog.agents().provider {
        return Some(name);
    }
    let chosen = catalog.choose(None, None, &found.keyed);
    let chosen = chosen
        .ok()
        .and_then(|choice| found.get(&choice.provider.name));
    let mut local = found.candidates.iter();
    let local = local.find(|it| it.served.as_ref().is_some_and(|models| !models.is_empty()));
    chosen
        .filter(|it| it.is_ready())
        .or(local)
        .map(|it| it.entry.name.as_str())
}

fn list(found: &Found) -> Vec<String> {
    let rows = (1..).zip(&found.candidates).map(|(number, candidate)| {
        vec![
            format!("{number}"),
            candidate.entry.name.clone(),
            candidate.usual_model().unwrap_or("-").to_owned(),
            candidate.state(),
        ]
    });
    let head = ["", "PROVIDER", "MODEL", "STATE"].map(Head::Kept);
    table(&head, &rows.collect::<Vec<_>>(), None)
}

async fn model(
    args: &Args,
    catalog: &Catalog,
    candidate: &Candidate,
    out: &mut Output,
) -> Result<String, Error> {
    let name = candidate.entry.name.as_str();
    let defaults = catalog.agents();
    let is_same = defaults.provider.as_deref() == Some(name);
    let stored = defaults.model.as_deref().filter(|_| is_same);
    let usual = stored.or(candidate.usual_model());
    let missing = || {
        let what = format!("{name} has no default model");
        Error::new(Exit::Usage, what).next("pass --model with a name that the provider uses")
    };
    match (&args.model, args.yes) {
        (Some(model), _) => Ok(model.clone()),
        (None, true) => usual.map(str::to_owned).ok_or_else(missing),
        (None, false) => {
            let offered = catalog.offered_by(&candidate.entry);
            let mut models: Vec<String> = offered.into_iter().map(|it| it.name).collect();
            models.extend(candidate.served.iter().flatten().cloned());
            if models.len() > 1 {
                let more = if models.len() > SHOWN { ", …" } else { "" };
                models.truncate(SHOWN);
                out.aside(format_args!("models: {}{more}", models.join(", ")))?;
            }
            loop {
                let model = answer("Model", usual.unwrap_or_default()).await?;
                if !model.is_empty() {
                    return Ok(model);
                }
            }
        }
    }
}

async fn approval(args: &Args, catalog: &Catalog, out: &mut Output) -> Result<ApprovalMode, Error> {
    let usual = catalog.agents().approval.unwrap_or_default();
    match (args.approval, args.yes) {
        (Some(mode), _) => Ok(mode),
        (None, true) => Ok(usual),
        (None, false) => {
            let question =
                "Approval of tool calls: on-request (only to leave the sandbox), always or never";
            loop {
                let text = answer(question, &word(usual)).await?;
                match approval_mode(&text) {
                    Ok(mode) => return Ok(mode),
                    Err(why) => {
                        let what = format!("`{text}` is not an approval mode");
                        out.aside(Error::new(Exit::Usage, what).because(why))?;
                    }
                }
            }
        }
    }
}

/// The user's answer; the proposed one if it is empty.
async fn answer(question: &str, usual: &str) -> Result<String, Error> {
    let question = match usual.is_empty() {
        true => format!("{question}:"),
        false => format!("{question} [{usual}]:"),
    };
    match ask::line(&question).await? {
        Some(answer) if answer.is_empty() => Ok(usual.to_owned()),
        Some(answer) => Ok(answer),
        // Ctrl-D.
        None => Err(Error::interrupted().next("nothing was written")),
    }
}
