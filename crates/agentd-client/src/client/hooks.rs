//! Requests about hooks.

use super::{Client, with_query};
use crate::api::{CheckHooks, CheckedHooks, HookList, HooksQuery, TestHooks, TestedHooks};
use crate::error::Error;

impl Client {
    pub async fn hooks(&self, query: &HooksQuery) -> Result<HookList, Error> {
        self.get(&with_query("/v1/hooks", query)?).await
    }

    pub async fn check_hooks(&self, check: &CheckHooks) -> Result<CheckedHooks, Error> {
        self.post_as_it_is("/v1/hooks/check", check).await
    }

    pub async fn test_hooks(&self, test: &TestHooks) -> Result<TestedHooks, Error> {
        self.post_once("/v1/hooks/test", test).await
    }
}
