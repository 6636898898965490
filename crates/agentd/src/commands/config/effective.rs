//! The effective settings of an agent, or of a new agent in a directory, with the layer of each.

use super::{Setting, setting};
use crate::described::{Described, cwd_of, settle_defaults};
use crate::error::Error;
use crate::home;
use crate::layers::{self, Given, Layers};
use crate::preferences::Preferences;
use crate::providers;
use crate::render::word;
use agentd_core::catalog::{AgentDefaults, Catalog, Choice, Unresolved};
use agentd_core::spec::{AgentSpec, Rule, Sandbox};
use agentd_core::usage::MicroUsd;
use agentd_daemon::confine;
use agentd_daemon::layout::Layout;
use agentd_daemon::project::settings::{self, SettingsFile, State};
use std::collections::BTreeSet;

const BUILT_IN: &str = "built in";
const USER: &str = "config.toml";
const PROJECT: &str = "project";
const FILE: &str = "agent file";
const FLAG: &str = "flag";
const JOURNAL: &str = "journal";
/// The value is the provider's own default.
const PROVIDER: &str = "the provider's";

/// The settings that an agent would get if these options created it.
pub async fn of_new_agent(
    described: &Described,
    user: &Catalog,
    stored: &BTreeSet<String>,
) -> Result<Vec<Setting>, Error> {
    let mut spec = AgentSpec::default();
    let given = described.apply(&mut spec)?;
    let own_rules = spec.permissions.len();
    let layers = layers::of(user, cwd_of(&spec)).await?;
    let Layers {
        catalog,
        files,
        foreign,
        level,
    } = layers;
    let keyed = providers::keyed(&catalog, stored);
    let choice = catalog.choose(spec.provider.as_deref(), spec.model.as_deref(), &keyed);
    settle_defaults(&mut spec, &given, &catalog);
    let sources = Sources {
        given: &given,
        user: user.agents(),
        narrowed: catalog.agents(),
        of_project: catalog.project_model(),
        own_rules,
        level,
    };
    let mut all = of_choice(&choice, "", &sources.of_choice());
    let preferences = choice.as_ref().ok();
    let of_new = (&spec, level);
    all.extend(of_spec(of_new, preferences, "agents.", &|key| {
        sources.of(key)
    }));
    all.extend(files.iter().map(of_file));
    let ignored = "ignored: not trusted; read it, then `agentd trust` in its project";
    all.extend(
        foreign
            .iter()
            .map(|path| setting("project", Some(path.display().to_string()), ignored)),
    );
    Ok(all)
}

/// The stored settings of an agent. `level` is the sandbox of agents without a setting, if the daemon has one.
pub fn of_agent(
    spec: &AgentSpec,
    catalog: &Catalog,
    level: Option<Sandbox>,
) -> Result<Vec<Setting>, Error> {
    let choice = catalog.resolve(spec.provider.as_deref(), spec.model.as_deref());
    let default = AgentSpec::default();
    let limits = default.limits.entries();
    let from = |key: &str| {
        let is_set = match key {
            "sandbox" => spec.sandbox.is_some(),
            "network" => spec.network.is_some(),
            "approval" => spec.approval.is_some(),
            "reasoning" => spec.reasoning.is_some(),
            "verbosity" => spec.verbosity.is_some(),
            "fast" => spec.fast.is_some(),
            "permissions" => !spec.permissions.is_empty(),
            "pass_env" => !spec.pass_env.is_empty(),
            "pass" => !spec.pass.is_empty(),
            "server_tools" => !spec.server_tools.is_empty(),
            key => {
                let own = spec.limits.entries();
                let key = key.trim_start_matches("limits.");
                let is_default = |(known, value): &(&str, Option<u64>)| {
                    *known != key || limits.contains(&(*known, *value))
                };
                !own.iter().all(is_default)
            }
        };
        match (is_set, key) {
            (true, _) => JOURNAL.to_owned(),
            (false, "reasoning" | "verbosity") => PROVIDER.to_owned(),
            (false, _) => BUILT_IN.to_owned(),
        }
    };
    let of_model = |is_set: bool| match is_set {
        true => JOURNAL.to_owned(),
        false => "the provider's default".to_owned(),
    };
    let from_choice = [JOURNAL.to_owned(), of_model(spec.model.is_some())];
    let mut all = of_choice(&choice, "", &from_choice);
    all.push(setting("cwd", spec.cwd.clone(), JOURNAL));
    all.extend(of_spec((spec, level), choice.as_ref().ok(), "", &from));
    let files = settings::find(&Layout::new(home::dir()?), cwd_of(spec));
    all.extend(files.iter().map(of_file));
    Ok(all)
}

