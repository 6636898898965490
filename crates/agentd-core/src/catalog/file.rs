//! The user's file: TOML as a tree of nodes that know their line numbers, read like the front matter of a spec.

use super::error::Fault;
use super::names::Names;
use super::{
    AgentDefaults, BackupSettings, Catalog, DEMO, DaemonSettings, EditForm, ModelEntry,
    NotifySettings, ProviderEntry, ReasoningForm, RetentionSettings, ShellForm, UiSettings,
};
use crate::message::Wire;
use crate::spec::{AgentSpec, Entry, Kind, Node, Path, dollars, from_node};
use crate::usage::{LongContext, MicroUsd, Price};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use toml::de::{DeTable, DeValue};

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    providers: BTreeMap<String, Provider>,
    models: BTreeMap<String, Model>,
    daemon: Option<DaemonSettings>,
    agents: Option<AgentDefaults>,
    notify: Option<NotifySettings>,
    ui: Option<UiSettings>,
    backup: Option<BackupSettings>,
    retention: Option<RetentionSettings>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Provider {
    wire: Option<Wire>,
    base_url: Option<String>,
    key_env: Option<Names>,
    key_file: Option<String>,
    key_command: Option<String>,
    default_model: Option<String>,
}

/// `long_context`: what a longer request costs, as multiples of the price.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Long {
    above: u64,
    input_times: f64,
    output_times: f64,
}

impl Long {
    /// In thousandths. A factor below 1 is probably a mistake.
    fn step(self) -> Result<LongContext, String> {
        Ok(LongContext {
            above: self.above,
            input_permille: permille("long_context.input_times", self.input_times)?,
            output_permille: permille("long_context.output_times", self.output_times)?,
        })
    }
}

