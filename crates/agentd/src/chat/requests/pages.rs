//! The texts that are shown on a page of their own.

use crate::chat::effect::Page;
use crate::error::Error;
use crate::providers;
use crate::render::{self, hit, usage_report, word};
use crate::terminal::{HEADING, QUIET};
use crate::untrusted;
use agentd_client::Client;
use agentd_client::api::{DiffFiles, Search, UsageBy, UsageQuery};
use agentd_core::spec::{AgentSpec, Rule};
use agentd_daemon::clock;

/// How many hits of a search are shown.
const HITS: usize = 50;

/// The title and the lines of a page.
pub async fn load(client: &Client, id: &str, page: Page) -> Result<(String, Vec<String>), Error> {
    Ok(match page {
        Page::Diff(turn) => {
            let title = match &turn {
                Some(turn) => format!("What turn {turn} changed"),
                None => "What this conversation changed".to_owned(),
            };
            let ask = DiffFiles {
                turn,
                ..DiffFiles::default()
            };
            let diff = client.diff(id, &ask).await?;
            let mut lines = vec![render::files::summary(&diff), String::new()];
            lines.extend(render::files::diff(&diff));
            (title, lines)
        }
        Page::Context => {
            let agent = client.agent(id).await?;
            let context = client.context(id).await?;
            let window = providers::window(&agent);
            let mut lines = render::context::lines(&agent.name, &context, window, None);
            lines.extend(untrusted::lines(client, agent.cwd.as_deref()).await);
            ("What the model is given".to_owned(), lines)
        }
        Page::Usage => {
            let query = UsageQuery {
                agent: Some(id.to_owned()),
                by: UsageBy::Conversation,
                since: None,
            };
            let report = client.usage(&query).await?;
            ("Usage".to_owned(), usage_report::lines(&report, None))
        }
        Page::Search(words) => {
            let title = format!("Search: {words}");
            let search = Search {
                words,
                agent: Some(id.to_owned()),
                limit: Some(HITS),
                before: None,
            };
            let found = client.search(&search).await?;
            let now = clock::now();
            let hits = found.hits.iter();
            let mut lines: Vec<String> = hits.flat_map(|hit| hit::lines(hit, now)).collect();
            if lines.is_empty() {
                lines.push("nothing was found".to_owned());
            }
            if found.next.is_some() {
                lines.push(format!("{QUIET}only the newest are shown{QUIET:#}"));
            }
            (title, lines)
        }
        Page::Permissions => {
            let spec = client.spec(id).await?;
            ("Permissions".to_owned(), permissions(&spec))
        }
    })
}

fn permissions(spec: &AgentSpec) -> Vec<String> {
    let network = spec.network.as_ref();
    let network = network.map_or_else(|| "on".to_owned(), ToString::to_string);
    let sandbox = spec.sandbox.map_or_else(|| "the default".to_owned(), word);
    let mode = word(spec.approval.unwrap_or_default());
    let mut lines = vec![
        format!("approval  {mode} (Shift-Tab, or /permissions MODE)"),
        format!("sandbox   {sandbox}"),
        format!("network   {network}"),
        String::new(),
        format!("{HEADING}Rules{HEADING:#}"),
    ];
    lines.extend(spec.permissions.iter().map(rule));
    if spec.permissions.is_empty() {
        lines.push("none; the rules of the project and the user apply".to_owned());
    }
    lines
}

fn rule(rule: &Rule) -> String {
    let pattern = rule.pattern.as_deref().unwrap_or("every call");
    let needs = match rule.needs.is_empty() {
        true => String::new(),
        false => format!(", with {}", rule.needs.join(", ")),
    };
    format!("{:<6} {}: {pattern}{needs}", word(rule.decision), rule.tool)
}
