//! `agentd models`.

use crate::complete;
use crate::error::{Error, Exit};
use crate::local;
use crate::output::{Output, QUIET};
use crate::providers;
use crate::render::table::{Head, table};
use crate::render::usage;
use agentd_core::catalog::{Catalog, Choice, ModelEntry, ProviderEntry};
use agentd_core::message::FileKind;
use agentd_core::usage::MicroUsd;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;

const EXAMPLES: &str = "\
Examples:
  agentd models
  agentd models --provider anthropic
  agentd models --provider ollama          Also asks the server for its models
  agentd models --json | jq -r '.models[] | select(.default).model'

The list is built in, and `[models]` in config.toml adds to it. A provider may offer other models too: --model takes any \
name. Prices are list prices in dollars per million tokens; what is unknown is shown as `-`.";

/// List known models with their context windows and prices
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only models of this provider
    #[arg(long, add = complete::providers())]
    provider: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A line of the list; docs/json.md describes its fields.
#[derive(Debug, Serialize)]
struct Model {
    provider: Option<String>,
    model: String,
    window: Option<u64>,
    max_output: Option<u64>,
    input_usd: Option<f64>,
    output_usd: Option<f64>,
    /// None if the provider needs no key, or if it is not known which provider serves the model.
    has_key: Option<bool>,
    default: bool,
    provider_default: bool,
    /// Whether it accepts images and PDFs.
    images: bool,
    pdf: bool,
    #[serde(skip)]
    price: Option<(MicroUsd, MicroUsd)>,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let catalog = providers::catalog()?;
    let known = Known::new(&catalog);
    let models = match &args.provider {
        Some(name) => {
            let entry = catalog.named(name).map_err(|error| {
                Error::new(Exit::Usage, "the provider is not known").because(error)
            })?;
            let mut models = known.of(entry);
            known.add(&mut models, Some(entry), served(entry, out).await?);
            let any = catalog.of_any_provider().map(|it| it.name.clone());
            known.add(&mut models, Some(entry), any.collect());
            models
        }
        None => {
            let entries = catalog.providers().filter(|entry| known.is_listed(entry));
            let mut models: Vec<Model> = entries.flat_map(|entry| known.of(entry)).collect();
            let any = catalog.of_any_provider().map(|it| it.name.clone());
            known.add(&mut models, None, any.collect());
            models
        }
    };
    if args.json {
        return out.json(&json!({ "models": models }));
    }
    print(&models, out)
}

/// What a server without a key lists itself. If it cannot be asked, the user is told.
async fn served(entry: &ProviderEntry, out: &mut Output) -> Result<Vec<String>, Error> {
    if entry.needs_key || entry.is_built_in() {
        return Ok(Vec::new());
    }
    match local::models(entry).await {
        Ok(models) => Ok(models),
        Err(error) => {
            let name = &entry.name;
            out.aside(format_args!(
                "warning: {name} did not list its models: {error}"
            ))?;
            Ok(Vec::new())
        }
    }
}

/// What the rows are made of.
struct Known<'a> {
    catalog: &'a Catalog,
    keyed: BTreeSet<String>,
    /// What a new agent gets that names nothing.
    default: Option<Choice>,
}

impl<'a> Known<'a> {
    fn new(catalog: &'a Catalog) -> Self {
        let keyed = providers::keyed(catalog, &providers::stored());
        Self {
            default: catalog.choose(None, None, &keyed).ok(),
            catalog,
            keyed,
        }
    }

    /// A provider that shares the address of another one has the same models. It is listed if it is asked for, or
    /// chosen.
    fn is_listed(&self, entry: &ProviderEntry) -> bool {
        let mut others = self.catalog.providers();
        let is_same = |other: &ProviderEntry| {
            other.name < entry.name && other.base_url.is_some() && other.base_url == entry.base_url
        };
        let default = self.default.as_ref();
        let is_chosen = default.is_some_and(|choice| choice.provider.name == entry.name);
        is_chosen || !others.any(is_same)
    }

    fn of(&self, entry: &ProviderEntry) -> Vec<Model> {
        let offered = self.catalog.offered_by(entry);
        let mut models: Vec<Model> = offered
            .iter()
            .map(|model| self.row(Some(entry), model))
            .collect();
        if let Some(default) = &self.default
            && default.provider.name == entry.name
        {
            self.add(&mut models, Some(entry), vec![default.model.clone()]);
        }
        models
    }

