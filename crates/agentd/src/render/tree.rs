//! An agent's conversations, drawn as a tree.
//!
//! Most conversations have one child, which is drawn in the column of its parent; only older siblings are indented.

use crate::render::{count, time, word};
use agentd_client::api::{Conversation, Conversations};
use agentd_core::event::BeginSource;
use agentd_core::id::ConversationId;
use agentd_core::time::Timestamp;
use std::collections::BTreeMap;

pub fn draw(all: &Conversations, now: Timestamp) -> Vec<String> {
    let known = |id: &ConversationId| all.conversations.iter().any(|other| other.id == *id);
    let mut children: BTreeMap<Option<ConversationId>, Vec<&Conversation>> = BTreeMap::new();
    for conversation in &all.conversations {
        let parent = conversation.parent.filter(known);
        children.entry(parent).or_default().push(conversation);
    }
    for siblings in children.values_mut() {
        siblings.sort_by_key(|conversation| conversation.ordinal);
    }
    let mut lines = Vec::new();
    // Conversations still to be drawn, the next one last, each with the text to its left.
    let mut open: Vec<(&Conversation, String, Branch)> = Vec::new();
    let roots = children.get(&None).into_iter().flatten().rev();
    open.extend(roots.map(|root| (*root, String::new(), Branch::SameColumn)));
    while let Some((conversation, left, branch)) = open.pop() {
        let mark = match branch {
            Branch::SameColumn => "",
            Branch::Indented => "├─",
        };
        lines.push(format!(
            "{left}{mark}● {}",
            describe(all, conversation, now)
        ));
        let below = match branch {
            Branch::SameColumn => left,
            Branch::Indented => format!("{left}│ "),
        };
        let next = children.get(&Some(conversation.id));
        let Some((last, aside)) = next.and_then(|next| next.split_last()) else {
            continue;
        };
        open.push((last, below.clone(), Branch::SameColumn));
        let aside = aside.iter().rev();
        open.extend(aside.map(|other| (*other, below.clone(), Branch::Indented)));
    }
    lines
}

enum Branch {
    /// Under its parent, in the same column.
    SameColumn,
    /// An older sibling.
    Indented,
}

fn describe(all: &Conversations, conversation: &Conversation, now: Timestamp) -> String {
    let mut parts = vec![
        conversation.ordinal.to_string(),
        count(conversation.turns.into(), "turn"),
        time::ago(conversation.began_at, now),
    ];
    let id = Some(conversation.id);
    if let Some(title) = &conversation.title {
        parts.push(format!("“{title}”"));
    }
    if let (BeginSource::Rewind | BeginSource::Fork, Some(from)) =
        (conversation.source, &conversation.from)
    {
        let source = word(conversation.source);
        parts.push(format!("{source} from event {}", from.seq));
    }
    if let Some(reason) = conversation.sealed {
        parts.push(format!("sealed by {}", word(reason)));
    }
    if conversation.purged {
        parts.push("purged".to_owned());
    }
    if all.undo == id {
        parts.push("undo target".to_owned());
    }
    if all.redo == id {
        parts.push("redo target".to_owned());
    }
    if all.current == id {
        parts.push("← current".to_owned());
    }
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::api::Usage;
    use agentd_core::event::SealReason;
    use agentd_core::id::Seq;
    use uuid::Uuid;

    fn id(n: u8) -> ConversationId {
        ConversationId::new(Uuid::from_u128(n.into()))
    }

    fn conversation(n: u8, parent: Option<u8>) -> Conversation {
        Conversation {
            id: id(n),
            ordinal: n.into(),
            parent: parent.map(id),
            from: None,
            source: BeginSource::Reset,
            began: Seq(1),
            began_at: Timestamp::from_millis(0),
            head: Seq(1),
            sealed: None,
            turns: n.into(),
            ended_turns: n.into(),
            compactions: 0,
            context_tokens: 0,
            usage: Usage::default(),
            current: false,
            title: None,
            labels: BTreeMap::new(),
            purged: false,
            last_request: None,
        }
    }

    fn drawn(conversations: Vec<Conversation>, current: u8) -> Vec<String> {
        let all = Conversations {
            current: Some(id(current)),
            undo: None,
            redo: None,
            conversations,
        };
        draw(&all, Timestamp::from_millis(60_000))
    }

    #[test]
    fn an_only_child_stays_in_its_column() {
        let mut first = conversation(1, None);
        first.sealed = Some(SealReason::Reset);
        let lines = drawn(
            vec![first, conversation(2, Some(1)), conversation(3, Some(2))],
            3,
        );
        let expected = [
            "● 1  1 turn  1m ago  sealed by reset",
            "● 2  2 turns  1m ago",
            "● 3  3 turns  1m ago  ← current",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn older_branches_are_indented() {
        let tree = [
            (1, None),
            (2, Some(1)),
            (3, Some(2)),
            (4, Some(1)),
            (5, Some(2)),
        ];
        let tree = tree.map(|(n, parent)| conversation(n, parent)).to_vec();
        let lines = drawn(tree, 4);
        let expected = [
            "● 1  1 turn  1m ago",
            "├─● 2  2 turns  1m ago",
            "│ ├─● 3  3 turns  1m ago",
            "│ ● 5  5 turns  1m ago",
            "● 4  4 turns  1m ago  ← current",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_parent_elsewhere_makes_a_root() {
        let lines = drawn(vec![conversation(7, Some(200))], 7);
        assert_eq!(lines, ["● 7  7 turns  1m ago  ← current"]);
    }
}
