//! The models that a server lists in OpenAI's format, as Ollama, llama.cpp and vLLM do too.

use super::http::Http;
use super::{Failure, Options, SetUpError};
use agentd_core::plain;
use serde::Deserialize;
use std::time::Duration;

/// A longer name is not a model's.
const LONGEST_NAME: usize = 200;

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub enum ServedError {
    #[error(transparent)]
    SetUp(#[from] SetUpError),
    #[error(transparent)]
    Failed(#[from] Failure),
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    #[error("the server does not list its models in OpenAI's format")]
    Format(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct Listed {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    id: String,
}

/// The names of the models that a server lists, in its order. Names that no model has are left out.
pub async fn served_models(options: Options, limit: Duration) -> Result<Vec<String>, ServedError> {
    let url = format!("{}/models", options.base_url.trim_end_matches('/'));
    let http = Http::new(options)?;
    let body = tokio::time::timeout(limit, http.get(&url)).await;
    let body = body.map_err(|_| ServedError::TimedOut(limit))?;
    let listed: Listed = serde_json::from_slice(&body?)?;
    let names = listed.data.into_iter().map(|item| item.id);
    let is_name = |name: &String| {
        let is_text = |c: char| plain::is_plain(c) && !c.is_whitespace();
        !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(is_text)
    };
    Ok(names.filter(is_name).collect())
}