fn permille(key: &str, times: f64) -> Result<u64, String> {
    match (1.0..=1000.0).contains(&times) {
        true => Ok((times * 1000.0).round() as u64),
        false => Err(format!("`{key}` must be a number from 1 to 1000")),
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Model {
    window: Option<u64>,
    max_output: Option<u64>,
    reasoning: Option<ReasoningForm>,
    edits: Option<EditForm>,
    shell: Option<ShellForm>,
    verbosity: Option<bool>,
    fast_times: Option<f64>,
    images: Option<bool>,
    pdf: Option<bool>,
    long_context: Option<Long>,
    #[serde(with = "dollars")]
    input_usd: Option<MicroUsd>,
    #[serde(with = "dollars")]
    output_usd: Option<MicroUsd>,
    #[serde(with = "dollars")]
    cache_read_usd: Option<MicroUsd>,
    #[serde(with = "dollars")]
    cache_write_usd: Option<MicroUsd>,
}

/// The text as a tree of nodes that know their line numbers.
pub(super) fn tree(text: &str) -> Result<Node, Fault> {
    let lines = Lines { text };
    let table = DeTable::parse(text).map_err(|error| Fault::Toml {
        line: lines.of(error.span().map_or(0, |span| span.start)),
        reason: error.message().to_owned(),
    })?;
    Ok(Node {
        line: 1,
        kind: lines.map(table.get_ref()),
    })
}

/// The table of models that ships with the program, sorted by provider and then by name.
pub(super) fn models(text: &str) -> Result<Vec<ModelEntry>, Fault> {
    let root = tree(text)?;
    let table: BTreeMap<String, BTreeMap<String, Model>> = from_node(&root)?;
    let mut models = Vec::new();
    for (provider, given) in table {
        for (name, given) in given {
            let path = Path::key(&provider).then(&name);
            let entry = given.over(ModelEntry::of_vendor(&provider, &name));
            let entry = entry
                .map_err(|reason| Fault::invalid(root.line_of(&path), path.to_string(), reason))?;
            models.push(ModelEntry {
                priced_by_user: false,
                parameters_by_user: false,
                ..entry
            });
        }
    }
    Ok(models)
}

pub(super) fn extend(catalog: &mut Catalog, text: &str) -> Result<(), Fault> {
    let root = tree(text)?;
    let file: File = from_node(&root)?;
    let fault = |section: &str, name: &str, reason: String| {
        let path = Path::key(section).then(name);
        Fault::invalid(root.line_of(&path), path.to_string(), reason)
    };
    catalog.daemon = file.daemon.unwrap_or(catalog.daemon);
    let checked = catalog.daemon.check();
    checked.map_err(|(key, reason)| fault("daemon", key, reason))?;
    catalog.ui = file.ui.unwrap_or(catalog.ui);
    catalog.retention = file.retention.unwrap_or(catalog.retention);
    let checked = catalog.retention.check();
    checked.map_err(|(key, reason)| fault("retention", key, reason))?;
    if let Some(backup) = file.backup {
        let checked = backup.check();
        checked.map_err(|(key, reason)| fault("backup", key, reason))?;
        catalog.backup = Some(backup);
    }
    if let Some(notify) = file.notify {
        let checked = notify.check();
        checked.map_err(|(path, reason)| {
            Fault::invalid(root.line_of(&path), path.to_string(), reason)
        })?;
        catalog.notify = notify;
    }
    if let Some(agents) = file.agents {
        let mut sample = AgentSpec::default();
        agents.apply(&mut sample, &BTreeSet::new());
        let checked = sample.validate();
        checked.map_err(|problem| {
            let path = problem.below("agents");
            Fault::invalid(root.line_of(&path), path.to_string(), problem.reason())
        })?;
        catalog.agents = agents;
    }
    for (name, given) in file.providers {
        let known = catalog.providers.remove(&name);
        let provider = given
            .over(known, &name)
            .map_err(|reason| fault("providers", &name, reason))?;
        catalog.providers.insert(name, provider);
    }
    for (name, given) in file.models {
        let known = catalog.models.remove(&name);
        let known = known.unwrap_or_else(|| ModelEntry::of_user(&name));
        let model = given
            .over(known)
            .map_err(|reason| fault("models", &name, reason))?;
        catalog.models.insert(name, model);
    }
    check_defaults(catalog).map_err(|(key, reason)| fault("agents", key, reason))
}

/// Checks the provider and the model of new agents, when all providers are known.
fn check_defaults(catalog: &Catalog) -> Result<(), (&'static str, String)> {
    let AgentDefaults {
        provider, model, ..
    } = &catalog.agents;
    if let Some(name) = provider
        && !catalog.providers.contains_key(name)
    {
        let known = catalog.names();
        return Err((
            "provider",
            format!("unknown provider `{name}`: choose one of: {known}"),
        ));
    }
    if model.as_ref().is_some_and(|name| name.trim().is_empty()) {
        return Err((
            "model",
            "it is empty; give it a value, or remove it".to_owned(),
        ));
    }
    Ok(())
}

impl Provider {
    fn over(self, known: Option<ProviderEntry>, name: &str) -> Result<ProviderEntry, String> {
        if name == DEMO {
            return Err("`demo` is built in; choose another name for your provider".to_owned());
        }
        let texts = [
            ("base_url", &self.base_url),
            ("key_file", &self.key_file),
            ("key_command", &self.key_command),
            ("default_model", &self.default_model),
        ];
        for (key, value) in texts {
            if value.as_ref().is_some_and(|text| text.trim().is_empty()) {
                return Err(format!("`{key}` is empty; give it a value, or remove it"));
            }
        }
        let is_http = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        if self.base_url.as_ref().is_some_and(|url| !is_http(url)) {
            return Err("`base_url` must begin with http:// or https://".to_owned());
        }
        let is_absolute = |path: &String| path.starts_with('/') || path.starts_with("~/");
        if self
            .key_file
            .as_ref()
            .is_some_and(|path| !is_absolute(path))
        {
            return Err("`key_file` must begin with / or ~/".to_owned());
        }
        let mut entry = match (known, self.wire, &self.base_url) {
            (Some(known), _, _) => known,
            (None, Some(wire), Some(_)) => ProviderEntry::new(name, wire),
            (None, None, _) => return Err("a new provider needs `wire`; add it".to_owned()),
            (None, _, None) => return Err("a new provider needs `base_url`; add it".to_owned()),
        };
        entry.wire = self.wire.unwrap_or(entry.wire);
        entry.base_url = self.base_url.or(entry.base_url);
        let has_key =
            self.key_env.is_some() || self.key_file.is_some() || self.key_command.is_some();
        entry.needs_key |= has_key;
        if let Some(Names(names)) = self.key_env {
            entry.key_env = names;
        }
        entry.key_file = self.key_file.or(entry.key_file);
        entry.key_command = self.key_command.or(entry.key_command);
        entry.default_model = self.default_model.or(entry.default_model);
        Ok(entry)
    }
}

impl Model {
    fn over(self, mut entry: ModelEntry) -> Result<ModelEntry, String> {
        if self.window == Some(0) || self.max_output == Some(0) {
            return Err("`window` and `max_output` must be 1 or more".to_owned());
        }
        entry.window = self.window.or(entry.window);
        entry.max_output = self.max_output.or(entry.max_output);
        entry.reasoning = self.reasoning.unwrap_or(entry.reasoning);
        entry.edits = self.edits.unwrap_or(entry.edits);
        entry.shell = self.shell.unwrap_or(entry.shell);
        entry.parameters_by_user |= self.verbosity.is_some() || self.fast_times.is_some();
        entry.verbosity = self.verbosity.unwrap_or(entry.verbosity);
        let fast = self.fast_times.map(|times| permille("fast_times", times));
        entry.fast_permille = fast.transpose()?.or(entry.fast_permille);
        entry.images = self.images.or(entry.images);
        entry.pdf = self.pdf.or(entry.pdf);
        let long_context = self.long_context.map(Long::step).transpose()?;
        let given = [
            self.input_usd,
            self.output_usd,
            self.cache_read_usd,
            self.cache_write_usd,
        ];
        if given.iter().all(Option::is_none) && long_context.is_none() {
            return Ok(entry);
        }
        let known = entry.price;
        let input = self.input_usd.or(known.map(|price| price.input));
        let output = self.output_usd.or(known.map(|price| price.output));
        let (Some(input), Some(output)) = (input, output) else {
            return Err(
                "a price needs both `input_usd` and `output_usd`; add the missing one".to_owned(),
            );
        };
        // A provider without a separate price for its cache charges the price of input.
        entry.price = Some(Price {
            input,
            output,
            cache_read: self
                .cache_read_usd
                .or(known.map(|price| price.cache_read))
                .unwrap_or(input),
            cache_write: self
                .cache_write_usd
                .or(known.map(|price| price.cache_write))
                .unwrap_or(input),
            long_context: long_context.or(known.and_then(|price| price.long_context)),
        });
        entry.priced_by_user = true;
        Ok(entry)
    }
}

struct Lines<'t> {
    text: &'t str,
}

impl Lines<'_> {
    fn of(&self, byte: usize) -> usize {
        let before = self.text.as_bytes().iter().take(byte);
        1 + before.filter(|byte| **byte == b'\n').count()
    }

    fn map(&self, table: &DeTable<'_>) -> Kind {
        let entries = table.iter().map(|(key, value)| {
            let line = self.of(key.span().start);
            Entry {
                key: key.get_ref().to_string(),
                line,
                value: self.node(line, value.get_ref()),
            }
        });
        Kind::Map(entries.collect())
    }

    /// Numbers keep their digits, so that amounts of money stay exact.
    fn node(&self, line: usize, value: &DeValue<'_>) -> Node {
        let word = |text: String, plain| Kind::Word { text, plain };
        let kind = match value {
            DeValue::String(text) => word(text.to_string(), false),
            DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix())
            {
                Ok(number) => word(number.to_string(), true),
                Err(_) => word(number.as_str().to_owned(), true),
            },
            DeValue::Float(number) => word(float(number.as_str()), true),
            DeValue::Boolean(value) => word(value.to_string(), true),
            DeValue::Datetime(value) => word(value.to_string(), false),
            DeValue::Array(items) => {
                let items = items.iter();
                let node = |item: &toml::Spanned<DeValue<'_>>| {
                    self.node(self.of(item.span().start), item.get_ref())
                };
                Kind::List(items.map(node).collect())
            }
            DeValue::Table(table) => self.map(table),
        };
        Node { line, kind }
    }
}

/// The spelling that the tree uses for infinity and NaN.
fn float(text: &str) -> String {
    match text.trim_start_matches(['+', '-']) {
        "inf" => text.replace("inf", ".inf"),
        "nan" => ".nan".to_owned(),
        _ => text.to_owned(),
    }
}
