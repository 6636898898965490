//! The progress that a server reports on a call.

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How often a report of one call is shown.
const SHOWN_EVERY: Duration = Duration::from_millis(100);

type Reports = watch::Sender<Option<ProgressNotificationParam>>;

/// The calls whose progress is followed, by the token that a call has.
#[derive(Clone, Default)]
pub(super) struct Progress(Arc<Mutex<HashMap<ProgressToken, Reports>>>);

impl Progress {
    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, Reports>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn follow(&self, token: ProgressToken) -> Following {
        let (sender, reports) = watch::channel(None);
        self.calls().insert(token.clone(), sender);
        let progress = self.clone();
        Following {
            progress,
            token,
            reports,
        }
    }

    /// A token that no call has is ignored.
    pub fn report(&self, report: ProgressNotificationParam) {
        if let Some(call) = self.calls().get(&report.progress_token) {
            call.send_replace(Some(report));
        }
    }
}

/// The progress of one call.
pub(super) struct Following {
    progress: Progress,
    token: ProgressToken,
    reports: watch::Receiver<Option<ProgressNotificationParam>>,
}

impl Following {
    /// The next report. Of reports that come faster than they are read, the newest one.
    pub async fn next(&mut self) -> Option<ProgressNotificationParam> {
        if self.reports.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.reports.borrow_and_update().clone()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.progress.calls().remove(&self.token);
    }
}

/// Which report of a call is shown next: a server may send any number of them.
#[derive(Default)]
pub(super) struct Showing {
    newest: Option<ProgressNotificationParam>,
    /// When one was shown last.
    last: Option<Instant>,
}

impl Showing {
    pub fn report(&mut self, report: Option<ProgressNotificationParam>) {
        self.newest = report;
    }

    /// Returns the next report when it is time to show it.
    pub async fn next(&mut self) -> ProgressNotificationParam {
        if self.newest.is_none() {
            std::future::pending::<()>().await;
        }
        if let Some(last) = self.last {
            tokio::time::sleep_until(last + SHOWN_EVERY).await;
        }
        match self.newest.take() {
            Some(report) => {
                self.last = Some(Instant::now());
                report
            }
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use rmcp::model::NumberOrString;

    fn report(n: u32) -> ProgressNotificationParam {
        let token = ProgressToken(NumberOrString::Number(1));
        ProgressNotificationParam::new(token, f64::from(n))
    }

    #[tokio::test]
    async fn of_many_reports_the_newest_one_is_shown() {
        let begin = Instant::now();
        let mut showing = Showing::default();
        showing.report(Some(report(1)));
        assert_eq!(showing.next().await.progress, 1.0);
        for n in 2..1000 {
            showing.report(Some(report(n)));
        }
        assert_eq!(showing.next().await.progress, 999.0);
        // Not before it is time, counted from the first one.
        assert!(begin.elapsed() >= SHOWN_EVERY);
        // There is nothing more to show.
        assert!(showing.next().now_or_never().is_none());
    }
}