    /// Adds the models of these names that the list does not contain yet.
    fn add(&self, models: &mut Vec<Model>, entry: Option<&ProviderEntry>, names: Vec<String>) {
        for name in names {
            if models.iter().all(|model| model.model != name) {
                let provider = entry.map_or("", |entry| entry.name.as_str());
                let model = self.catalog.known_or_named(provider, &name);
                models.push(self.row(entry, &model));
            }
        }
    }

    fn row(&self, entry: Option<&ProviderEntry>, model: &ModelEntry) -> Model {
        let is_default = |entry: &ProviderEntry| {
            let default = self.default.as_ref();
            default.is_some_and(|it| it.provider.name == entry.name && it.model == model.name)
        };
        let price = model.price.map(|price| (price.input, price.output));
        let provider = entry.map(|entry| entry.name.as_str());
        let omits = self.catalog.resolve(provider, Some(&model.name));
        let omits = omits.map(|choice| choice.omits()).unwrap_or_default();
        Model {
            images: model.images != Some(false) && !omits.contains(&FileKind::Image),
            pdf: model.pdf != Some(false) && !omits.contains(&FileKind::Pdf),
            provider: entry.map(|entry| entry.name.clone()),
            model: model.name.clone(),
            window: model.window,
            max_output: model.max_output,
            input_usd: price.map(|(input, _)| dollars(input)),
            output_usd: price.map(|(_, output)| dollars(output)),
            has_key: entry
                .filter(|entry| entry.needs_key)
                .map(|entry| self.keyed.contains(&entry.name)),
            default: entry.is_some_and(is_default),
            provider_default: entry
                .is_some_and(|entry| entry.default_model.as_ref() == Some(&model.name)),
            price,
        }
    }
}

fn print(models: &[Model], out: &mut Output) -> Result<(), Error> {
    if models.is_empty() {
        out.line("no known models")?;
        return out.line("  pass --model with a name that the provider uses");
    }
    let head = [
        Head::Kept("MODEL"),
        Head::Kept("PROVIDER"),
        Head::Spare("WINDOW", 3),
        Head::Spare("MAX OUTPUT", 1),
        Head::Spare("INPUT", 2),
        Head::Spare("OUTPUT", 2),
        Head::Spare("FILES", 1),
        Head::Kept("KEY"),
    ];
    let rows: Vec<Vec<String>> = models.iter().map(cells).collect();
    for line in table(&head, &rows, out.width()) {
        out.line(line)?;
    }
    let star = match models.iter().any(|model| model.default) {
        true => "* a new agent gets this model; ",
        false => "",
    };
    out.line(format_args!(
        "{QUIET}{star}prices in dollars per million tokens{QUIET:#}"
    ))
}

fn cells(model: &Model) -> Vec<String> {
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let mark = if model.default { " *" } else { "" };
    let (input, output) = model.price.unzip();
    vec![
        format!("{}{mark}", model.model),
        or_unknown(model.provider.clone()),
        or_unknown(model.window.map(usage::tokens)),
        or_unknown(model.max_output.map(usage::tokens)),
        or_unknown(input.map(price)),
        or_unknown(output.map(price)),
        match (model.images, model.pdf) {
            (true, true) => "images, PDF".to_owned(),
            (true, false) => "images".to_owned(),
            (false, true) => "PDF".to_owned(),
            (false, false) => "-".to_owned(),
        },
        match model.has_key {
            Some(true) => "yes".to_owned(),
            Some(false) => "no".to_owned(),
            None => "-".to_owned(),
        },
    ]
}

fn dollars(amount: MicroUsd) -> f64 {
    amount.0 as f64 / 1e6
}

/// At least two decimals: `$3.00`, `$0.075`.
fn price(amount: MicroUsd) -> String {
    let text = format!("{:.6}", dollars(amount));
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let decimals = decimals.trim_end_matches('0');
    format!("${whole}.{decimals:0<2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_exact() {
        for (micros, text) in [
            (3_000_000, "$3.00"),
            (75_000, "$0.075"),
            (100_000, "$0.10"),
            (0, "$0.00"),
            (1, "$0.000001"),
        ] {
            assert_eq!(price(MicroUsd(micros)), text);
        }
    }
}
