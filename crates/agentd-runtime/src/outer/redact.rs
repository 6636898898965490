//! Secrets in what a child says: none reaches the journal, however the child divides its words.

use agentd_core::digest::sha256;
use agentd_core::mcp::Question;
use agentd_core::message::Block;
use agentd_core::outer::{ChildEvent, Over};
use agentd_core::secrets::Secrets;
use agentd_process::Redactor;
use serde_json::{Map, Value};

/// How much text is handled at once.
const PIECE: usize = 64 * 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

/// Removes secrets from events. Text that could be the beginning of a secret is held back until more is known.
pub struct Redacted {
    secrets: Secrets,
    redactor: Redactor,
    /// What the text that is held back belongs to.
    last: Option<Kind>,
    /// The beginning of a character whose end is in the next piece.
    split: Vec<u8>,
}

impl Redacted {
    pub fn new(secrets: &Secrets) -> Self {
        Self {
            redactor: Redactor::new(&secrets.values()),
            secrets: secrets.clone(),
            last: None,
            split: Vec::new(),
        }
    }

    /// What can be passed on now.
    pub fn pass(&mut self, event: ChildEvent) -> Vec<ChildEvent> {
        let (kind, text) = match event {
            ChildEvent::Text(text) => (Kind::Text, text),
            ChildEvent::Thinking(text) => (Kind::Thinking, text),
            other => {
                let mut said: Vec<ChildEvent> = self.finish().into_iter().collect();
                said.push(self.whole(other));
                return said;
            }
        };
        let mut said = Vec::new();
        if self.last != Some(kind) {
            said.extend(self.finish());
        }
        self.last = Some(kind);
        // A large text is not copied as a whole.
        for piece in text.as_bytes().chunks(PIECE) {
            let mut clean = std::mem::take(&mut self.split);
            self.redactor.push(piece, &mut clean);
            let whole = whole_characters(&clean);
            self.split = clean.split_off(whole);
            said.extend(event_of(kind, &clean));
        }
        said
    }

    /// What was held back.
    pub fn finish(&mut self) -> Option<ChildEvent> {
        let kind = self.last.take()?;
        let mut clean = std::mem::take(&mut self.split);
        self.redactor.finish(&mut clean);
        self.redactor = Redactor::new(&self.secrets.values());
        event_of(kind, &clean)
    }

    /// An event that is complete in itself.
    fn whole(&self, event: ChildEvent) -> ChildEvent {
        match event {
            ChildEvent::Call {
                id,
                name,
                arguments,
                is_pending,
            } => ChildEvent::Call {
                id: self.id(id),
                name: self.secrets.redact(&name),
                arguments: self.arguments(arguments),
                is_pending,
            },
            ChildEvent::CallChanged {
                id,
                name,
                arguments,
            } => ChildEvent::CallChanged {
                id: self.id(id),
                name: self.secrets.redact(&name),
                arguments: self.arguments(arguments),
            },
            ChildEvent::Asks {
                id,
                name,
                arguments,
                question,
            } => ChildEvent::Asks {
                id: self.id(id),
                name: self.secrets.redact(&name),
                arguments: self.arguments(arguments),
                question,
            },
            ChildEvent::Elicits { id, question } => ChildEvent::Elicits {
                id,
                question: self.question(question),
            },
            ChildEvent::CallEnded {
                id,
                outcome,
                blocks,
            } => ChildEvent::CallEnded {
                id: self.id(id),
                outcome,
                blocks: blocks.into_iter().map(|block| self.block(block)).collect(),
            },
            ChildEvent::CallBegan { id } => ChildEvent::CallBegan { id: self.id(id) },
            ChildEvent::Over(Over::Failed(why)) => {
                ChildEvent::Over(Over::Failed(self.secrets.redact(&why)))
            }
            other => other,
        }
    }

    /// An id that contains a secret is replaced by its digest: it must stay the id of one call.
    fn id(&self, id: String) -> String {
        match self.secrets.are_in(id.as_bytes()) {
            true => sha256(id.as_bytes()),
            false => id,
        }
    }

    fn arguments(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        match self.secrets.redact_json(Value::Object(arguments)) {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    fn question(&self, question: Question) -> Question {
        Question {
            server: question.server,
            message: self.secrets.redact(&question.message),
            form: question.form.map(|form| self.secrets.redact_json(form)),
            url: question.url.map(|url| self.secrets.redact(&url)),
        }
    }

    fn block(&self, block: Block) -> Block {
        match block {
            Block::Text { text } => Block::text(self.secrets.redact(&text)),
            other => other,
        }
    }
}

/// How many bytes are whole characters, or none at all.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

fn event_of(kind: Kind, clean: &[u8]) -> Option<ChildEvent> {
    if clean.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(clean).into_owned();
    Some(match kind {
        Kind::Text => ChildEvent::Text(text),
        Kind::Thinking => ChildEvent::Thinking(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::message::CallOutcome;

    fn text(text: &str) -> ChildEvent {
        ChildEvent::Text(text.to_owned())
    }

    fn shown(said: Vec<ChildEvent>) -> String {
        let texts = said.into_iter().map(|said| match said {
            ChildEvent::Text(text) | ChildEvent::Thinking(text) => text,
            other => format!("{other:?}"),
        });
        texts.collect()
    }

    #[test]
    fn a_secret_that_comes_in_pieces_is_removed() {
        let secrets = Secrets::new(["sk-very-secret".to_owned()]);
        let mut redacted = Redacted::new(&secrets);
        let mut said = redacted.pass(text("it is sk-ver"));
        said.extend(redacted.pass(text("y-sec")));
        said.extend(redacted.pass(text("ret!")));
        said.extend(redacted.finish());
        assert_eq!(shown(said), "it is [redacted by agentd]!");
    }

    #[test]
    fn what_was_held_back_comes_before_what_follows() {
        let secrets = Secrets::new(["sk-very-secret".to_owned()]);
        let mut redacted = Redacted::new(&secrets);
        assert_eq!(redacted.pass(text("a sk-v")), [text("a ")]);
        let over = ChildEvent::Over(Over::Failed("bad key sk-very-secret".to_owned()));
        let why = Over::Failed("bad key [redacted by agentd]".to_owned());
        assert_eq!(redacted.pass(over), [text("sk-v"), ChildEvent::Over(why)]);
        assert_eq!(redacted.finish(), None);
    }

    /// The id of a call is in the journal, too.
    #[test]
    fn a_secret_in_the_id_of_a_call_is_replaced_and_the_call_keeps_its_id() {
        let secrets = Secrets::new(["sk-very-secret".to_owned()]);
        let mut redacted = Redacted::new(&secrets);
        let id = || "call sk-very-secret".to_owned();
        let events = [
            ChildEvent::Call {
                id: id(),
                name: "execute".to_owned(),
                arguments: Map::new(),
                is_pending: true,
            },
            ChildEvent::CallBegan { id: id() },
            ChildEvent::CallEnded {
                id: id(),
                outcome: CallOutcome::Ok,
                blocks: Vec::new(),
            },
        ];
        let mut ids = Vec::new();
        for event in events {
            for said in redacted.pass(event) {
                match said {
                    ChildEvent::Call { id, .. }
                    | ChildEvent::CallBegan { id }
                    | ChildEvent::CallEnded { id, .. } => ids.push(id),
                    other => panic!("{other:?}"),
                }
            }
        }
        let digest = sha256(id().as_bytes());
        assert_eq!(ids, [digest.clone(), digest.clone(), digest]);
        let plain = ChildEvent::CallBegan { id: "c".to_owned() };
        assert_eq!(redacted.pass(plain.clone()), [plain]);
    }
}
