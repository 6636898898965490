//! Our side of a connection. A server may tell us that its tools have changed, and may have a question for the user. Sampling
//! and roots are refused.

use super::asking::Asker;
use super::progress::Progress;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability, Implementation,
    ProgressNotificationParam, ProtocolVersion, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone)]
pub(super) struct Client {
    config: ClientConfig,
    changed: Arc<AtomicBool>,
    progress: Progress,
    asker: Asker,
}

impl Client {
    pub fn new(
        version: ProtocolVersion,
        changed: Arc<AtomicBool>,
        progress: Progress,
        asker: Asker,
    ) -> Self {
        let own = Implementation::new("agentd", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        let asks = ElicitationCapability::new()
            .with_form(FormElicitationCapability::default())
            .with_url(UrlElicitationCapability::default());
        capabilities.elicitation = Some(asks);
        let config = ClientConfig::new(capabilities, own);
        let config = config.with_protocol_version(version);
        Self {
            config,
            changed,
            progress,
            asker,
        }
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    #[expect(deprecated, reason = "older servers still ask for roots")]
    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        let text = "agentd does not offer roots";
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tokio::select! {
            biased;
            // The server does not want to know any more, or is gone.
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
            result = self.asker.ask_for_only_call(request) => Ok(result),
        }
    }

    async fn on_progress(
        &self,
        report: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.progress.report(report);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Relaxed);
    }
}
