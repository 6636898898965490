//! Destinations that get no messages: webhooks of notifications and of bindings, the screen, and names that no destination
//! has.

use super::Finding;
use crate::connect;
use crate::error::Error;
use crate::providers;
use crate::service::programs::in_path;
use agentd_client::Client;
use agentd_client::api::{Binding, Daemon, FailingWebhook, List};
use agentd_core::catalog::NotifySettings;
use agentd_core::spec::Notify;
use agentd_daemon::layout::Layout;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Agents whose destinations are looked at; the most recently used ones.
const AGENTS: usize = 100;
/// The program that shows a notification.
const NOTIFY_SEND: &str = "notify-send";

pub async fn look(layout: &Layout, daemon: Option<&Daemon>) -> Result<Vec<Finding>, Error> {
    // A file of settings that cannot be read is a finding already.
    let catalog = providers::catalog();
    let settings = catalog.map(|catalog| catalog.notify().clone());
    let settings = settings.unwrap_or_default();
    let stored = providers::stored();
    let mut findings = unsigned(&settings, &stored);
    findings.extend(without_screen(&settings, in_path(NOTIFY_SEND)));
    let Some(daemon) = daemon else {
        return Ok(findings);
    };
    // A webhook without its secret is a finding already.
    let is_signed = |failing: &&FailingWebhook| {
        let webhook = settings.webhooks.get(&failing.name);
        webhook.is_none_or(|webhook| stored.contains(&webhook.secret))
    };
    let failing = daemon.failing_webhooks.iter().filter(is_signed);
    findings.extend(failing.map(of_webhook));
    let client = connect::client_at(layout.home());
    findings.extend(unknown(&client, &settings).await?);
    let bindings = client.bindings().await?.bindings;
    findings.extend(bindings.iter().filter_map(of_binding));
    Ok(findings)
}

/// Webhooks whose secret is not stored: nothing can be sent to them.
fn unsigned(settings: &NotifySettings, stored: &BTreeSet<String>) -> Vec<Finding> {
    let webhooks = settings.webhooks.iter();
    let unsigned = webhooks.filter(|(_, webhook)| !stored.contains(&webhook.secret));
    let findings = unsigned.map(|(name, webhook)| {
        let secret = &webhook.secret;
        let what = format!("webhook `{name}` gets no messages: no secret `{secret}` is stored");
        Finding::problem("webhooks", what, format!("`agentd secret set {secret}`"))
    });
    findings.collect()
}

/// Notifications on the screen that no program shows.
fn without_screen(settings: &NotifySettings, program: Option<PathBuf>) -> Option<Finding> {
    (settings.desktop && program.is_none()).then(|| {
        let what = format!(
            "no notification appears on the screen: `{NOTIFY_SEND}` is not in PATH of this shell"
        );
        let fix = "install it (on Debian: libnotify-bin) and restart the daemon, or remove `desktop` under [notify] in \
                   config.toml";
        Finding::warning("notify", what, fix)
    })
}

/// Agents that name destinations which do not exist: nothing is sent there.
async fn unknown(client: &Client, settings: &NotifySettings) -> Result<Vec<Finding>, Error> {
    let list = List {
        limit: Some(AGENTS),
        ..List::default()
    };
    let mut findings = Vec::new();
    for line in client.agents(&list).await?.agents {
        // It may have been removed meanwhile.
        let Ok(spec) = client.spec(&line.id.to_string()).await else {
            continue;
        };
        findings.extend(of_agent(&line.name, &spec.notify, settings));
    }
    Ok(findings)
}

fn of_agent(agent: &str, own: &Notify, settings: &NotifySettings) -> Option<Finding> {
    let unknown = settings.unknown(own);
    if unknown.is_empty() {
        return None;
    }
    let what = format!(
        "notify.to of `{agent}` names destinations that config.toml does not have: {}",
        unknown.join(", ")
    );
    let fix = format!(
        "add them under [notify.webhooks], or `agentd set {agent} notify.to=` for the default"
    );
    Some(Finding::warning("notify", what, fix))
}

fn of_webhook(failing: &FailingWebhook) -> Finding {
    let (name, error, attempts) = (&failing.name, &failing.error, failing.attempts);
    let what = format!("webhook `{name}` does not accept messages: {error} ({attempts} attempts)");
    let fix = format!(
        "start the service, or correct [notify.webhooks.{name}] in config.toml and restart the daemon; its messages wait"
    );
    Finding::warning("webhooks", what, fix)
}

fn of_binding(binding: &Binding) -> Option<Finding> {
    let error = binding.error.as_ref()?;
    let (address, attempts) = (&binding.address, binding.failed_attempts);
    let what = format!(
        "the webhook of `{address}` does not accept messages: {error} ({attempts} attempts)"
    );
    let fix = format!(
        "start the bridge, and its messages are delivered; or `agentd unbind {address} --now` drops them"
    );
    Some(Finding::warning("bindings", what, fix))
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;
    use agentd_core::catalog::Catalog;

    #[test]
    fn a_webhook_without_its_secret_is_a_problem() {
        let mut catalog = Catalog::built_in();
        let text =
            "[notify.webhooks.team]\nurl = \"http://127.0.0.1:9/t0ken\"\nsecret = \"TEAM\"\n";
        catalog.extend(text, "config.toml").unwrap();
        let found = unsigned(catalog.notify(), &BTreeSet::new());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].level, Level::Problem);
        assert_eq!(found[0].fix.as_deref(), Some("`agentd secret set TEAM`"));
        // The address may contain a token.
        assert!(!found[0].what.contains("t0ken"), "{found:?}");
        let stored = BTreeSet::from(["TEAM".to_owned()]);
        assert!(unsigned(catalog.notify(), &stored).is_empty());
    }

    #[test]
    fn a_screen_without_the_program_and_an_unknown_destination_are_found() {
        let settings = NotifySettings {
            desktop: true,
            ..NotifySettings::default()
        };
        let found = without_screen(&settings, None).unwrap();
        assert!(found.what.contains("notify-send"), "{found:?}");
        let program = Some(PathBuf::from("/usr/bin/notify-send"));
        assert!(without_screen(&settings, program).is_none());
        assert!(without_screen(&NotifySettings::default(), None).is_none());
        let to = |names: &[&str]| Notify {
            to: Some(names.iter().map(|&name| name.to_owned()).collect()),
            ..Notify::default()
        };
        let found = of_agent("coder", &to(&["desktop", "nosuch"]), &settings).unwrap();
        assert!(found.what.ends_with(": nosuch"), "{found:?}");
        assert!(of_agent("coder", &to(&["desktop"]), &settings).is_none());
        assert!(of_agent("coder", &Notify::default(), &settings).is_none());
    }
}
