//! Agents that do everything that moves a pointer, at random, and what their journals must fold to.

use crate::author::Author;
use crate::model::Model;
use agentd_core::event::{Direction, NewEvent, Origin};
use agentd_core::id::{AgentId, Seq};
use agentd_store::{Ack, Append, Store};

/// Choices that are the same in every run.
pub struct Dice(u64);

impl Dice {
    pub fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// Agents that do everything that moves a pointer, and a model of what they did.
pub struct Walk {
    pub dice: Dice,
    pub authors: Vec<Author>,
    pub model: Model,
    words: u64,
}

impl Walk {
    pub fn new(seed: u64) -> Self {
        Self {
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            authors: Vec::new(),
            model: Model::default(),
            words: 0,
        }
    }

    fn words(&mut self) -> String {
        self.words += 1;
        format!("what was said as number {}", self.words)
    }

    /// A new agent: the first from nothing, later ones mostly as forks of an older one.
    async fn new_agent(&mut self, store: &dyn Store) -> (usize, Vec<NewEvent>) {
        let number = self.authors.len() as u64 + 1;
        let mut author = Author::claim(store, number).await;
        let name = format!("agent-{number}");
        let events = match self.authors.len() as u64 {
            0 => author.created(&name),
            agents => {
                let parent = self.dice.roll(agents) as usize;
                let from = self.some_place(parent);
                author.forked(&name, from)
            }
        };
        self.authors.push(author);
        (self.authors.len() - 1, events)
    }

    /// A place in one of an agent's conversations.
    pub fn some_place(&mut self, author: usize) -> Origin {
        let agent = self.authors[author].agent;
        let state = self.model.state(agent, Seq(u64::MAX));
        let conversations: Vec<_> = state.tree.iter().collect();
        let at = self.dice.roll(conversations.len() as u64) as usize;
        let conversation = conversations[at];
        let length = conversation.head.0 - conversation.began.0 + 1;
        Origin {
            agent,
            conversation: conversation.id,
            seq: Seq(conversation.began.0 + self.dice.roll(length)),
        }
    }

    /// The next thing that some agent does.
    pub async fn step(&mut self, store: &dyn Store) -> (usize, Vec<NewEvent>) {
        let agents = self.authors.len() as u64;
        let roll = self.dice.roll(20);
        if agents == 0 || (roll < 2 && agents < 4) {
            return self.new_agent(store).await;
        }
        let at = self.dice.roll(agents) as usize;
        let words = self.words();
        let head = self.authors[at].head;
        let place = self.some_place(at);
        let tree = self.model.state(self.authors[at].agent, head).tree;
        let author = &mut self.authors[at];
        let events = match roll {
            0..=2 => author.reset(),
            3..=4 => author.rewind(place.conversation, place.seq),
            5..=7 => match tree.undo_target() {
                Some(to) => author.move_to(to, Direction::Undo),
                None => author.reset(),
            },
            8..=9 => match tree.redo_target() {
                Some(to) => author.move_to(to, Direction::Redo),
                None => author.turn(&words, "answer"),
            },
            10 => author.compact(Seq(head.0.saturating_sub(3)), &words),
            11..=12 => author.prompt(&words).1,
            13 => author.tool_turn(&words, &words.repeat(1000), "answer"),
            14..=15 => author.tool_turn(&words, "output", "answer"),
            _ => author.turn(&words, "answer"),
        };
        (at, events)
    }

    /// One event at a time, so that every cut comes about.
    pub async fn append_one(&mut self, store: &dyn Store, at: usize, event: NewEvent) {
        let author = &mut self.authors[at];
        let append = Append::new(author.fence, vec![event.clone()]);
        match store.append(append).await.unwrap() {
            Ack::Committed { first, last } => {
                assert_eq!(first, last);
                author.head = last;
                self.model.add(event.placed(author.agent, last));
            }
            repeated @ Ack::Repeated { .. } => panic!("{repeated:?}"),
        }
    }

    pub async fn compare(&self, store: &dyn Store, agent: AgentId) {
        let loaded = store.load(agent).await.unwrap();
        let state = self.model.state(agent, Seq(u64::MAX));
        assert_eq!(loaded.state, state);
        assert_eq!(loaded.damage, None);
        let current = state.tree.current();
        let window = current.map(|id| self.model.window(agent, id, state.head));
        assert_eq!(loaded.window, window.unwrap_or_default());
    }

    /// Conversations of long ago, as they were at some time.
    pub async fn compare_old_windows(&mut self, store: &dyn Store) {
        for at in 0..self.authors.len() {
            for _ in 0..4 {
                let Origin {
                    agent,
                    conversation,
                    seq,
                } = self.some_place(at);
                let window = store.window(agent, conversation, seq).await.unwrap();
                let expected = self.model.window(agent, conversation, seq);
                assert_eq!(window, expected, "{conversation} at {seq}");
            }
        }
    }

    pub async fn compare_all(&mut self, store: &dyn Store) {
        for author in &self.authors {
            self.compare(store, author.agent).await;
        }
        self.compare_old_windows(store).await;
        assert!(store.verify(None).await.unwrap().is_clean());
    }
}
