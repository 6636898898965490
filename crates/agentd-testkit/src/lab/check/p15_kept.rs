//! The part of P15 about kept contents: they are what their events name.

use super::evidence::Event;
use super::story::Story;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// The last event that lost its content because of the limit.
pub fn purged_through(story: &Story<'_>) -> u64 {
    let purged = story.events.iter().filter(|it| it.is("purged"));
    let through = purged.filter_map(|it| it.body["files"]["through"].as_u64());
    through.max().unwrap_or_default()
}

/// Whether the parts together are the content that they name. A file may be named without its content.
pub fn has_named_content(kept: &[&Event]) -> bool {
    let Some(before) = kept.first().map(|it| &it.body["before"]) else {
        return true;
    };
    if before["type"] != "file" || before["content"]["type"] == "not_kept" {
        return true;
    }
    let parts = kept.iter().map(|it| {
        let content = &it.body["before"]["content"];
        match content["type"].as_str() {
            Some("text") => content["text"]
                .as_str()
                .map(|text| text.as_bytes().to_vec()),
            Some("base64") => STANDARD.decode(content["base64"].as_str()?).ok(),
            _ => None,
        }
    });
    let Some(parts) = parts.collect::<Option<Vec<Vec<u8>>>>() else {
        return false;
    };
    let content = parts.concat();
    before["size"].as_u64() == Some(content.len() as u64) && before["hash"] == hash_of(&content)
}

pub fn hash(text: &str) -> String {
    hash_of(text.as_bytes())
}

fn hash_of(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
