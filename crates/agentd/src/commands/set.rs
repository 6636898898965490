//! `agentd set`.

use super::tell;
use crate::complete;
use crate::connect;
use crate::described;
use crate::error::{Error, Exit};
use crate::keys;
use crate::op::Op;
use crate::output::Output;
use crate::{passing, providers};
use agentd_core::spec::AgentSpec;
use serde_json::{Map, Value};

const EXAMPLES: &str = "\
Examples:
  agentd set coder model=gpt-5
  agentd set coder limits.turn.usd=2.50 limits.max_iterations=200
  agentd set coder 'tools=[\"read_file\",\"search_files\"]' on_crash=wait
  agentd set coder temperature=

The keys are those of an agent file, with dots for nesting; `system` is the system prompt. A value is text or \
JSON; an empty value restores the default. Either all settings are applied or none.";

/// The keys that completion offers.
const KEYS: &[&str] = &[
    "approval",
    "cwd",
    "fast",
    "limits.day.usd",
    "limits.file_history_bytes",
    "limits.max_iterations",
    "limits.max_output_tokens",
    "limits.turn.tokens",
    "limits.turn.usd",
    "model",
    "network",
    "on_crash",
    "provider",
    "reasoning",
    "sandbox",
    "system",
    "temperature",
    "tools",
    "verbosity",
];

/// A limit of the number of values that are tried as JSON and as text.
const MOST_AMBIGUOUS: usize = 8;

/// Change individual settings of an agent
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// The settings to change
    #[arg(value_name = "KEY=VALUE", required = true, add = complete::settings(KEYS))]
    settings: Vec<String>,
    #[command(flatten)]
    op: Op,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?.under(args.op.id);
    let before = client.spec(&args.name).await?;
    let settings: Vec<&str> = args.settings.iter().map(String::as_str).collect();
    let mut spec = changed(&before, &settings)?;
    let catalog = providers::catalog()?;
    described::settle_provider(&mut spec, &catalog, &providers::stored())?;
    passing::tell(&spec, &before, &catalog, out)?;
    let agent = keys::set_spec(&client, &args.name, &spec).await?;
    if !args.json {
        for setting in &args.settings {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            match value.is_empty() {
                true => out.line(format_args!("{key} has its default again"))?,
                false => out.line(format_args!("{key} is {value}"))?,
            }
        }
    }
    tell(&agent, args.json, out)
}

/// The settings with all changes. They are checked together: two changes may need each other.
fn changed(spec: &AgentSpec, settings: &[&str]) -> Result<AgentSpec, Error> {
    let wrong = |what: &str, why: String| {
        Error::new(Exit::Usage, format!("{what} cannot be set"))
            .because(why)
            .next("see the current settings with `agentd show NAME --spec`")
    };
    let mut changes = Vec::new();
    for setting in settings {
        let quoted = format!("`{setting}`");
        let change = setting.split_once('=');
        changes.push(change.ok_or_else(|| wrong(&quoted, "it has no `=`".to_owned()))?);
    }
    let mut why = String::new();
    for texts in 0..readings(&changes) {
        match read(spec, &changes, texts) {
            Ok(spec) => return Ok(spec),
            // The first error is about the values as JSON, which is what the user probably meant.
            Err(error) if why.is_empty() => why = error,
            Err(_) => {}
        }
    }
    let all: Vec<String> = settings.iter().map(|it| format!("`{it}`")).collect();
    Err(wrong(&all.join(", "), why))
}

/// A value that is valid JSON may be meant as text: `description=12`. The number of ways to read all of them.
fn readings(changes: &[(&str, &str)]) -> u32 {
    let is_json = |(_, value): &&(&str, &str)| serde_json::from_str::<Value>(value).is_ok();
    let ambiguous = changes.iter().filter(is_json).count().min(MOST_AMBIGUOUS);
    1 << ambiguous
}

