//! Which updates of a loaded session repeat its history. The protocol wants them before the answer to `session/load`; Gemini
//! CLI sends them after it, even while the next prompt is answered. What is repeated is no part of an answer.
//!
//! A replay begins with the words of the user, and repeats the replies of the conversation in order. So it is known how far it
//! has come, and where the new answer begins.

use super::updates::content;
use crate::outer::ChildEvent;
use serde_json::Value;

/// What is known of the replay of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    phase: Phase,
    /// The replies that were not repeated yet, without white space. `None` if the program repeats something else.
    rest: Option<String>,
    /// Words of the user were repeated.
    has_begun: bool,
    /// The last update repeated words of the user: a reply follows.
    is_at_reply: bool,
    /// The prompt that the session was given, without white space.
    prompt: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Nothing is repeated, or not any more.
    #[default]
    Live,
    /// The session was given no prompt yet: everything is repeated.
    Loading,
    /// It was given a prompt, and has not begun to answer.
    Prompted,
}

/// What an update contains, as far as it matters here.
enum Content {
    /// Words of the user.
    User(String),
    /// Text of the agent.
    Text(String),
    /// A thought, a call or a plan.
    Other,
}

impl Replay {
    /// The session of a conversation with these replies is loaded.
    pub fn of(replies: &[String]) -> Self {
        Self {
            phase: Phase::Loading,
            rest: Some(replies.iter().map(|reply| dense(reply)).collect()),
            ..Self::default()
        }
    }

    /// Whether all replies were repeated.
    pub fn is_complete(&self) -> bool {
        self.phase == Phase::Live || (self.has_begun && self.rest.as_deref() == Some(""))
    }

    /// The session is given a prompt with this text.
    pub fn prompted(&mut self, text: &str) {
        if self.phase == Phase::Loading {
            self.phase = match self.is_complete() {
                true => Phase::Live,
                false => Phase::Prompted,
            };
            self.prompt = dense(text);
        }
    }

    /// Whether an update repeats history. `said` is what it would say otherwise. Commands, modes, options and usage never do.
    pub fn repeats(&mut self, update: &Value, said: &[ChildEvent]) -> bool {
        if self.phase == Phase::Live {
            return false;
        }
        let Some(content) = content_of(update, said) else {
            return false;
        };
        match self.phase {
            Phase::Live => false,
            Phase::Loading => {
                self.follow(&content);
                true
            }
            Phase::Prompted => self.repeats_late(&content),
        }
    }

    /// After the prompt was sent, an update counts as a part of the answer unless it must be a repeated one.
    fn repeats_late(&mut self, content: &Content) -> bool {
        let is_repeated = match content {
            Content::User(text) => {
                let is_prompt = !text.is_empty() && self.prompt.contains(text.as_str());
                if is_prompt && self.is_at_its_end() {
                    // The program repeats the prompt that it answers now.
                    self.phase = Phase::Live;
                    return true;
                }
                // The same prompt may have been sent before: what follows tells.
                self.has_begun = true;
                self.is_at_reply = !is_prompt;
                return true;
            }
            Content::Text(_) if self.is_at_reply => true,
            Content::Text(text) => {
                let rest = self.rest.as_deref().unwrap_or_default();
                self.has_begun && rest.starts_with(text.as_str())
            }
            Content::Other => self.has_begun && !self.is_at_its_end(),
        };
        match is_repeated {
            true => self.follow(content),
            false => self.phase = Phase::Live,
        }
        if self.is_complete() {
            self.phase = Phase::Live;
        }
        is_repeated
    }

    /// Whether nothing more is expected of the replay, because it is complete or because it is unknown what it contains.
    fn is_at_its_end(&self) -> bool {
        self.rest.as_deref().is_none_or(str::is_empty)
    }

    fn follow(&mut self, content: &Content) {
        match content {
            Content::User(_) => {
                self.has_begun = true;
                self.is_at_reply = true;
            }
            Content::Text(text) => {
                self.is_at_reply = false;
                let found = self.rest.as_ref().and_then(|rest| rest.find(text.as_str()));
                self.rest = found.and_then(|at| {
                    let rest = self.rest.as_ref()?;
                    Some(rest[at + text.len()..].to_owned())
                });
            }
            Content::Other => {}
        }
    }
}