/// Where the settings of a new agent come from.
struct Sources<'a> {
    given: &'a Given,
    user: &'a AgentDefaults,
    narrowed: &'a AgentDefaults,
    /// The model that a project names.
    of_project: Option<&'a str>,
    /// How many rules the agent file has.
    own_rules: usize,
    /// The sandbox that the environment names, if any.
    level: Option<Sandbox>,
}

impl Sources<'_> {
    /// The layer of a key that the agent file or the command line sets.
    fn above(&self, key: &str) -> Option<&'static str> {
        match self.given.flags.contains(key) {
            true => Some(FLAG),
            false => self.given.file.contains(key).then_some(FILE),
        }
    }

    fn of_choice(&self) -> [String; 2] {
        let (user, narrowed) = (self.user, self.narrowed);
        let is_project = self.of_project.is_some()
            || (&user.provider, &user.model) != (&narrowed.provider, &narrowed.model);
        let below = match (is_project, user.provider.is_some() || user.model.is_some()) {
            (true, _) => PROJECT,
            (false, true) => USER,
            (false, false) => "the first provider that is ready",
        };
        let provider = self.above("provider");
        let model = self.above("model");
        // A provider without a model means its default model, and a model without a provider its vendor.
        let of_model = model.or(provider.map(|_| "the provider's default"));
        let of_provider = provider.or(model.map(|_| "the model's provider"));
        [of_provider, of_model].map(|above| above.unwrap_or(below).to_owned())
    }

    fn of(&self, key: &str) -> String {
        let (user, narrowed) = (self.user, self.narrowed);
        let rules = |rules: &[Rule]| rules.len();
        let (is_project, is_user) = match key {
            "sandbox" => (user.sandbox != narrowed.sandbox, user.sandbox.is_some()),
            "network" => (user.network != narrowed.network, user.network.is_some()),
            "approval" => (user.approval != narrowed.approval, user.approval.is_some()),
            "reasoning" => (
                user.reasoning != narrowed.reasoning,
                user.reasoning.is_some(),
            ),
            "verbosity" => (
                user.verbosity != narrowed.verbosity,
                user.verbosity.is_some(),
            ),
            "fast" => (user.fast != narrowed.fast, user.fast.is_some()),
            "permissions" => (
                rules(&narrowed.permissions) > rules(&user.permissions),
                rules(&user.permissions) > 0,
            ),
            "pass_env" => (false, !user.pass_env.is_empty()),
            "pass" => (false, !user.pass.is_empty()),
            "server_tools" => (false, !user.server_tools.is_empty()),
            key => {
                let value = |defaults: &AgentDefaults| {
                    let all = defaults.limits.entries();
                    let key = key.trim_start_matches("limits.");
                    all.into_iter().find(|(known, _)| *known == key)
                };
                (value(user) != value(narrowed), value(user).is_some())
            }
        };
        if matches!(key, "permissions" | "pass_env" | "pass" | "server_tools") {
            // All layers add to these.
            let is_file = match key {
                "permissions" => self.own_rules > 0,
                key => self.given.file.contains(key),
            };
            let layers = [(is_user, USER), (is_project, PROJECT), (is_file, FILE)];
            let layers = layers.into_iter().filter(|(is_set, _)| *is_set);
            let names: Vec<&str> = layers.map(|(_, name)| name).collect();
            return match names.is_empty() {
                true => BUILT_IN.to_owned(),
                false => names.join(", "),
            };
        }
        let of_environment = || {
            let level = self.level.filter(|_| key == "sandbox");
            level.map(|_| confine::VARIABLE)
        };
        let below = match (is_project, is_user) {
            (true, _) => PROJECT,
            (false, true) => USER,
            (false, false) if matches!(key, "reasoning" | "verbosity") => PROVIDER,
            (false, false) => of_environment().unwrap_or(BUILT_IN),
        };
        self.above(key).unwrap_or(below).to_owned()
    }
}

