//! The progress that a server reports on a call.

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The calls whose progress is followed, by the token that a call has.
#[derive(Clone, Default)]
pub(super) struct Progress(Arc<Mutex<HashMap<ProgressToken, watch::Sender<()>>>>);

impl Progress {
    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn follow(&self, token: ProgressToken) -> Following {
        let (sender, reports) = watch::channel(());
        self.calls().insert(token.clone(), sender);
        let progress = self.clone();
        Following {
            progress,
            token,
            reports,
        }
    }

    /// A token that no call has is ignored.
    pub fn report(&self, report: &ProgressNotificationParam) {
        if let Some(call) = self.calls().get(&report.progress_token) {
            call.send_replace(());
        }
    }
}

/// The progress of one call.
pub(super) struct Following {
    progress: Progress,
    token: ProgressToken,
    reports: watch::Receiver<()>,
}

impl Following {
    /// The next report. Reports that come faster than they are read count as one.
    pub async fn next(&mut self) {
        if self.reports.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.progress.calls().remove(&self.token);
    }
}
