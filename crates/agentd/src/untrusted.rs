//! The files of a project that agents do not use because the user has not trusted them.

use crate::terminal::QUIET;
use agentd_client::Client;
use agentd_client::api::TrustQuery;

/// One line for each file. None if they cannot be looked at: `agentd trust --show` reports why.
pub async fn lines(client: &Client, dir: Option<&str>) -> Vec<String> {
    let Some(dir) = dir else {
        return Vec::new();
    };
    let query = TrustQuery {
        dir: dir.to_owned(),
    };
    let Ok(found) = client.trust(&query).await else {
        return Vec::new();
    };
    let ignored = found.files.iter().filter(|file| !file.trusted);
    let line = |path: &str| {
        format!("{QUIET}not used: {path} is not trusted (agentd trust {dir}){QUIET:#}")
    };
    ignored.map(|file| line(&file.path)).collect()
}
