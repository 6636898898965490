//! Prints events as lines, with the numbers of conversations that users see.

use super::Args;
use crate::error::Error;
use crate::output::{Output, QUIET};
use crate::render::event::{begins, told, turn_ended};
use crate::render::{Detail, time};
use crate::terminal;
use agentd_client::Client;
use agentd_core::event::{Body, Event};
use agentd_core::id::ConversationId;
use agentd_core::spec::Limits;
use std::collections::BTreeMap;

pub struct Lines<'a> {
    args: &'a Args,
    numbers: BTreeMap<ConversationId, u32>,
    /// The limits at this point of the log; none if no event has said them yet.
    limits: Option<Limits>,
}

impl<'a> Lines<'a> {
    pub const fn new(args: &'a Args) -> Self {
        Self {
            args,
            numbers: BTreeMap::new(),
            limits: None,
        }
    }

    /// Whether anything is printed for an event.
    pub fn is_shown(&self, event: &Event) -> bool {
        let text = told(event, None, Detail::Brief);
        let is_printed = self.args.json || text.is_some();
        is_printed && self.matches(event, text.as_deref())
    }

    /// Whether the event contains the pattern: in the text of which the log may show only a part, or in its line.
    fn matches(&self, event: &Event, line: Option<&str>) -> bool {
        let Some(pattern) = &self.args.grep else {
            return true;
        };
        let is_in_words = pattern.is_match(&event.body.words().join("\n"));
        is_in_words || line.is_some_and(|line| pattern.is_match(&terminal::uncoloured(line)))
    }

    pub async fn show(
        &mut self,
        client: &Client,
        event: &Event,
        out: &mut Output,
    ) -> Result<(), Error> {
        if let Body::SpecSet(set) = &event.body {
            self.limits = Some(set.spec.limits.clone());
        }
        if !self.is_shown(event) {
            return Ok(());
        }
        if self.args.json {
            return out.json(event);
        }
        let number = self.number(client, event).await;
        let told = told(event, number, self.args.detail());
        let Some(text) = told.map(|text| match &event.body {
            Body::TurnEnded(ended) => turn_ended(ended, self.limits.as_ref()),
            _ => text,
        }) else {
            return Ok(());
        };
        let at = match self.args.times {
            true => format!("{} ", time::clock(event.at)),
            false => String::new(),
        };
        let left = format!("{:>5} {at}", event.seq);
        let text = text.replace('\n', &format!("\n{}", " ".repeat(left.len())));
        let left = left.trim_end();
        out.line(format_args!("{QUIET}{left}{QUIET:#} {text}"))
    }

    /// The number of the conversation that an event begins. None if the daemon does not return it: the line has the id
    /// instead.
    pub async fn number(&mut self, client: &Client, event: &Event) -> Option<u32> {
        let id = begins(event)?;
        if !self.numbers.contains_key(&id) {
            let all = client.conversations(&self.args.name).await.ok()?;
            let numbers = all.conversations.iter();
            self.numbers = numbers.map(|it| (it.id, it.ordinal)).collect();
        }
        self.numbers.get(&id).copied()
    }
}
