//! Requests about stored secrets.

use super::Client;
use super::transport::{Again, escaped, json, read};
use crate::api::{SetSecret, StoredSecret, StoredSecrets};
use crate::error::Error;
use hyper::Method;

impl Client {
    pub async fn secrets(&self) -> Result<StoredSecrets, Error> {
        self.get("/v1/secrets").await
    }

    /// Stores or replaces a secret. Sending it twice has the same result.
    pub async fn set_secret(&self, name: &str, set: &SetSecret) -> Result<StoredSecret, Error> {
        let path = format!("/v1/secrets/{}", escaped(name));
        let content = Some(json(set)?);
        let answer = self.whole(Method::PUT, &path, content, Again::AsItIs);
        read(&answer.await?)
    }

    pub async fn remove_secret(&self, name: &str) -> Result<StoredSecret, Error> {
        let path = format!("/v1/secrets/{}/remove", escaped(name));
        self.post_once(&path, &serde_json::json!({})).await
    }
}
