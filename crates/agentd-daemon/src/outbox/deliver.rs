//! Sends one message to a webhook until it is accepted. Standard Webhooks: an id, a timestamp and a signature as headers.

use crate::clock;
use crate::daemon::Daemon;
use crate::daemon::deliveries::Failing;
use crate::ending::left;
use crate::secrets;
use crate::spawn::blocking;
use agentd_core::outbox::webhook::{
    ID, SIGNATURE, SigningKey, TIMESTAMP, backoff_ms, signature, signed_content,
};
use agentd_failpoint as failpoint;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use ring::hmac;
use std::net::IpAddr;
use std::time::Duration;

/// Time limit of one attempt.
const ATTEMPT: Duration = Duration::from_secs(10);
/// A failure is logged at the first attempt, and then each time after so many.
const LOGGED_EACH: u32 = 20;

/// Where messages are sent.
#[derive(Clone, Debug)]
pub struct Target {
    /// The name of the destination, for logs and for its file.
    pub destination: String,
    pub url: String,
    /// The name of the stored secret.
    pub secret: String,
}

/// A message and its id. The same message always has the same id.
#[derive(Clone, Debug)]
pub struct Message {
    pub id: String,
    pub body: String,
}

/// The daemon is ending: the message is sent by the next one.
#[derive(Clone, Copy, Debug)]
pub struct Left;

struct Failure {
    why: String,
    retry_after_ms: Option<u64>,
}

impl Failure {
    fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            retry_after_ms: None,
        }
    }
}

/// Sends the message, again and again with growing delays, until the webhook accepts it.
pub async fn deliver(daemon: &Daemon, target: &Target, message: &Message) -> Result<(), Left> {
    let destination = target.destination.as_str();
    let mut ending = daemon.ending();
    let mut attempts = 0;
    loop {
        failpoint::hit("before", "outbox.send");
        let attempt = tokio::time::timeout(ATTEMPT, attempt(daemon, target, message));
        let attempt = tokio::select! {
            attempt = attempt => attempt,
            () = left(&mut ending) => return Err(Left),
        };
        let failure = match attempt {
            Ok(Ok(())) => {
                failpoint::hit("after", "outbox.send");
                daemon.deliveries.works(destination);
                return Ok(());
            }
            Ok(Err(failure)) => failure,
            Err(_) => Failure::new(format!("no answer within {} s", ATTEMPT.as_secs())),
        };
        attempts += 1;
        if attempts % LOGGED_EACH == 1 {
            let why = &failure.why;
            tracing::warn!(
                destination,
                id = message.id,
                attempts,
                why,
                "message not delivered"
            );
        }
        let failing = Failing {
            attempts,
            why: failure.why,
        };
        daemon.deliveries.set_failing(destination, failing);
        let wait = Duration::from_millis(backoff_ms(attempts, spread(), failure.retry_after_ms));
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = daemon.deliveries.again.notified() => {}
            () = left(&mut ending) => return Err(Left),
        }
    }
}

/// A number from 0 to 1000.
fn spread() -> u64 {
    let mut bytes = [0; 2];
    // Without randomness all destinations wait equally long.
    let _known = getrandom::fill(&mut bytes);
    u64::from(u16::from_le_bytes(bytes)) % 1001
}

