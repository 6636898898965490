//! Requests about backups.

use super::Client;
use super::transport::json;
use crate::api::{BackUp, Backup, BackupProgress};
use crate::error::{Error, Problem};
use futures_util::StreamExt as _;
use serde::de::DeserializeOwned;
use sse_stream::SseStream;

impl Client {
    /// Makes a backup. It is cancelled if this future is dropped, and is not made again if the daemon dies.
    pub async fn back_up(
        &self,
        ask: &BackUp,
        mut progress: impl FnMut(BackupProgress),
    ) -> Result<Backup, Error> {
        let body = self.post_stream("/v1/backups", json(ask)?).await?;
        let mut items = SseStream::new(body);
        loop {
            let item = match items.next().await {
                Some(Ok(item)) => item,
                Some(Err(error)) => return Err(Error::Broken(error.to_string())),
                None => return Err(Error::Broken("the stream was cut off".to_owned())),
            };
            let data = item.data.unwrap_or_default();
            match item.event.as_deref() {
                Some("progress") => progress(read(&data)?),
                Some("end") => return read(&data),
                Some("problem") => {
                    let problem: Problem = read(&data)?;
                    return Err(Error::Problem(Box::new(problem)));
                }
                // A comment, or an item that a newer daemon sends.
                _ => {}
            }
        }
    }
}

fn read<T: DeserializeOwned>(data: &str) -> Result<T, Error> {
    serde_json::from_str(data).map_err(|error| Error::Strange(error.to_string()))
}
