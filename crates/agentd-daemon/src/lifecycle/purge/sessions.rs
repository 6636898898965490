//! What an agent's program keeps of a conversation outside of the home that agentd gives it.

use crate::confine;
use crate::daemon::Daemon;
use crate::spawn::blocking;
use agentd_client::api::{DeletedSession, LeftSession};
use agentd_core::id::{AgentId, ConversationId};
use agentd_core::outer::acp::SESSION_FILE;
use agentd_core::plain::only_plain;
use agentd_core::spec::{AgentSpec, Runtime, Sandbox};
use agentd_files::own;
use serde_json::Value;

/// How many characters of a reason are shown: it may be the program's.
const LONGEST_WHY: usize = 1000;
/// The program of a session whose agent has other settings now, which do not name it.
const FORMER: &str = "a former program of the agent";
/// Why such a program is not asked.
const CHANGED: &str = "the agent's settings do not name the program any more";

/// The sessions of the program in the conversations that are purged, as far as they are known.
#[derive(Default)]
pub struct Sessions {
    program: String,
    /// Where the program can write besides its home.
    places: Vec<String>,
    /// The agent has another runtime now: its program, if there is one, knows nothing of the sessions.
    pub has_changed: bool,
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
        let command = spec.command.as_ref();
        let command = command.filter(|_| spec.runtime == Runtime::Acp);
        let dirs: Vec<_> = conversations
            .iter()
            .map(|&conversation| (conversation, daemon.layout.outer_dir(agent, conversation)))
            .collect();
        let known = blocking(move || {
            let known = dirs.into_iter().flat_map(|(conversation, dir)| {
                let kept = own::read_to_string(dir.join(SESSION_FILE)).unwrap_or_default();
                let ids = sessions(&kept).into_iter();
                ids.map(move |id| (conversation, id))
            });
            known.collect()
        });
        Self {
            program: command.map_or(FORMER, |it| it.program.as_str()).to_owned(),
            has_changed: command.is_none(),
            places: places(spec, daemon.default_level().as_deref()),
            known: known.await,
        }
    }

    /// What a purge leaves to the program, unless the program deletes it.
    pub fn left(&self) -> Vec<LeftSession> {
        let known = self.known.iter();
        let left = known.filter_map(|(conversation, id)| match self.has_changed {
            true => Some(self.failed(*conversation, id, CHANGED.to_owned())),
            false => self.not_offered(*conversation, id),
        });
        left.collect()
    }

    /// Whether the agent's program can be asked to delete its sessions; an error is for users.
    pub fn check_program(&self) -> Result<(), String> {
        match self.has_changed {
            true => Err(CHANGED.to_owned()),
            false => Ok(()),
        }
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

/// The program's own ids of its sessions, the newest last: the content of the file, or of its fields.
fn sessions(kept: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut ids: Vec<String> = match serde_json::from_str::<Value>(kept) {
        Ok(Value::Object(fields)) => {
            let earlier = fields.get("earlier").and_then(Value::as_array);
            let newest = fields.get("session");
            let all = earlier.into_iter().flatten().chain(newest);
            all.filter_map(text).collect()
        }
        _ => vec![kept.to_owned()],
    };
    ids.retain(|id| !id.is_empty());
    ids
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
        assert_eq!(sessions("20261117_1"), ["20261117_1"]);
        assert_eq!(
            sessions(r#"{"session":"a\u001bb","prompted":true}"#),
            ["a\u{1b}b"]
        );
        assert_eq!(shown("a\u{1b}b"), "a\u{fffd}b");
        assert_eq!(
            sessions(r#"{"session":"s-3","given_up":true,"earlier":["s-1","s-2"]}"#),
            ["s-1", "s-2", "s-3"]
        );
        assert_eq!(sessions(r#"{"prompted":true}"#), [""; 0]);
        assert_eq!(sessions(""), [""; 0]);
    }

    /// `agentd set` may have chosen another runtime since.
    #[test]
    fn a_session_of_a_former_program_is_named_and_not_deleted() {
        let conversation = ConversationId::new(uuid::Uuid::nil());
        let sessions = Sessions {
            program: FORMER.to_owned(),
            has_changed: true,
            known: vec![(conversation, "s-1".to_owned())],
            ..Sessions::default()
        };
        assert!(sessions.check_program().is_err());
        let left = sessions.left();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].why.as_deref(), Some(CHANGED));
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
