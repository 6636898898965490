//! The contents of the disk: it outlives every process.

use super::{AGENT, CONVERSATION};
use agentd_core::begin;
use agentd_core::event::{Event, Mode, NewEvent};
use agentd_core::id::{ConversationId, Incarnation, Seq, TryId};
use agentd_core::link::{Append, Draft};
use agentd_core::spec::AgentSpec;
use agentd_core::state::AgentState;
use agentd_core::time::Timestamp;
use agentd_core::window::Window;

pub struct Kept {
    pub events: Vec<Event>,
    pub draft: Option<(TryId, String)>,
    state: AgentState,
    /// The newest append with a counter: its sender, its number, and where it begins.
    source: Option<(Incarnation, u64, Seq)>,
}

/// The result of an append with a counter.
pub enum Counted {
    Committed(Vec<Event>),
    /// It was the last one, applied before.
    Repeated(Seq),
    /// It was applied and answered long before.
    Old,
    Refused,
}

impl Kept {
    pub fn new() -> Self {
        let mut kept = Self {
            events: Vec::new(),
            draft: None,
            state: AgentState::new(AGENT),
            source: None,
        };
        let spec = AgentSpec::default();
        for (conversation, body) in begin::create("agent", Mode::Persistent, &spec, CONVERSATION) {
            kept.place(NewEvent {
                at: Timestamp::from_millis(1),
                conversation,
                turn: None,
                body,
            });
        }
        kept
    }

    fn place(&mut self, event: NewEvent) -> Event {
        let event = event.placed(AGENT, Seq(self.events.len() as u64 + 1));
        self.state.apply(&event);
        self.events.push(event.clone());
        event
    }

    /// An append of the daemon itself.
    pub fn append(&mut self, events: Vec<NewEvent>) -> Vec<Event> {
        events.into_iter().map(|event| self.place(event)).collect()
    }

    /// An append of a runtime, by the store's rules.
    pub fn append_counted(&mut self, append: Append) -> Counted {
        let incarnation = append.incarnation;
        let expected = match self.source {
            Some((known, _, _)) if incarnation < known => return Counted::Refused,
            Some((known, n, first)) if incarnation == known => {
                if append.n == n {
                    return Counted::Repeated(first);
                }
                if append.n < n {
                    return Counted::Old;
                }
                n + 1
            }
            _ => 1,
        };
        if append.n != expected {
            return Counted::Refused;
        }
        if let (Some(ends), Some((of, _))) = (append.ends, &self.draft)
            && *of <= ends
        {
            self.draft = None;
        }
        let events = self.append(append.events);
        let first = events.first().map_or(Seq::ZERO, |event| event.seq);
        self.source = Some((incarnation, append.n, first));
        Counted::Committed(events)
    }

    /// The newest append of an incarnation.
    pub fn appended(&self, incarnation: Incarnation) -> u64 {
        match self.source {
            Some((known, n, _)) if known == incarnation => n,
            _ => 0,
        }
    }

    /// A chunk at a wrong offset is dropped.
    pub fn write_draft(&mut self, draft: Draft) {
        let known = self.draft.take_if(|(of, _)| *of == draft.request);
        let (request, mut text) = known.unwrap_or((draft.request, String::new()));
        if text.len() as u64 == draft.offset {
            text.push_str(&draft.text);
        }
        if !text.is_empty() {
            self.draft = Some((request, text));
        }
    }

    /// The first fold, as it is now.
    pub const fn state(&self) -> &AgentState {
        &self.state
    }

    /// What the model sees of the current conversation.
    pub fn window(&self) -> Window {
        match self.state.tree.current() {
            Some(current) => self.window_at(current, self.state.head),
            None => Window::new(),
        }
    }

    /// What it saw of some conversation up to some event.
    pub fn window_at(&self, conversation: ConversationId, through: Seq) -> Window {
        let mut window = Window::new();
        self.lineage(conversation, through)
            .for_each(|event| window.apply(event));
        window
    }

    /// The events that such a window is made of.
    pub fn lineage(
        &self,
        conversation: ConversationId,
        through: Seq,
    ) -> impl Iterator<Item = &Event> {
        let lineage = self.state.tree.lineage(AGENT, conversation, through);
        lineage.segments.into_iter().flat_map(|segment| {
            self.events.iter().filter(move |event| {
                event.conversation == segment.conversation && event.seq <= segment.through
            })
        })
    }
}

impl Default for Kept {
    fn default() -> Self {
        Self::new()
    }
}
