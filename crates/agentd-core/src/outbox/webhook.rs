//! Messages to webhooks, as the Standard Webhooks specification describes them: ids, what is signed, and retries.

use crate::id::{AgentId, BindingId, Seq};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use uuid::Uuid;

/// How a secret begins when it is written down.
const PREFIX: &str = "whsec_";
/// The lengths of a key that the specification allows.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// The header names of a message.
pub const ID: &str = "webhook-id";
pub const TIMESTAMP: &str = "webhook-timestamp";
pub const SIGNATURE: &str = "webhook-signature";

/// The part of an id that tells messages of an adopted copy from those of its original, which has the same agents and
/// bindings and other events under the same numbers.
fn of(copy: Option<Uuid>) -> String {
    copy.map_or_else(String::new, |home| format!("{}_", home.simple()))
}

/// The id of a notification: the same for the same event, however often it is sent. It contains no `.`, which separates
/// the parts of what is signed. `copy` is the id of the home if it is an adopted copy.
pub fn notice_id(copy: Option<Uuid>, agent: AgentId, seq: Seq) -> String {
    format!("msg_{}{}_{seq}", of(copy), agent.uuid().simple())
}

/// The id of a notification about the daemon itself.
pub fn trouble_id(home: &str, number: u64) -> String {
    let home: String = home.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("msg_{home}_trouble_{number}")
}

/// The id of a message to the webhook of a binding.
pub fn binding_message_id(copy: Option<Uuid>, binding: BindingId, seq: Seq) -> String {
    format!("bnd_{}{}_{seq}", of(copy), binding.uuid().simple())
}

/// The id of the last message of a binding that the user removed.
pub fn unbound_id(copy: Option<Uuid>, binding: BindingId) -> String {
    format!("bnd_{}{}_unbound", of(copy), binding.uuid().simple())
}

/// The id of the message that names what is not answered, before the last message of a binding, whose id is given.
pub fn unanswered_id(last: &str) -> String {
    format!("{last}_removed")
}

/// What is signed.
pub fn signed_content(id: &str, timestamp_s: i64, body: &str) -> String {
    format!("{id}.{timestamp_s}.{body}")
}

/// The value of the signature header.
pub fn signature(mac: &[u8]) -> String {
    format!("v1,{}", STANDARD.encode(mac))
}

/// The key that messages are signed with.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey(Vec<u8>);

/// Does not show the key.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

/// The stored secret cannot sign messages. Never contains the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a webhook secret is `whsec_` and 24 to 64 bytes in base64; \
     create one with: printf 'whsec_%s' \"$(openssl rand -base64 32)\""
)]
pub struct BadKey;

impl SigningKey {
    /// Reads a secret as it is stored: `whsec_` and base64.
    pub fn parse(text: &str) -> Result<Self, BadKey> {
        let text = text.trim().strip_prefix(PREFIX).ok_or(BadKey)?;
        let bytes = STANDARD.decode(text).map_err(|_| BadKey)?;
        match KEY_BYTES.contains(&bytes.len()) {
            true => Ok(Self(bytes)),
            false => Err(BadKey),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The delay before the second attempt, in milliseconds; doubled each time.
const FIRST_MS: u64 = 500;
const LONGEST_MS: u64 = 15 * 60 * 1000;

/// How long to wait after so many failed attempts in a row, in milliseconds. `spread` from 0 to 1000 makes senders that
/// failed at the same time try again at different times. A service may ask for a longer time, up to the longest one.
pub fn backoff_ms(failed: u32, spread: u64, retry_after_ms: Option<u64>) -> u64 {
    let doublings = failed.saturating_sub(1).min(20);
    let wait = (FIRST_MS << doublings).min(LONGEST_MS);
    let wait = wait - wait / 5 * spread.min(1000) / 1000;
    wait.max(retry_after_ms.unwrap_or(0)).min(LONGEST_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_that_of_its_event_and_has_no_dot() {
        let agent = AgentId::new(Uuid::from_u128(7));
        let id = notice_id(None, agent, Seq(12));
        assert_eq!(id, "msg_00000000000000000000000000000007_12");
        assert_ne!(id, notice_id(None, agent, Seq(13)));
        let binding = BindingId::new(Uuid::from_u128(7));
        let mut ids = vec![id, trouble_id("0198.a-b", 3)];
        let homes = [Uuid::from_u128(1), Uuid::from_u128(2)];
        for copy in [None, Some(homes[0]), Some(homes[1])] {
            ids.push(binding_message_id(copy, binding, Seq(12)));
            ids.push(unbound_id(copy, binding));
            ids.push(unanswered_id(&unbound_id(copy, binding)));
        }
        ids.extend(homes.map(|home| notice_id(Some(home), agent, Seq(12))));
        for id in &ids {
            assert!(!id.contains('.') && !id.contains('-'), "{id}");
        }
        let different: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(different.len(), ids.len());
    }

    #[test]
    fn the_signed_content_is_that_of_the_specification() {
        let content = signed_content(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            "{\"test\": 2432232314}",
        );
        assert_eq!(
            content,
            "msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}"
        );
        assert_eq!(signature(b"abc"), "v1,YWJj");
    }

    #[test]
    fn a_key_is_read_and_never_shown() {
        let key = SigningKey::parse(" whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        assert_eq!(key.bytes().len(), 24);
        assert_eq!(format!("{key:?}"), "SigningKey(…)");
        let short = "whsec_c2hvcnQ=";
        for wrong in [
            "",
            "whsec_",
            short,
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_%%%",
        ] {
            assert_eq!(SigningKey::parse(wrong), Err(BadKey), "{wrong}");
        }
    }

    #[test]
    fn the_delay_doubles_up_to_a_quarter_of_an_hour() {
        let delays: Vec<u64> = (1..=4).map(|failed| backoff_ms(failed, 0, None)).collect();
        assert_eq!(delays, [500, 1000, 2000, 4000]);
        assert_eq!(backoff_ms(100, 0, None), LONGEST_MS);
        assert_eq!(backoff_ms(u32::MAX, 1000, None), LONGEST_MS / 5 * 4);
        assert_eq!(backoff_ms(1, 1000, None), 400);
        assert_eq!(backoff_ms(1, 0, Some(9_000)), 9_000);
        assert_eq!(backoff_ms(1, 0, Some(u64::MAX)), LONGEST_MS);
    }
}
