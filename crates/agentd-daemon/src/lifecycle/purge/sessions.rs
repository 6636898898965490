//! What an agent's program keeps of a conversation outside of the home that agentd gives it.

use crate::confine;
use crate::daemon::Daemon;
use crate::spawn::blocking;
use agentd_client::api::{DeletedSession, LeftSession};
use agentd_core::id::{AgentId, ConversationId};
use agentd_core::outer::acp::SESSION_FILE;
use agentd_core::plain::only_plain;
use agentd_core::spec::{AgentSpec, Runtime, Sandbox};
use serde_json::Value;
use std::fs;

/// How many characters of a reason are shown: it may be the program's.
const LONGEST_WHY: usize = 1000;

/// The sessions of the program in the conversations that are purged, as far as they are known.
#[derive(Default)]
pub struct Sessions {
    program: String,
    /// Where the program can write besides its home.
    places: Vec<String>,
    /// With the program's own ids.
    pub known: Vec<(ConversationId, String)>,
}

impl Sessions {
    pub async fn of(
        daemon: &Daemon,
        agent: AgentId,
        spec: &AgentSpec,
        conversations: &[ConversationId],
    ) -> Self {
        let program = spec.command.as_ref().map(|command| command.program.clone());
        let Some(program) = program.filter(|_| spec.runtime == Runtime::Acp) else {
            return Self::default();
        };
        let dirs: Vec<_> = conversations
            .iter()
            .map(|&conversation| (conversation, daemon.layout.outer_dir(agent, conversation)))
            .collect();
        let known = blocking(move || {
            let known = dirs.into_iter().filter_map(|(conversation, dir)| {
                let kept = fs::read_to_string(dir.join(SESSION_FILE)).ok()?;
                Some((conversation, session(&kept)?))
            });
            known.collect()
        });
        Self {
            program,
            places: places(spec, daemon.default_level().as_deref()),
            known: known.await,
        }
    }

    /// What a purge leaves to the program, unless the program deletes it.
    pub fn left(&self) -> Vec<LeftSession> {
        let known = self.known.iter();
        let left = known.filter_map(|(conversation, id)| self.not_offered(*conversation, id));
        left.collect()
    }

    /// The program does not delete sessions. If all that it could write is in its home, nothing is left.
    pub fn not_offered(&self, conversation: ConversationId, id: &str) -> Option<LeftSession> {
        let left = LeftSession {
            why: None,
            ..self.failed(conversation, id, String::new())
        };
        (!left.places.is_empty()).then_some(left)
    }

    /// The program was not asked, or did not delete the session: it may be outside of its home, such as on a service.
    pub fn failed(&self, conversation: ConversationId, id: &str, why: String) -> LeftSession {
        LeftSession {
            conversation,
            program: self.program.clone(),
            session: shown(id),
            places: self.places.clone(),
            why: Some(only_plain(&why).chars().take(LONGEST_WHY).collect()),
        }
    }

    pub fn deleted(&self, conversation: ConversationId, id: &str) -> DeletedSession {
        DeletedSession {
            conversation,
            program: self.program.clone(),
            session: shown(id),
        }
    }
}

/// Where the program can write, besides its own home, which a purge deletes, and the work tree.
fn places(spec: &AgentSpec, default_level: Option<&str>) -> Vec<String> {
    match confine::level(spec, default_level) {
        Ok(Sandbox::FullAccess) => vec!["~".to_owned()],
        _ => spec.writable.clone(),
    }
}

/// The program's own id of its session: the content of the file, or of its field.
fn session(kept: &str) -> Option<String> {
    let id = match serde_json::from_str::<Value>(kept) {
        Ok(Value::Object(fields)) => fields.get("session")?.as_str()?.to_owned(),
        _ => kept.to_owned(),
    };
    (!id.is_empty()).then_some(id)
}

/// The program has chosen the id.
fn shown(id: &str) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    id.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_an_id() {
        assert_eq!(session("20261117_1").as_deref(), Some("20261117_1"));
        assert_eq!(
            session(r#"{"session":"a\u001bb","prompted":true}"#).as_deref(),
            Some("a\u{1b}b")
        );
        assert_eq!(shown("a\u{1b}b"), "a\u{fffd}b");
        assert_eq!(session(r#"{"prompted":true}"#), None);
        assert_eq!(session(""), None);
    }

    #[test]
    fn without_other_places_only_a_failure_leaves_a_session() {
        let conversation = ConversationId::new(uuid::Uuid::nil());
        let mut sessions = Sessions {
            known: vec![(conversation, "s-1".to_owned())],
            ..Sessions::default()
        };
        assert!(sessions.left().is_empty());
        let failed = sessions.failed(conversation, "s-1", "no answer".to_owned());
        assert_eq!(failed.why.as_deref(), Some("no answer"));
        sessions.places = vec!["/data".to_owned()];
        let left = sessions.left();
        assert_eq!(left[0].places, ["/data"]);
        assert_eq!((left.len(), left[0].why.as_deref()), (1, None));
    }

    #[test]
    fn a_program_in_a_sandbox_writes_only_where_it_may() {
        let mut spec = AgentSpec::default();
        assert_eq!(places(&spec, None), [""; 0]);
        assert_eq!(places(&spec, Some("full-access")), ["~"]);
        spec.writable = vec!["/data".to_owned()];
        assert_eq!(places(&spec, None), ["/data"]);
        spec.sandbox = Some(Sandbox::FullAccess);
        assert_eq!(places(&spec, None), ["~"]);
    }
}
