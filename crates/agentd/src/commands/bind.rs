//! `agentd bind`.

use crate::complete;
use crate::connect;
use crate::error::{Error, Exit};
use crate::output::Output;
use agentd_client::api::{Bind, Binding};
use agentd_core::outbox::binding::Release;
use std::collections::BTreeSet;

const EXAMPLES: &str = "\
Examples:
  agentd bind coder chat:team/42 --webhook http://127.0.0.1:8099/ --secret CHAT_HOOK
  agentd bind coder issue:org/repo#7 --webhook https://bridge.example/agentd --secret BRIDGE --release-on reset,rm

A message that is posted to the address (POST /v1/bindings/ADDRESS/messages) prompts the agent. Its answer is sent to \
the webhook, signed with the stored secret. A message never answers an approval. A binding belongs to this \
installation: an export does not contain it.";

/// Bind an outside address, such as a chat thread, to an agent
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// The address: `scheme:anything`
    address: String,
    /// Where answers are sent
    #[arg(long, value_name = "URL")]
    webhook: String,
    /// The stored secret that messages are signed with (`agentd secret set NAME`)
    #[arg(long, value_name = "NAME", add = complete::stored_secrets())]
    secret: String,
    /// Which changes of the agent end the binding
    #[arg(
        long,
        value_name = "WHEN",
        value_delimiter = ',',
        default_value = "rm",
        value_parser = release
    )]
    release_on: Vec<Option<Release>>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// `never`, or a change of the agent.
fn release(text: &str) -> Result<Option<Release>, String> {
    match text {
        "never" => Ok(None),
        "reset" => Ok(Some(Release::Reset)),
        "rename" => Ok(Some(Release::Rename)),
        "rm" => Ok(Some(Release::Rm)),
        _ => Err("expected reset, rename, rm, several of them with commas, or never".to_owned()),
    }
}

/// The policy. `never` excludes every change.
fn policy(chosen: &[Option<Release>]) -> Result<BTreeSet<Release>, Error> {
    let changes: BTreeSet<Release> = chosen.iter().copied().flatten().collect();
    match chosen.contains(&None) && !changes.is_empty() {
        true => Err(Error::new(
            Exit::Usage,
            "`--release-on never` excludes reset, rename and rm",
        )
        .next("write either `never`, or the changes that end the binding")),
        false => Ok(changes),
    }
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let release_on = policy(&args.release_on)?;
    let bind = Bind {
        address: args.address.clone(),
        webhook: args.webhook.clone(),
        secret: args.secret.clone(),
        release_on,
    };
    let client = connect::client().await?;
    let binding = client.bind(&args.name, &bind).await?;
    if args.json {
        return out.json(&binding);
    }
    let Binding { address, agent, .. } = &binding;
    let name = agent.name.as_deref().unwrap_or(&args.name);
    out.line(format_args!("{address} is bound to {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: `never,rm` was stored as `rm`.
    #[test]
    fn never_excludes_every_change() {
        let of = |words: &[&str]| {
            let chosen: Result<Vec<_>, _> = words.iter().map(|word| release(word)).collect();
            policy(&chosen.unwrap()).ok()
        };
        assert_eq!(of(&["never"]), Some(BTreeSet::new()));
        let both = BTreeSet::from([Release::Reset, Release::Rm]);
        assert_eq!(of(&["rm", "reset"]), Some(both));
        assert_eq!(of(&["never", "rm"]), None);
        assert_eq!(of(&["rm", "never"]), None);
    }
}
