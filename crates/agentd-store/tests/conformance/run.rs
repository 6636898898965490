//! Runs a test that is a future, and waits no longer than makes sense.

use std::future::Future;
use std::time::Duration;

/// Runs a test's future to its end, and no longer than a minute of silence would be of use.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(future)
}

/// Waits for something that must come soon.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .expect("nothing came within a minute")
}
