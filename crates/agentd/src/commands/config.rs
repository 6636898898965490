//! `agentd config`.

mod effective;

use crate::complete;
use crate::described::Described;
use crate::error::{Error, Exit};
use crate::output::{Output, QUIET};
use crate::providers::{self, KeySource, variable};
use crate::render::table::{Head, table};
use crate::render::{time, word};
use crate::{connect, home};
use agentd_core::catalog::{
    BackupSettings, Catalog, DaemonSettings, NotifySettings, ProviderEntry, RetentionSettings,
};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;

const EXAMPLES: &str = "\
Examples:
  agentd config                        What a new agent in this directory gets
  agentd config -f reviewer.md --fast  With an agent file and options
  agentd config coder                  The settings of an agent
  agentd config --json | jq -r '.settings[] | select(.key == \"home\").value'

FROM names the layer of each value: built in, config.toml, project (.agentd/config.toml, once it is trusted), agent file, \
flag, or journal for the stored settings of an agent. Provider keys are never shown, only where they come from. Your own providers, models and prices go \
into config.toml in the state directory:

  [providers.lab]
  wire = \"openai_chat\"                # or openai_responses, anthropic_messages, gemini
  base_url = \"http://lab.example:8000/v1\"
  key_env = \"LAB_API_KEY\"             # or a list; or key_file, or key_command
  default_model = \"qwen3\"

  [models.qwen3]
  window = 131072                      # tokens
  max_output = 8192
  input_usd = 0.10                     # per million tokens
  output_usd = 0.40
  long_context = { above = 100000, input_times = 2, output_times = 1.5 }
  verbosity = true                     # requests have a parameter for it
  fast_times = 2                       # it has a faster service, at twice the price

  [ui]
  theme = \"auto\"                     # or dark, light, none

  [backup]                             # the daemon makes backups by itself
  directory = \"/srv/backups\"         # or ~/...; it must exist
  every = \"1d\"                       # or 30m, 12h, 2w
  keep = 7                             # older ones are deleted

  [notify]
  desktop = true                       # notifications on the screen, by notify-send
  on = [\"failed\", \"approval\"]      # default: all topics
  webhooks.team = { url = \"https://hooks.example/agentd\", secret = \"TEAM_HOOK\" }

  [daemon]
  orphan_ms = 3600000                  # how long an agent's process continues without a daemon
  session_end_wait_ms = 1500           # how long a reset or a stop waits for SessionEnd hooks
  log = \"info\"                       # or error, warn, debug
  max_turns = 8                        # at the same time; further turns wait
  min_free_mb = 100                    # disk space below which new turns wait
  day = { usd = 20 }                   # of all agents together, by UTC; then new turns wait
  supervisor = \"auto\"                  # or native, or systemd: a scope for each agent

  [agents]                             # defaults of new agents, if their file sets nothing else
  provider = \"lab\"                   # both apply if an agent names no provider
  model = \"qwen3\"
  sandbox = \"workspace-write\"        # or read-only, full-access
  network = \"on\"                     # or off, or hosts: [\"example.com\"]
  approval = \"on-request\"            # or always, never
  reasoning = \"medium\"               # or off, low, high
  verbosity = \"low\"                  # or medium, high
  fast = false
  limits = { max_iterations = 200, turn = { usd = 5 } }
  permissions = [{ tool = \"shell\", pattern = \"git push*\", decision = \"ask\" }]
  pass_env = [\"DATABASE_URL\"]        # your variables that tools get; their values are not stored
  pass = [\"ssh-agent\"]               # or gpg-agent, docker, kube, gh: services that tools may use";

/// Show every setting and where it comes from
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// An agent [default: what a new agent in this directory would get]
    #[arg(add = complete::agents())]
    name: Option<String>,
    #[command(flatten)]
    described: Described,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Setting {
    key: String,
    value: Option<String>,
    from: String,
    /// What becomes of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl Setting {
    fn noted(self, note: Option<String>) -> Self {
        Self { note, ..self }
    }
}

fn setting(key: impl Into<String>, value: Option<String>, from: impl Into<String>) -> Setting {
    Setting {
        key: key.into(),
        value,
        from: from.into(),
        note: None,
    }
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let catalog = providers::catalog()?;
    let settings = match &args.name {
        Some(name) if args.described.is_given() => {
            let what = format!("`{name}` has its settings already");
            return Err(Error::new(Exit::Usage, what)
                .next("leave out either NAME or the options; `agentd set` changes settings"));
        }
        Some(name) => {
            let client = connect::client().await?;
            let level = client.daemon().await?.sandbox;
            effective::of_agent(&client.spec(name).await?, &catalog, level)?
        }
        None => of_everything(args, &catalog).await?,
    };
    if args.json {
        return out.json(&json!({ "settings": settings }));
    }
    let rows = settings.into_iter().map(|setting| {
        let value = setting.value.unwrap_or_else(|| "-".to_owned());
        let from = match setting.note {
            Some(note) => format!("{}; {note}", setting.from),
            None => setting.from,
        };
        vec![setting.key, value, from]
    });
    let rows: Vec<_> = rows.collect();
    // Not cut to the width of the terminal: paths are meant to be copied.
    for line in table(&["KEY", "VALUE", "FROM"].map(Head::Kept), &rows, None) {
        out.line(line)?;
    }
    out.line(format_args!(
        "{QUIET}see `agentd config --help` for the format of config.toml{QUIET:#}"
    ))
}

async fn of_everything(args: &Args, catalog: &Catalog) -> Result<Vec<Setting>, Error> {
    let mut settings = paths()?;
    let stored = providers::stored();
    settings.extend(effective::of_new_agent(&args.described, catalog, &stored).await?);
    let built_in = Catalog::built_in();
    settings.extend(of_daemon(catalog.daemon(), built_in.daemon()));
    settings.extend(of_notify(catalog.notify()));
    settings.extend(catalog.backup().into_iter().flat_map(of_backup));
    settings.extend(of_retention(catalog.retention()));
    let theme = catalog.ui().theme;
    settings.push(setting(
        "ui.theme",
        Some(word(theme.unwrap_or_default())),
        match theme {
            Some(_) => "config.toml",
            None => "built in",
        },
    ));
    for entry in catalog.providers() {
        settings.extend(of_provider(entry, built_in.provider(&entry.name), &stored));
    }
    Ok(settings)
}

/// Where notifications are sent. Nothing if there is no destination.
fn of_notify(notify: &NotifySettings) -> Option<Setting> {
    let names: Vec<&str> = notify.destinations().collect();
    let names = (!names.is_empty()).then(|| names.join(", "))?;
    Some(setting("notify", Some(names), "config.toml"))
}

/// The daemon's own backups. Nothing if it makes none.
fn of_backup(backup: &BackupSettings) -> [Setting; 3] {
    let of = |key: &str, value: String| setting(key, Some(value), "config.toml");
    [
        of("backup.directory", backup.directory.clone()),
        of("backup.every", time::exact(backup.every_ms)),
        of("backup.keep", backup.keep.to_string()),
    ]
}

/// What the daemon deletes by itself. Nothing if it deletes nothing.
fn of_retention(retention: &RetentionSettings) -> impl Iterator<Item = Setting> + use<> {
    let all = [
        ("retention.oneshots", retention.oneshots_ms),
        ("retention.conversations", retention.conversations_ms),
    ];
    let set = all.into_iter().filter_map(|(key, ms)| Some((key, ms?)));
    set.map(|(key, ms)| setting(key, Some(time::exact(ms)), "config.toml"))
}

fn paths() -> Result<Vec<Setting>, Error> {
    let home = home::dir()?;
    let config = home::config()?;
    let shown = |path: &std::path::Path| Some(path.display().to_string());
    let state = match config.is_file() {
        true => "the file exists",
        false => "the file does not exist; defaults apply",
    };
    Ok(vec![
        setting("home", shown(&home), home::source()),
        setting("config", shown(&config), state),
        setting("socket", shown(&connect::socket(&home)), "home"),
        setting("log", shown(&connect::log(&home)), "home"),
    ])
}

fn of_daemon(daemon: &DaemonSettings, built_in: &DaemonSettings) -> [Setting; 7] {
    let from = |is_same: bool| match is_same {
        true => "built in",
        false => "config.toml",
    };
    let orphan = daemon.orphan_ms.to_string();
    [
        setting(
            "daemon.orphan_ms",
            Some(orphan),
            from(daemon.orphan_ms == built_in.orphan_ms),
        ),
        setting(
            "daemon.session_end_wait_ms",
            Some(daemon.session_end_wait_ms.to_string()),
            from(daemon.session_end_wait_ms == built_in.session_end_wait_ms),
        ),
        setting(
            "daemon.log",
            Some(word(daemon.log)),
            from(daemon.log == built_in.log),
        ),
        setting(
            "daemon.max_turns",
            daemon.max_turns.map(|turns| turns.to_string()),
            from(daemon.max_turns == built_in.max_turns),
        ),
        setting(
            "daemon.min_free_mb",
            daemon.min_free_mb.map(|mb| mb.to_string()),
            from(daemon.min_free_mb == built_in.min_free_mb),
        ),
        setting(
            "daemon.day.usd",
            daemon.day.usd.map(|usd| (usd.0 as f64 / 1e6).to_string()),
            from(daemon.day == built_in.day),
        ),
        setting(
            "daemon.supervisor",
            Some(daemon.supervisor.as_str().to_owned()),
            from(daemon.supervisor == built_in.supervisor),
        ),
    ]
}

/// The fields of a provider, each with its source: a variable, the file or the built-in catalog.
fn of_provider(
    entry: &ProviderEntry,
    built_in: Option<&ProviderEntry>,
    stored: &BTreeSet<String>,
) -> Vec<Setting> {
    let key = |field: &str| format!("providers.{}.{field}", entry.name);
    let origin = |is_built_in: bool| match is_built_in {
        true => "built in",
        false => "config.toml",
    };
    let same = |field: fn(&ProviderEntry) -> String| {
        origin(built_in.is_some_and(|known| field(known) == field(entry)))
    };
    let mut all = vec![setting(
        key("wire"),
        Some(word(entry.wire)),
        same(|entry| word(entry.wire)),
    )];
    if let Some(base_url) = &entry.base_url {
        let moved = entry.base_url_env.as_deref();
        let moved = moved.and_then(|name| Some((name, variable(name)?)));
        all.push(match moved {
            Some((name, value)) => setting(key("base_url"), entry.address(Some(&value)), name),
            None => setting(
                key("base_url"),
                Some(base_url.clone()),
                same(|entry| entry.base_url.clone().unwrap_or_default()),
            ),
        });
    }
    if entry.default_model.is_some() {
        all.push(setting(
            key("default_model"),
            entry.default_model.clone(),
            same(|entry| entry.default_model.clone().unwrap_or_default()),
        ));
    }
    if entry.needs_key {
        all.push(of_key(entry, key("key"), stored));
    }
    all
}

fn of_key(entry: &ProviderEntry, key: String, stored: &BTreeSet<String>) -> Setting {
    let (value, from) = match providers::key_source(entry, stored) {
        Some(KeySource::Variable(name)) => ("set", name),
        Some(KeySource::Stored(name)) => ("stored", format!("agentd secret: {name}")),
        Some(KeySource::File(path)) => ("in a file", path.display().to_string()),
        Some(KeySource::Command) => ("from a command", "key_command".to_owned()),
        None => {
            let from = match &entry.key_file {
                Some(file) => format!("not found: {file}"),
                None => format!("not set: {}", entry.key_env.join(" or ")),
            };
            return setting(key, None, from);
        }
    };
    setting(key, Some(value.to_owned()), from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_file_says_is_told_from_what_is_built_in() {
        let mut catalog = Catalog::built_in();
        let file = "[providers.ollama]\ndefault_model = \"qwen3\"\n";
        catalog.extend(file, "config.toml").unwrap();
        let built_in = Catalog::built_in();
        let found = of_provider(
            catalog.provider("ollama").unwrap(),
            built_in.provider("ollama"),
            &BTreeSet::new(),
        );
        let from = |key: &str| {
            let setting = found.iter().find(|setting| setting.key == key).unwrap();
            setting.from.clone()
        };
        assert_eq!(from("providers.ollama.default_model"), "config.toml");
        assert_eq!(from("providers.ollama.wire"), "built in");
    }

    /// Regression: `agentd config` shows every setting, and did not show these.
    #[test]
    fn backups_and_retention_are_shown_if_they_are_set() {
        let shown = |text: &str| {
            let mut catalog = Catalog::built_in();
            catalog.extend(text, "config.toml").unwrap();
            let backup = catalog.backup().into_iter().flat_map(of_backup);
            let all = backup.chain(of_retention(catalog.retention()));
            let all = all.map(|setting| format!("{}={}", setting.key, setting.value.unwrap()));
            all.collect::<Vec<String>>()
        };
        assert_eq!(shown(""), [""; 0]);
        let text = "[backup]\ndirectory = \"/srv/b\"\n[retention]\nconversations = \"26w\"\n";
        let found = shown(text);
        for (setting, start) in found.iter().zip([
            "backup.directory=/srv/b",
            "backup.every=",
            "backup.keep=7",
            "retention.conversations=",
        ]) {
            assert!(setting.starts_with(start), "{found:?}");
        }
        assert_eq!(found.len(), 4, "{found:?}");
    }
}