fn of_choice(
    choice: &Result<Choice, Unresolved>,
    prefix: &str,
    [of_provider, of_model]: &[String; 2],
) -> Vec<Setting> {
    let both = |provider, model, of_provider: &str, of_model: &str| {
        vec![
            setting(format!("{prefix}provider"), provider, of_provider),
            setting(format!("{prefix}model"), model, of_model),
        ]
    };
    match choice {
        Ok(choice) => both(
            Some(choice.provider.name.clone()),
            Some(choice.model.clone()),
            of_provider,
            of_model,
        ),
        Err(error) => {
            let why = error.to_string();
            both(None, None, &why, &why)
        }
    }
}

fn of_spec(
    (spec, level): (&AgentSpec, Option<Sandbox>),
    choice: Option<&Choice>,
    prefix: &str,
    from: &dyn Fn(&str) -> String,
) -> Vec<Setting> {
    let one =
        |key: &str, value: Option<String>| setting(format!("{prefix}{key}"), value, from(key));
    let names = |names: Vec<&str>| (!names.is_empty()).then(|| names.join(", "));
    let level = spec.sandbox.or(level);
    let preferences = choice.map(|choice| (Preferences::of(choice, spec), choice));
    let pass = spec.pass.iter().map(|pass| pass.name());
    let mut all = vec![
        one("sandbox", Some(word(level.unwrap_or_default()))),
        one(
            "network",
            Some(spec.network.clone().unwrap_or_default().to_string()),
        ),
        one("approval", Some(word(spec.approval.unwrap_or_default()))),
        one("reasoning", spec.reasoning.map(word)),
        one("verbosity", spec.verbosity.map(word)).noted(preferences.and_then(verbosity)),
        one("fast", Some(spec.fast.unwrap_or_default().to_string()))
            .noted(preferences.and_then(|known| fast(spec, known))),
        one(
            "permissions",
            Some(format!("{} rules", spec.permissions.len())),
        ),
        one(
            "pass_env",
            names(spec.pass_env.iter().map(String::as_str).collect()),
        ),
        one("pass", names(pass.collect())),
        one(
            "server_tools",
            names(spec.server_tools.iter().map(|tool| tool.name()).collect()),
        ),
    ];
    for (key, value) in spec.limits.entries() {
        if let Some(value) = value {
            let value = match key.ends_with(".usd") {
                true => dollars(MicroUsd(value)),
                false => value.to_string(),
            };
            all.push(one(&format!("limits.{key}"), Some(value)));
        }
    }
    all
}

fn dollars(MicroUsd(micros): MicroUsd) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// How the model gets the verbosity.
fn verbosity((preferences, choice): (Preferences, &Choice)) -> Option<String> {
    let model = &choice.model;
    preferences
        .told
        .map(|_| format!("{model} has no parameter for it: it is a sentence of the system prompt"))
}

fn fast(spec: &AgentSpec, (preferences, choice): (Preferences, &Choice)) -> Option<String> {
    let is_ignored = spec.fast == Some(true) && !preferences.is_fast;
    is_ignored.then(|| format!("ignored: {} has no faster service", choice.model))
}

/// A file of the project, and whether it counts.
fn of_file(file: &SettingsFile) -> Setting {
    let dir = file.dir.display();
    let state = match &file.state {
        State::Trusted(_) => "trusted".to_owned(),
        State::NotTrusted => {
            format!("ignored: not trusted; read it, then `agentd trust {dir}`")
        }
        State::Changed | State::Gone => {
            format!("changed since you trusted it; `agentd trust {dir}` or `agentd untrust {dir}`")
        }
        State::Invalid(error) => format!("ignored: {error}; correct it, or `agentd untrust {dir}`"),
        State::Unreadable(why) => format!("ignored: {why}; make it a regular file"),
    };
    setting("project", Some(file.path().display().to_string()), state)
}
