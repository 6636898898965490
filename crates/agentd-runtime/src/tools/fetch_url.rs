//! `fetch_url`: fetches text from the web. An agent has it only if its spec names it.

mod reach;

use super::blocking::{self, Cancelled};
use super::context::{CallOf, ToolContext};
use super::escalate::Escalation;
use super::failure::{Failure, said};
use super::output::{self, number};
use super::tool::{Job, Tool};
use super::traits::Traits;
use crate::tls;
use agentd_core::approval::Ruling;
use agentd_core::message::CallOutcome;
use agentd_core::permission::Subject;
use agentd_core::turn::Finished;
use agentd_failpoint as failpoint;
use async_trait::async_trait;
use futures_util::StreamExt as _;
use reach::{Reach, Resolver};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

const MAX_BYTES: usize = 5 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: usize = 5;

pub(super) struct FetchUrl;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    url: String,
}

#[async_trait]
impl Tool for FetchUrl {
    const NAME: &'static str = "fetch_url";
    const TRAITS: Traits = Traits {
        parallel: true,
        idempotent: true,
        approval: true,
    };
    type Arguments = Arguments;

    fn description() -> String {
        "Fetches text from an http or https URL with GET, and returns the HTTP status and the body unchanged: \
         HTML stays HTML. Prefer pages in plain text or Markdown. Only text is returned; to download a file, use \
         shell."
            .into()
    }

    fn parameters() -> Value {
        json!({
            "type": "object",
            "properties": {
                "url": {"type": "string", "description": "An http:// or https:// URL."}
            },
            "required": ["url"],
            "additionalProperties": false
        })
    }

    fn subjects(_context: &ToolContext, arguments: &Arguments) -> Result<Vec<Subject>, Failure> {
        Ok(vec![subject(&arguments.address()?)])
    }

    async fn run(job: Job<Arguments>, mut cancelled: Cancelled) -> Finished {
        tokio::select! {
            biased;
            () = cancelled.wait() => blocking::interrupted(),
            result = fetch(&job) => result.unwrap_or_else(Finished::from),
        }
    }
}

impl Arguments {
    fn address(&self) -> Result<Url, Failure> {
        let url = self.url.trim().parse::<Url>();
        let url =
            url.map_err(|error| Failure::new(format!("`url` is not a valid URL: {error}.")))?;
        match url.scheme() {
            "http" | "https" => Ok(url),
            other => Err(Failure::new(format!(
                "`url` has the scheme {other}; only http and https URLs can be fetched."
            ))),
        }
    }
}

/// The normalised URL, not the text that the model wrote: `HTTP://A.b:80/../c` is `http://a.b/c`.
fn subject(url: &Url) -> Subject {
    Subject::name(url.as_str())
}

async fn fetch(job: &Job<Arguments>) -> Result<Finished, Failure> {
    if job.context.has_no_network() && !failpoint::injected_bug("fetch_anywhere") {
        let text = "The network is off for this agent; nothing was fetched.";
        return Err(Failure::new(text));
    }
    let response = followed(&job.context, job.arguments.address()?).await?;
    let status = response.status();
    let kind = kind(&response);
    let mut head = format!("{} {status}", response.url());
    if !is_text(&kind) {
        let text = format!("{head}\nThe content type is {kind}; only text is returned.");
        return Ok(said(CallOutcome::Error, text));
    }
    let (body, whole) = body(response).await?;
    if !whole {
        let most = number(MAX_BYTES as u64);
        head.push_str(&format!("\n[only the first {most} bytes were fetched]"));
    }
    let text = String::from_utf8_lossy(&body).into_owned();
    let (context, call) = (Arc::clone(&job.context), job.call.clone());
    let text = blocking::whole(move || output::capped(&context, &call, &text)).await?;
    let outcome = match status.is_success() {
        true => CallOutcome::Ok,
        false => CallOutcome::Error,
    };
    Ok(said(outcome, format!("{head}\n{text}")))
}

