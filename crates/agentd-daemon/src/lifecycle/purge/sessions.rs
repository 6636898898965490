//! What an agent's program keeps of a conversation outside of the home that agentd gives it.

use crate::confine;
use crate::daemon::Daemon;
use crate::spawn::blocking;
use agentd_client::api::LeftSession;
use agentd_core::id::{AgentId, ConversationId};
use agentd_core::spec::{AgentSpec, Runtime, Sandbox};
use serde_json::Value;
use std::fs;

/// The file of a conversation that names the program's session.
const SESSION: &str = "acp-session";

/// The sessions that a purge of these conversations leaves to the program, as far as they are known.
pub async fn left(
    daemon: &Daemon,
    agent: AgentId,
    spec: &AgentSpec,
    conversations: &[ConversationId],
) -> Vec<LeftSession> {
    let places = places(spec, daemon.default_level().as_deref());
    let program = spec.command.as_ref().map(|command| command.program.clone());
    let Some(program) = program.filter(|_| spec.runtime == Runtime::Acp && !places.is_empty())
    else {
        return Vec::new();
    };
    let dirs: Vec<_> = conversations
        .iter()
        .map(|&conversation| (conversation, daemon.layout.outer_dir(agent, conversation)))
        .collect();
    blocking(move || {
        let left = dirs.into_iter().filter_map(|(conversation, dir)| {
            let kept = fs::read_to_string(dir.join(SESSION)).ok()?;
            Some(LeftSession {
                conversation,
                program: program.clone(),
                session: session(&kept)?,
                places: places.clone(),
            })
        });
        left.collect()
    })
    .await
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
    // The program has chosen it.
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    (!id.is_empty()).then(|| id.chars().map(plain).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_an_id() {
        assert_eq!(session("20261117_1").as_deref(), Some("20261117_1"));
        assert_eq!(
            session(r#"{"session":"a\u001bb","prompted":true}"#).as_deref(),
            Some("a\u{fffd}b")
        );
        assert_eq!(session(r#"{"prompted":true}"#), None);
        assert_eq!(session(""), None);
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
