//! Webhooks that get no messages: those of notifications, and those of bindings.

use super::Finding;
use crate::connect;
use crate::error::Error;
use crate::providers;
use agentd_client::api::{Binding, Daemon, FailingWebhook};
use agentd_core::catalog::NotifySettings;
use agentd_daemon::layout::Layout;
use std::collections::BTreeSet;

pub async fn look(layout: &Layout, daemon: Option<&Daemon>) -> Result<Vec<Finding>, Error> {
    // A file of settings that cannot be read is a finding already.
    let catalog = providers::catalog();
    let settings = catalog.map(|catalog| catalog.notify().clone());
    let mut findings = unsigned(&settings.unwrap_or_default(), &providers::stored());
    let Some(daemon) = daemon else {
        return Ok(findings);
    };
    findings.extend(daemon.failing_webhooks.iter().map(of_webhook));
    let client = connect::client_at(layout.home());
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
}
