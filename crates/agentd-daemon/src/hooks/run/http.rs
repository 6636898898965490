//! A handler that is an HTTP service. The body of the request is what a command reads from stdin, and the body of the
//! response is what a command writes to stdout.

use super::{Done, Job};
use crate::daemon::Daemon;
use agentd_core::event::HookOutcome;
use agentd_core::hook::{Ended, read, read_http};
use agentd_failpoint as failpoint;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The longest response that is accepted.
const LARGEST: usize = 1024 * 1024;

pub async fn run(
    daemon: &Daemon,
    job: &Job,
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Done {
    let begin = Instant::now();
    let limit = Duration::from_millis(job.chosen.time_limit_ms(job.hook_input.event));
    let asked = tokio::time::timeout(limit, ask(daemon, job, url, headers)).await;
    let fails_closed = job.chosen.blocks_on_failure();
    let (hook_input, failed) = (&job.hook_input, |ended: Ended<'_>| {
        read(&job.hook_input, ended, "", "", fails_closed)
    });
    let (exit, answer) = match &asked {
        Err(_) => (None, failed(Ended::TimedOut)),
        Ok(Err(error)) => (None, failed(Ended::Failed(error))),
        Ok(Ok((status, body))) => {
            let answer = read_http(hook_input, *status, body, fails_closed);
            (Some(i32::from(*status)), answer)
        }
    };
    Done {
        outcome: HookOutcome::Ran,
        exit,
        timed_out: asked.is_err(),
        answer,
        duration_ms: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}

async fn ask(
    daemon: &Daemon,
    job: &Job,
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<(u16, String), String> {
    let client = daemon.hooks.client.get_or_init(|| {
        // An error means that a TLS provider is installed already: it is the same one.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder()
            // No redirects: the input and the headers are only for the address in the hooks file.
            .redirect(match failpoint::injected_bug("hook_redirects") {
                true => reqwest::redirect::Policy::limited(5),
                false => reqwest::redirect::Policy::none(),
            })
            .build()
            .ok()
    });
    let client = client.as_ref().ok_or("the HTTP client cannot be created")?;
    let mut request = client
        .post(url)
        .header("content-type", "application/json")
        .body(job.input.clone());
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let words = |error: reqwest::Error| error.to_string();
    let mut response = request.send().await.map_err(words)?;
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(words)? {
        if body.len() + chunk.len() > LARGEST {
            return Err(format!("its response has more than {LARGEST} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}
