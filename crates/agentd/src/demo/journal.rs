//! The agent's journal, read again each time, and what is derived from it.

use agentd_core::event::{Body, Event, Kind, NewEvent, Prompt, PromptsTaken};
use agentd_core::id::{AgentId, ConversationId, PromptId, Seq, TurnId};
use agentd_core::message::Block;
use agentd_core::request::{self, Request};
use agentd_core::window::Window;
use agentd_core::wire;

/// All of the agent's events.
pub struct Journal(pub Vec<Event>);

impl Journal {
    pub fn seqs(&self) -> Vec<Seq> {
        self.0.iter().map(|event| event.seq).collect()
    }

    /// How many events of a kind a turn has.
    pub fn count(&self, turn: Option<TurnId>, kind: Kind) -> usize {
        let of_turn = self.0.iter().filter(|event| event.turn == turn);
        of_turn.filter(|event| event.kind() == kind).count()
    }

    /// What the model sees of a conversation.
    pub fn window(&self, conversation: ConversationId) -> Window {
        self.window_through(conversation, Seq(u64::MAX))
    }

    fn window_through(&self, conversation: ConversationId, through: Seq) -> Window {
        let mut window = Window::new();
        let of_it = self
            .0
            .iter()
            .filter(|event| event.conversation == conversation && event.seq <= through);
        of_it.for_each(|event| window.apply(event));
        window
    }

    /// The first request that was sent in a conversation after a position.
    pub fn request_after(&self, conversation: ConversationId, after: Seq) -> Option<Request> {
        let sent = self.0.iter().find(|event| {
            let is_it = event.conversation == conversation && event.seq > after;
            is_it && matches!(event.body, Body::RequestSent(_))
        })?;
        next_request(&self.window_through(conversation, sent.seq))
    }
}

/// The next request to the model for this window.
pub fn next_request(window: &Window) -> Option<Request> {
    request::answer(window, window.context()?)
}

pub fn bytes(request: Option<&Request>) -> Vec<u8> {
    request.map_or_else(Vec::new, |request| {
        wire::encode(request).to_string().into_bytes()
    })
}

/// The window as it would be after this prompt. Nothing is written.
pub fn prompted(window: &Window, text: &str) -> Window {
    let mut window = window.clone();
    let id = PromptId::from_bytes([0; 16]);
    let blocks = vec![Block::text(text)];
    let prompts = vec![id];
    let bodies = [
        Prompt { prompt: id, blocks }.into(),
        PromptsTaken { prompts }.into(),
    ];
    for body in bodies {
        let event = NewEvent {
            at: agentd_daemon::clock::now(),
            conversation: ConversationId::from_bytes([0; 16]),
            turn: None,
            body,
        };
        window.apply(&event.placed(AgentId::from_bytes([0; 16]), Seq(u64::MAX)));
    }
    window
}