async fn attempt(daemon: &Daemon, target: &Target, message: &Message) -> Result<(), Failure> {
    let key = signing_key(daemon, &target.secret).await;
    let key = key.map_err(Failure::new)?;
    let timestamp_s = clock::now().as_millis().div_euclid(1000);
    let content = signed_content(&message.id, timestamp_s, &message.body);
    let mac = hmac::Key::new(hmac::HMAC_SHA256, key.bytes());
    let mac = hmac::sign(&mac, content.as_bytes());
    let deliveries = &daemon.deliveries;
    let client = match is_near(&target.url) {
        true => deliveries
            .near_client
            .get_or_init(|| client(builder().no_proxy())),
        false => deliveries.client.get_or_init(|| client(builder())),
    };
    let Some(client) = client else {
        return Err(Failure::new("the HTTP client cannot be created"));
    };
    let request = client
        .post(&target.url)
        .header("content-type", "application/json")
        .header(ID, &message.id)
        .header(TIMESTAMP, timestamp_s)
        .header(SIGNATURE, signature(mac.as_ref()))
        .body(message.body.clone());
    let response = request.send().await;
    let response = response.map_err(|error| Failure::new(words(&error)))?;
    // The body of the response is not read.
    match response.status() {
        status if status.is_success() => Ok(()),
        status if status.is_redirection() => Err(Failure::new(format!(
            "it answered {status}: redirects are not followed"
        ))),
        status => Err(Failure {
            why: format!("it answered {status}"),
            retry_after_ms: retry_after_ms(response.headers()),
        }),
    }
}

/// The error without the address, which may contain a token.
fn words(error: &reqwest::Error) -> String {
    match error {
        error if error.is_timeout() => "no answer in time".to_owned(),
        error if error.is_connect() => "no connection".to_owned(),
        error if error.is_builder() => "the address is not valid".to_owned(),
        _ => "the connection broke".to_owned(),
    }
}

fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(seconds.saturating_mul(1000))
}

/// Whether a webhook is on this machine. The proxy of the daemon's environment would look for it on its own machine.
fn is_near(url: &str) -> bool {
    let url = reqwest::Url::parse(url).ok();
    let Some(host) = url.as_ref().and_then(reqwest::Url::host_str) else {
        return false;
    };
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || host.ends_with(".localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}

fn builder() -> reqwest::ClientBuilder {
    // Messages are only for the address that the user gave.
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none())
}

fn client(builder: reqwest::ClientBuilder) -> Option<reqwest::Client> {
    // An error means that a TLS provider is installed already: it is the same one.
    let _chosen = rustls::crypto::ring::default_provider().install_default();
    builder.build().ok()
}

/// The key that the user stored under this name. The error never contains it.
pub async fn signing_key(daemon: &Daemon, name: &str) -> Result<SigningKey, String> {
    let layout = daemon.layout.clone();
    let stored = blocking(move || secrets::read(&layout)).await;
    let stored = stored.map_err(|error| error.to_string())?;
    let Some(secret) = stored.get(name) else {
        return Err(format!("no secret `{name}` is stored"));
    };
    SigningKey::parse(&secret.value).map_err(|error| format!("the secret `{name}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification.
    #[test]
    fn a_signature_is_that_of_the_specification() {
        let key = SigningKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let content = signed_content(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            "{\"test\": 2432232314}",
        );
        let mac = hmac::Key::new(hmac::HMAC_SHA256, key.bytes());
        let mac = hmac::sign(&mac, content.as_bytes());
        assert_eq!(
            signature(mac.as_ref()),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn webhooks_on_this_machine_are_known_by_their_addresses() {
        for near in [
            "http://127.0.0.1:9/hook",
            "http://127.8.0.1",
            "https://[::1]:8443/",
            "http://LOCALHOST:9/",
            "http://hook.localhost/",
        ] {
            assert!(is_near(near), "{near}");
        }
        for far in [
            "http://10.0.0.1/",
            "https://[2001:db8::1]/",
            "https://localhost.example/",
            "https://example.org/127.0.0.1",
            "",
        ] {
            assert!(!is_near(far), "{far}");
        }
    }

    #[test]
    fn a_service_may_ask_for_a_pause_in_seconds() {
        let mut headers = HeaderMap::new();
        assert_eq!(retry_after_ms(&headers), None);
        headers.insert(RETRY_AFTER, "7".parse().unwrap());
        assert_eq!(retry_after_ms(&headers), Some(7000));
        headers.insert(RETRY_AFTER, "tomorrow".parse().unwrap());
        assert_eq!(retry_after_ms(&headers), None);
    }
}
