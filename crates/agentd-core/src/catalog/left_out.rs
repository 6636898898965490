//! The user's file as a backup has it: without the addresses of webhooks, because those of many services contain a token.

use std::cmp::Reverse;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Stands in the place of an address. It leads nowhere.
pub const LEFT_OUT: &str = "https://left-out-of-the-backup.invalid/";

/// The text without the addresses of webhooks; all else is as it was. None if it is not TOML, so that their places are not
/// known.
pub fn without_addresses(text: &str) -> Option<String> {
    let root = DeTable::parse(text).ok()?;
    let mut places = addresses(root.get_ref());
    // From the end: the places before it stay where they are.
    places.sort_by_key(|place| Reverse(place.start));
    let mut left = text.to_owned();
    for place in places {
        left.replace_range(place, &format!("\"{LEFT_OUT}\""));
    }
    Some(left)
}

/// Where the values of `notify.webhooks.*.url` are.
fn addresses(root: &DeTable<'_>) -> Vec<Range<usize>> {
    let notify = root.get("notify").map(|value| value.get_ref());
    let Some(DeValue::Table(notify)) = notify else {
        return Vec::new();
    };
    let webhooks = notify.get("webhooks").map(|value| value.get_ref());
    let Some(DeValue::Table(webhooks)) = webhooks else {
        return Vec::new();
    };
    let mut places = Vec::new();
    for webhook in webhooks.values() {
        if let DeValue::Table(webhook) = webhook.get_ref() {
            places.extend(webhook.get("url").map(|url| url.span()));
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_left_out_however_they_are_written() {
        for text in [
            "[notify.webhooks.team]\nurl = \"https://x.example/T0KEN\" # mine\nsecret = \"S\"\n",
            "[notify]\nwebhooks.team = { secret = \"S\", url = 'https://x.example/T0KEN' }\n",
            "notify.webhooks.team.url = \"\"\"https://x.example/T0KEN\"\"\"\nnotify.webhooks.team.secret = \"S\"\n",
            "[notify.webhooks]\na = {url=\"https://ü.example/T0KEN\",secret=\"S\"}\nb = {url=\"https://x.example/T0KEN\",secret=\"S\"}\n",
        ] {
            let left = without_addresses(text).unwrap();
            assert!(!left.contains("T0KEN"), "{left}");
            let (had, has) = (text.matches("T0KEN"), left.matches(LEFT_OUT));
            assert_eq!(had.count(), has.count(), "{left}");
            assert_eq!(left.contains("# mine"), text.contains("# mine"));
            // It can still be read, and read once more.
            let mut catalog = crate::catalog::Catalog::built_in();
            catalog.extend(&left, "config.toml").unwrap();
            assert_eq!(without_addresses(&left).unwrap(), left);
        }
    }

    #[test]
    fn everything_else_stays() {
        let text = "# url = 1\n[providers.lab]\nwire = \"openai_chat\"\nbase_url = \"http://lab.example/v1\"\n[notify]\ndesktop = true\n";
        assert_eq!(without_addresses(text).as_deref(), Some(text));
        assert_eq!(without_addresses("").as_deref(), Some(""));
        assert_eq!(without_addresses("[notify"), None);
    }
}
