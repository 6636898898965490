//! Agents that were put away. Their names are free for others, so it is by their ids that they are asked for.

use crate::error::{Error, Exit};
use agentd_client::Client;
use agentd_client::api::List;

/// How many of one name are looked at.
const MOST: usize = 100;

/// The id of the one that was put away under this name.
pub async fn under(client: &Client, name: &str) -> Result<Option<String>, Error> {
    let list = List {
        archived: true,
        prefix: Some(name.to_owned()),
        by_name: true,
        limit: Some(MOST),
        ..List::default()
    };
    let found = client.agents(&list).await?.agents.into_iter();
    let ids: Vec<String> = found
        .filter(|agent| agent.name == name)
        .map(|agent| agent.id.to_string())
        .collect();
    match &ids[..] {
        [] => Ok(None),
        [only] => Ok(Some(only.clone())),
        several => {
            let what = format!("{} agents were put away as `{name}`", several.len());
            let next = format!("say which: {}", several.join(", "));
            Err(Error::new(Exit::Refused, what).next(next))
        }
    }
}
