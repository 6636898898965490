//! Requests about trusted files of projects.

use super::{Client, with_query};
use crate::api::{ProjectTrust, Trust, TrustQuery};
use crate::error::Error;

impl Client {
    pub async fn trust(&self, query: &TrustQuery) -> Result<ProjectTrust, Error> {
        self.get(&with_query("/v1/trust", query)?).await
    }

    pub async fn set_trust(&self, trust: &Trust) -> Result<ProjectTrust, Error> {
        self.post_as_it_is("/v1/trust", trust).await
    }
}
