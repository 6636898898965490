//! Outside addresses that are bound to agents.

use super::Client;
use super::transport::{escaped, of};
use crate::api::{Bind, Binding, BindingMessage, Bindings, Sent, Unbind};
use crate::error::Error;

impl Client {
    pub async fn bindings(&self) -> Result<Bindings, Error> {
        self.get("/v1/bindings").await
    }

    /// Binds an address. The same binding made twice is one.
    pub async fn bind(&self, name: &str, bind: &Bind) -> Result<Binding, Error> {
        self.post_as_it_is(&of(name, "/bindings"), bind).await
    }

    pub async fn unbind(&self, address: &str, unbind: Unbind) -> Result<Binding, Error> {
        let path = format!("/v1/bindings/{}/unbind", escaped(address));
        self.post_once(&path, &unbind).await
    }

    /// Posts a message to an address. Its id takes the place of an op.
    pub async fn post_message(
        &self,
        address: &str,
        message: &BindingMessage,
    ) -> Result<Sent, Error> {
        let path = format!("/v1/bindings/{}/messages", escaped(address));
        self.post_as_it_is(&path, message).await
    }
}