/// Reads the changes. The bits of `texts` say which of the values that are valid JSON are taken as text.
fn read(spec: &AgentSpec, changes: &[(&str, &str)], texts: u32) -> Result<AgentSpec, String> {
    let mut object = serde_json::to_value(spec).map_err(|error| error.to_string())?;
    let mut texts = u64::from(texts);
    for (key, value) in changes {
        let json: Option<Value> = serde_json::from_str(value).ok();
        let is_text = json.is_some() && texts & 1 == 1;
        if json.is_some() {
            texts >>= 1;
        }
        let text = Value::String((*value).to_owned());
        let value = match json.filter(|_| !is_text) {
            _ if value.is_empty() => None,
            Some(json) => Some(json),
            None => Some(text),
        };
        put(&mut object, key, value);
    }
    let spec: AgentSpec = serde_json::from_value(object).map_err(|error| error.to_string())?;
    spec.validate().map_err(|error| error.to_string())?;
    Ok(spec)
}

/// Sets or removes the value at a path, and creates missing objects on the way.
fn put(object: &mut Value, path: &str, value: Option<Value>) {
    let mut at = object;
    let (way, last) = path.rsplit_once('.').unwrap_or(("", path));
    for step in way.split('.').filter(|step| !step.is_empty()) {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[step];
    }
    if !at.is_object() {
        *at = Value::Object(Map::new());
    }
    match (value, at.as_object_mut()) {
        (Some(value), Some(map)) => {
            map.insert(last.to_owned(), value);
        }
        (None, Some(map)) => {
            map.remove(last);
        }
        (_, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::spec::OnCrash;
    use agentd_core::usage::MicroUsd;

    fn set(settings: &[&str]) -> Result<AgentSpec, Error> {
        changed(&AgentSpec::default(), settings)
    }

    /// Regression: the settings of a command agent were refused in either order, because each was checked alone.
    #[test]
    fn settings_that_need_each_other_are_set_together() {
        for settings in [
            ["runtime=command", "command.program=./e.sh"],
            ["command.program=./e.sh", "runtime=command"],
        ] {
            let spec = set(&settings).unwrap();
            assert_eq!(spec.command.unwrap().program, "./e.sh");
        }
        let alone = set(&["runtime=command"]).unwrap_err();
        assert!(alone.to_string().contains("runtime=command"), "{alone}");
    }

    #[test]
    fn text_numbers_money_and_lists() {
        let spec = set(&[
            "model=gpt-5",
            "description=12",
            "limits.turn.usd=2.50",
            "limits.max_iterations=7",
            "tools=[\"shell\",\"read_file\"]",
            "on_crash=wait",
            "env.A=1",
            "system=You are brief.",
        ])
        .unwrap();
        assert_eq!(spec.model.as_deref(), Some("gpt-5"));
        assert_eq!(spec.description.as_deref(), Some("12"));
        assert_eq!(spec.limits.turn.usd, Some(MicroUsd(2_500_000)));
        assert_eq!(spec.limits.max_iterations, 7);
        assert_eq!(spec.tools.unwrap(), ["shell", "read_file"]);
        assert_eq!(spec.on_crash, OnCrash::Wait);
        assert_eq!(spec.env["A"], "1");
        assert_eq!(spec.system, "You are brief.");
    }

    #[test]
    fn nothing_puts_the_default_back() {
        let spec = set(&[
            "model=x",
            "limits.max_iterations=7",
            "model=",
            "limits.max_iterations=",
        ]);
        assert_eq!(spec.unwrap(), AgentSpec::default());
    }

    #[test]
    fn every_key_that_completion_offers_can_be_set() {
        for key in KEYS {
            let spec = set(&[&format!("{key}=")]);
            assert_eq!(spec.unwrap(), AgentSpec::default(), "{key}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_reason() {
        for (setting, why) in [
            ("modle=x", "unknown field `modle`"),
            ("model", "it has no `=`"),
            ("temperature=3", "from 0 to 2"),
            ("limits.max_iterations=many", "invalid type"),
        ] {
            let error = set(&[setting]).unwrap_err();
            assert_eq!(error.exit(), Exit::Usage);
            assert!(error.to_string().contains(why), "{setting}: {error}");
        }
    }
}