fn content_of(update: &Value, said: &[ChildEvent]) -> Option<Content> {
    match update["sessionUpdate"].as_str().unwrap_or_default() {
        "user_message_chunk" => {
            let text = content::text(&update["content"]).unwrap_or_default();
            Some(Content::User(dense(&text)))
        }
        "agent_message_chunk" => {
            let texts = said.iter().filter_map(|said| match said {
                ChildEvent::Text(text) => Some(dense(text)),
                _ => None,
            });
            let text: String = texts.collect();
            match text.is_empty() {
                // White space alone is found everywhere.
                true => Some(Content::Other),
                false => Some(Content::Text(text)),
            }
        }
        "agent_thought_chunk" | "tool_call" | "tool_call_update" | "plan" => Some(Content::Other),
        _ => None,
    }
}

/// Without white space: programs do not repeat it exactly.
fn dense(text: &str) -> String {
    text.chars().filter(|it| !it.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Updates;
    use super::*;
    use serde_json::json;

    fn chunk(kind: &str, text: &str) -> Value {
        json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
    }

    fn user(text: &str) -> Value {
        chunk("user_message_chunk", text)
    }

    fn agent(text: &str) -> Value {
        chunk("agent_message_chunk", text)
    }

    fn call(id: &str) -> Value {
        json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "ls", "status": "completed"})
    }

    /// The texts and calls of these updates that are part of the answer.
    fn answer(replay: &mut Replay, updates: &[Value]) -> Vec<String> {
        let mut known = Updates::default();
        let mut kept = Vec::new();
        for update in updates {
            let said = known.read(update);
            if !replay.repeats(update, &said) && !said.is_empty() {
                let text = update["content"]["text"].as_str();
                kept.push(
                    text.or(update["toolCallId"].as_str())
                        .unwrap_or("-")
                        .to_owned(),
                );
            }
        }
        kept
    }

    fn history() -> [Value; 8] {
        [
            user("first"),
            chunk("agent_thought_chunk", "hm"),
            agent("One "),
            agent("\n"),
            call("t1"),
            agent("answer."),
            user("second"),
            agent("Another answer."),
        ]
    }

    const REPLIES: [&str; 3] = ["One ", "answer.", "Another answer."];

    fn loaded() -> Replay {
        Replay::of(&REPLIES.map(str::to_owned))
    }

    /// Regression: Gemini CLI repeats the history after its answer to `session/load`, and it became the next answer.
    #[test]
    fn history_is_no_part_of_the_answer_wherever_the_prompt_comes() {
        let live = [call("t2"), agent("Third."), agent(" Yes.")];
        for split in 0..=history().len() {
            for echo in [None, Some(user("third"))] {
                let mut replay = loaded();
                let (before, after) = (&history()[..split], &history()[split..]);
                assert_eq!(answer(&mut replay, before), [""; 0], "{split}");
                assert_eq!(replay.is_complete(), split == history().len());
                replay.prompted("third");
                let mut all = after.to_vec();
                all.extend(echo.clone());
                all.extend(live.clone());
                let kept = answer(&mut replay, &all);
                assert_eq!(kept, ["t2", "Third.", " Yes."], "{split} {echo:?}");
            }
        }
    }

    #[test]
    fn a_program_that_repeats_nothing_is_heard_at_once() {
        let mut replay = loaded();
        replay.prompted("third");
        // It may even say what it said before.
        let live = [agent("One answer."), agent(" And more.")];
        assert_eq!(answer(&mut replay, &live), ["One answer.", " And more."]);
        // A session that was not loaded repeats nothing.
        let mut replay = Replay::default();
        assert!(replay.is_complete());
        replay.prompted("third");
        let kept = answer(&mut replay, &[user("third"), agent("so")]);
        assert_eq!(kept, ["so"]);
    }

    #[test]
    fn a_prompt_that_was_sent_before_does_not_end_the_replay() {
        let mut replay = Replay::of(&["Done.".to_owned(), "More.".to_owned()]);
        replay.prompted("go on");
        let updates = [
            user("go on"),
            agent("Done."),
            user("go on"),
            agent("More."),
            user("go on"),
            agent("The end."),
        ];
        assert_eq!(answer(&mut replay, &updates), ["The end."]);
    }

    /// A program may have shortened its history.
    #[test]
    fn an_unknown_history_ends_with_the_words_of_the_prompt() {
        let mut replay = loaded();
        answer(&mut replay, &[user("first"), agent("A summary.")]);
        replay.prompted("third");
        let updates = [
            user("second"),
            agent("Another."),
            user("third"),
            agent("Third."),
        ];
        assert_eq!(answer(&mut replay, &updates), ["Third."]);
    }

    #[test]
    fn modes_and_usage_are_kept() {
        let mut replay = loaded();
        for kind in [
            "current_mode_update",
            "usage_update",
            "available_commands_update",
            "config_option_update",
        ] {
            assert!(
                !replay.repeats(&json!({"sessionUpdate": kind}), &[]),
                "{kind}"
            );
        }
    }
}
