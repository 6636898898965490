//! `[notify]` of the user's file: what the user is notified of, and where. A project cannot set it.

use crate::spec::{Notify, Path, Topic, is_destination};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The destination that is a notification on the screen.
pub const DESKTOP: &str = "desktop";

/// What the user is notified of, and where. Off unless a destination is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NotifySettings {
    /// Whether notifications appear on the screen, by `notify-send`.
    pub desktop: bool,
    /// The services that notifications are sent to, by name.
    pub webhooks: BTreeMap<String, Webhook>,
    /// On which topics, for agents that do not say it. Default: on all.
    pub on: Option<Vec<Topic>>,
    /// Where to, for agents that do not say it. Default: everywhere.
    pub to: Option<Vec<String>>,
}

/// A service that accepts messages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    pub url: String,
    /// The name of the secret that messages are signed with, as stored with `agentd secret set`.
    pub secret: String,
}

impl NotifySettings {
    /// The names of all destinations.
    pub fn destinations(&self) -> impl Iterator<Item = &str> {
        let desktop = self.desktop.then_some(DESKTOP);
        desktop
            .into_iter()
            .chain(self.webhooks.keys().map(String::as_str))
    }

    /// The destinations of an agent's settings that these settings do not have: nothing is sent there.
    pub fn unknown<'a>(&self, own: &'a Notify) -> Vec<&'a str> {
        let named = own.to.iter().flatten().map(String::as_str);
        let is_known = |name: &str| self.destinations().any(|known| known == name);
        named.filter(|name| !is_known(name)).collect()
    }

    /// Whether a destination is told of a topic. `own` are the settings of the agent. `is_asked`: the sender of the
    /// prompt wants it, whatever `on` says.
    pub fn tells(&self, destination: &str, topic: Topic, own: &Notify, asked: Asked) -> bool {
        let on = own.on.as_ref().or(self.on.as_ref());
        let to = own.to.as_ref().or(self.to.as_ref());
        let is_on = match on {
            Some(on) => on.contains(&topic),
            None => topic != Topic::Interrupted,
        };
        let is_on = is_on || asked == Asked::Yes;
        let is_to = to.is_none_or(|to| to.iter().any(|name| name == destination));
        is_on && is_to
    }

    /// The first key with an invalid value, and why it is invalid.
    pub(super) fn check(&self) -> Result<(), (Path, String)> {
        let root = Path::key("notify");
        for (name, webhook) in &self.webhooks {
            let path = root.clone().then("webhooks").then(name);
            if !is_destination(name) || name == DESKTOP {
                let reason = "the name of a webhook has only a-z, 0-9 and -, and is not `desktop`";
                return Err((path, reason.to_owned()));
            }
            if let Err(reason) = check_url(&webhook.url) {
                return Err((path.then("url"), reason.to_owned()));
            }
            if !crate::environment::is_name(&webhook.secret) {
                let reason =
                    "expected the name of a secret (`agentd secret set NAME`), not its value";
                return Err((path.then("secret"), reason.to_owned()));
            }
        }
        let known: Vec<&str> = self.destinations().collect();
        for (n, name) in self.to.iter().flatten().enumerate() {
            if !known.contains(&name.as_str()) {
                let reason = format!(
                    "no destination has this name; choose from: {}",
                    known.join(", ")
                );
                return Err((root.then("to").at(n), reason));
            }
        }
        Ok(())
    }
}

/// Whether the sender of a prompt wants a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Yes,
    No,
}

/// Checks the address of a webhook. Any host is allowed: the address comes from the user.
pub fn check_url(url: &str) -> Result<(), &'static str> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else {
        return Err("a webhook must begin with http:// or https://");
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Err("a webhook contains no user name and no password; messages are signed instead");
    }
    match host.is_empty() || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        true => Err("expected an address such as https://example.com/hook"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    fn read(text: &str) -> Result<NotifySettings, String> {
        let mut catalog = Catalog::built_in();
        let extended = catalog.extend(text, "config.toml");
        extended.map_err(|error| error.to_string())?;
        Ok(catalog.notify().clone())
    }

    const TEAM: &str = "[notify]\ndesktop = true\n[notify.webhooks.team]\nurl = \"http://127.0.0.1:9/x\"\nsecret = \"TEAM\"\n";

    #[test]
    fn the_file_names_destinations() {
        let settings = read(TEAM).unwrap();
        assert_eq!(
            settings.destinations().collect::<Vec<_>>(),
            ["desktop", "team"]
        );
        assert_eq!(read("").unwrap().destinations().count(), 0);
    }

    #[test]
    fn invalid_values_are_refused_with_their_line() {
        for (text, line, why) in [
            (TEAM.replace("http://", "ftp://"), "4", "http://"),
            (TEAM.replace("127", "me:pw@127"), "4", "password"),
            (
                TEAM.replace("\"TEAM\"", "\"whsec_x=\""),
                "5",
                "not its value",
            ),
            (TEAM.replace("webhooks.team", "webhooks.Team"), "3", "a-z"),
            (
                TEAM.replace("webhooks.team", "webhooks.desktop"),
                "3",
                "a-z",
            ),
            (
                "[notify]\nto = [\"elsewhere\"]\n".to_owned(),
                "2",
                "no destination",
            ),
            ("[notify]\non = [\"always\"]\n".to_owned(), "2", "completed"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(
                error.contains(why) && error.contains(line),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn an_agent_may_name_destinations_that_do_not_exist() {
        let user = read(TEAM).unwrap();
        let own = Notify {
            on: None,
            to: Some(["desktop", "nosuch", "team"].map(str::to_owned).into()),
        };
        assert_eq!(user.unknown(&own), ["nosuch"]);
        assert_eq!(user.unknown(&Notify::default()), [""; 0]);
    }

    #[test]
    fn the_agent_decides_over_the_user_and_the_sender_over_both() {
        let mut user = read(TEAM).unwrap();
        let everything = Notify::default();
        for topic in Topic::ALL {
            let is_told = user.tells("team", topic, &everything, Asked::No);
            assert_eq!(is_told, topic != Topic::Interrupted);
            assert!(user.tells("team", topic, &everything, Asked::Yes));
        }
        user.on = Some(vec![Topic::Interrupted]);
        assert!(user.tells("team", Topic::Interrupted, &everything, Asked::No));
        user.on = Some(vec![Topic::Failed]);
        assert!(!user.tells("team", Topic::Completed, &everything, Asked::No));
        assert!(user.tells("team", Topic::Completed, &everything, Asked::Yes));
        let own = Notify {
            on: Some(vec![Topic::Completed]),
            to: Some(vec!["team".to_owned()]),
        };
        assert!(user.tells("team", Topic::Completed, &own, Asked::No));
        assert!(!user.tells("team", Topic::Failed, &own, Asked::No));
        assert!(!user.tells("desktop", Topic::Completed, &own, Asked::Yes));
    }
}