/// The response at the end of all redirects. Each target is checked before its request is sent, to it or to a proxy.
async fn followed(context: &ToolContext, first: Url) -> Result<Response, Failure> {
    let reach = Reach::of(context);
    let mut url = first.clone();
    for _ in 0..=MAX_REDIRECTS {
        reach.check(&url).await?;
        let response = client(&reach, &url)?.get(url).send().await;
        let response = response.map_err(|error| cannot(&error))?;
        let Some(next) = target(&response) else {
            return Ok(response);
        };
        check_redirect(context, &first, &next)?;
        url = next;
    }
    Err(Failure::new(format!(
        "The URL could not be fetched: more than {MAX_REDIRECTS} redirects."
    )))
}

/// A client for one URL, which follows no redirect.
fn client(reach: &Reach, url: &Url) -> Result<Client, Failure> {
    let tls = tls::config();
    let tls = tls.map_err(|error| Failure::new(format!("Cannot set up TLS: {error}.")))?;
    let client = Client::builder()
        .tls_backend_preconfigured(tls)
        .timeout(PATIENCE)
        .redirect(Policy::none());
    // A proxy would look for this machine on its own.
    let client = match reach::is_this_machine(url) {
        true => client.no_proxy(),
        false => client,
    };
    let client = match reach {
        Reach::Everything => client,
        reach => client.dns_resolver(Arc::new(Resolver::new(reach.clone(), url))),
    };
    client.build().map_err(|error| cannot(&error))
}

/// Where a response redirects to. One without a usable target is shown as it is.
fn target(response: &Response) -> Option<Url> {
    const REDIRECTS: &[u16] = &[301, 302, 303, 307, 308];
    if !REDIRECTS.contains(&response.status().as_u16()) {
        return None;
    }
    let target = response.headers().get(LOCATION)?.to_str().ok()?;
    let target = response.url().join(target).ok()?;
    matches!(target.scheme(), "http" | "https").then_some(target)
}

/// The target of a redirect needs the same permission as the URL of the call.
fn check_redirect(context: &ToolContext, first: &Url, next: &Url) -> Result<(), Failure> {
    if failpoint::injected_bug("redirects_unruled") {
        return Ok(());
    }
    let ruling = |url: &Url| {
        context.rule(&CallOf {
            tool: FetchUrl::NAME,
            traits: FetchUrl::TRAITS,
            subjects: &[subject(url)],
            escalation: &Escalation::None,
            may_be_covered: false,
        })
    };
    let asked = matches!(ruling(first), Ruling::Ask(_));
    match ruling(next) {
        Ruling::Run => Ok(()),
        // The user's approval of one URL covers redirects within the same host.
        Ruling::Ask(_) if asked && first.host_str() == next.host_str() => Ok(()),
        Ruling::Ask(_) | Ruling::Refuse(_) => Err(Failure::new(format!(
            "The URL could not be fetched: it redirects to {next}, which needs a separate call."
        ))),
    }
}

fn kind(response: &Response) -> String {
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or("text/plain");
    let kind = kind.split(';').next().unwrap_or(kind);
    kind.trim().to_ascii_lowercase()
}

fn is_text(kind: &str) -> bool {
    const TEXTS: &[&str] = &[
        "json",
        "xml",
        "javascript",
        "ecmascript",
        "yaml",
        "toml",
        "x-sh",
    ];
    let sub = kind.rsplit(['/', '+']).next().unwrap_or(kind);
    kind.starts_with("text/") || TEXTS.contains(&sub) || sub == "x-ndjson"
}

/// The body, and whether it is complete.
async fn body(response: Response) -> Result<(Vec<u8>, bool), Failure> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk.map_err(|error| cannot(&error))?);
        if body.len() > MAX_BYTES {
            body.truncate(MAX_BYTES);
            return Ok((body, false));
        }
    }
    Ok((body, true))
}

/// The text of the HTTP client names the URL and not the reason, so the causes are used instead.
fn cannot(error: &reqwest::Error) -> Failure {
    let mut text = "The URL could not be fetched".to_owned();
    let mut source = error.source();
    if source.is_none() {
        text = format!("{text}: {error}");
    }
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    Failure::new(text + ".")
}

#[cfg(test)]
mod tests;
