//! What a call gets beyond its sandbox if it is approved, in words.

use crate::spawn::blocking;
use agentd_client::api::{self, Env};
use agentd_core::needs::{self, At, Need, Places};
use agentd_core::spec::AgentSpec;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Empty if the call does not say what it needs.
pub async fn of(spec: &AgentSpec, env: &Env, input: &Value) -> Vec<api::Need> {
    let Some(entries) = input.get(needs::NEEDS).and_then(Value::as_array) else {
        return Vec::new();
    };
    let entries = entries.iter().filter_map(Value::as_str);
    let entries: Vec<String> = entries.map(str::to_owned).collect();
    let cwd = PathBuf::from(spec.cwd.as_deref().unwrap_or("/"));
    let home = env.get("HOME").map(PathBuf::from);
    blocking(move || shown(&entries, &cwd, home.as_deref())).await
}

fn shown(entries: &[String], cwd: &Path, home: Option<&Path>) -> Vec<api::Need> {
    let cwd = fs::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
    let home = home.and_then(|home| fs::canonicalize(home).ok());
    let places = Places {
        cwd: &cwd,
        home: home.as_deref(),
    };
    // The runtime has refused a call with other entries.
    let needs = needs::parse(entries, places).unwrap_or_default();
    let shown = needs.iter().map(|need| {
        let at = at(need);
        let danger = need.danger(at, places.home);
        api::Need {
            need: need.to_string(),
            words: need.words(at),
            danger: danger.map(|danger| danger.words().to_owned()),
        }
    });
    shown.collect()
}

fn at(need: &Need) -> At {
    let found = need.path().map(fs::symlink_metadata);
    match found {
        Some(Ok(found)) if found.is_dir() => At::Dir,
        Some(Ok(found)) if found.file_type().is_socket() => At::Socket,
        Some(Err(_)) => At::Missing,
        Some(Ok(_)) | None => At::File,
    }
}
