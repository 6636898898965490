//! Which part of a window is sent.

use super::*;
use crate::event::{MessageStatus, Notice, NoticeCause, Summary, Tool};
use crate::fixture::{Journal, call, context, notice, result, signature, thinking};
use crate::message::{CutBlock, Wire};
use serde_json::json;

const WIRE: Wire = Wire::AnthropicMessages;

fn asked(journal: &Journal) -> Request {
    answer(&journal.window(), &context(WIRE)).expect("something awaits an answer")
}

fn blocks_sent(wire: Wire, blocks: Vec<Block>) -> (Vec<Block>, Vec<Omission>) {
    let mut journal = Journal::new();
    journal.prompt(1, "hi");
    journal.reply(blocks);
    let (messages, omissions) = project(&journal.window(), &context(wire));
    let reply = messages.into_iter().find(|m| m.role == Role::Assistant);
    (reply.map_or_else(Vec::new, |reply| reply.blocks), omissions)
}

#[test]
fn nothing_awaits_an_answer_and_nothing_is_sent() {
    let mut journal = Journal::new();
    assert_eq!(answer(&journal.window(), &context(WIRE)), None);
    journal.prompt(1, "hi");
    journal.reply(vec![Block::text("hello")]);
    assert_eq!(answer(&journal.window(), &context(WIRE)), None);
}

#[test]
fn prompts_and_notices_have_messages_of_their_own_and_results_share_one() {
    let mut journal = Journal::new();
    journal.prompt(1, "go");
    journal.reply(vec![call("a"), call("b")]);
    journal.result("b", "second");
    journal.result("a", "first");
    let (cause, text) = (NoticeCause::TaskEnded, "built".to_owned());
    journal.push(Notice { cause, text });
    journal.prompt(2, "and?");
    let request = asked(&journal);
    let expected = [
        Message::user(vec![Block::text("go")]),
        Message::assistant(vec![call("a"), call("b")]),
        Message::user(vec![result("b", "second"), result("a", "first")]),
        Message::user(vec![notice("built")]),
        Message::user(vec![Block::text("and?")]),
    ];
    assert_eq!(request.messages, expected);
    assert_eq!((request.repairs, request.omissions), (vec![], vec![]));
}

/// Items that arrive while calls are open must not come between the calls and their results.
#[test]
fn a_notice_between_a_call_and_its_result_stands_behind_both() {
    let mut journal = Journal::new();
    journal.prompt(1, "go");
    journal.reply(vec![call("a")]);
    let (cause, text) = (NoticeCause::TaskEnded, "built".to_owned());
    journal.push(Notice { cause, text });
    journal.result("a", "done");
    let request = asked(&journal);
    assert_eq!(request.messages[2].blocks, [result("a", "done")]);
    assert_eq!(request.messages[3].blocks, [notice("built")]);
    assert_eq!(request.repairs, []);
}

#[test]
fn a_summary_is_told_as_a_notice_and_not_as_the_user_s_words() {
    let mut journal = Journal::new();
    journal.prompt(1, "long ago");
    let through = journal.reply(vec![Block::text("indeed")]).position();
    journal.prompt(2, "now");
    let text = "much".to_owned();
    journal.push(Summary { through, text });
    let request = asked(&journal);
    let told = notice("Summary of the conversation up to here:\nmuch");
    let now = Message::user(vec![Block::text("now")]);
    assert_eq!(request.messages, [Message::user(vec![told]), now]);
}

#[test]
fn thinking_goes_back_to_the_provider_that_signed_it_and_to_no_other() {
    for wire in Wire::ALL {
        let blocks = vec![thinking("hm", wire), Block::text("so")];
        for other in Wire::ALL {
            let (sent, omissions) = blocks_sent(other, blocks.clone());
            let takes = wire == other && wire != Wire::OpenaiChat;
            assert_eq!(sent.len(), if takes { 2 } else { 1 }, "{wire:?} {other:?}");
            let words: Vec<_> = omissions.iter().flat_map(Omission::words).collect();
            assert_eq!(words, if takes { vec![] } else { vec!["hm"] });
        }
    }
}

#[test]
fn thinking_without_a_signature_or_with_a_blank_one_is_named_and_not_sent() {
    let unsigned = |value: Option<&str>, id: Option<&str>, wire| Block::Thinking {
        text: "hm".to_owned(),
        signature: value.map(|value| crate::message::Signature {
            wire,
            value: value.to_owned(),
            id: id.map(str::to_owned),
        }),
    };
    let cases = [
        (WIRE, unsigned(None, None, WIRE)),
        (WIRE, unsigned(Some(" "), None, WIRE)),
        (
            Wire::OpenaiResponses,
            unsigned(Some("x"), None, Wire::OpenaiResponses),
        ),
    ];
    for (wire, block) in cases {
        let (sent, omissions) = blocks_sent(wire, vec![block, Block::text("so")]);
        assert_eq!(sent, [Block::text("so")]);
        assert!(matches!(omissions[..], [Omission::UnsignedThinking { .. }]));
    }
}

#[test]
fn native_blocks_go_back_to_their_own_provider_from_whole_replies_alone() {
    let native = |wire| Block::Native {
        wire,
        item: json!({"type": "server_tool_use", "query": "words"}),
    };
    let (sent, omissions) = blocks_sent(WIRE, vec![native(WIRE), native(Wire::Gemini)]);
    assert_eq!(sent, [native(WIRE)]);
    assert!(matches!(omissions[..], [Omission::Foreign { .. }]));
    assert!(omissions[0].words().contains(&"words".to_owned()));
    let mut journal = Journal::new();
    let half = vec![native(WIRE), Block::text("half")];
    journal.message(MessageStatus::Interrupted, half);
    let (messages, omissions) = project(&journal.window(), &context(WIRE));
    assert_eq!(messages[0].blocks, [Block::text("half")]);
    assert!(matches!(omissions[..], [Omission::CutNative { .. }]));
}

/// Anthropic refuses a call of its own tool without the result, with which a paused reply may end.
#[test]
fn a_server_tool_s_call_goes_back_only_with_its_result() {
    let native = |item| Block::Native { wire: WIRE, item };
    let call =
        |id: &str| native(json!({"type": "server_tool_use", "id": id, "name": "web_search"}));
    let result = native(json!({"type": "web_search_tool_result", "tool_use_id": "a"}));
    let (sent, omissions) = blocks_sent(WIRE, vec![call("a"), result.clone(), call("b")]);
    assert_eq!(sent, [call("a"), result]);
    assert!(matches!(omissions[..], [Omission::CutNative { .. }]));
    // The citations of a reply that was cut off name results that are not sent.
    let cited = Block::Annotated {
        text: "so".to_owned(),
        wire: WIRE,
        item: json!({"type": "text", "text": "so", "citations": [{}]}),
    };
    let mut journal = Journal::new();
    journal.message(MessageStatus::Interrupted, vec![cited]);
    let (messages, _) = project(&journal.window(), &context(WIRE));
    assert_eq!(messages[0].blocks, [Block::text("so")]);
}

#[test]
fn sources_without_a_text_are_not_sent() {
    let wire = Wire::Gemini;
    let item = json!({"groundingMetadata": {"groundingChunks": []}});
    let (sent, omissions) = blocks_sent(wire, vec![Block::Native { wire, item }]);
    assert_eq!(sent, []);
    assert!(matches!(omissions[..], [Omission::Sources { .. }]));
}

#[test]
fn what_was_cut_off_is_named_and_not_sent() {
    let (what, text) = (CutBlock::ToolCall, "shell {\"a".to_owned());
    let (sent, omissions) = blocks_sent(WIRE, vec![Block::Cut { what, text }]);
    assert_eq!(sent, []);
    assert_eq!(omissions[0].words(), ["shell {\"a"]);
}

#[test]
fn a_signature_on_a_call_goes_to_its_own_provider_alone() {
    let mut block = call("a");
    if let Block::ToolCall(call) = &mut block {
        call.signature = Some(signature(Wire::Gemini));
    }
    let (sent, _) = blocks_sent(Wire::Gemini, vec![block.clone()]);
    assert_eq!(sent, [block.clone()]);
    let (sent, _) = blocks_sent(WIRE, vec![block]);
    assert_eq!(sent, [call("a")]);
}

#[test]
fn calls_stand_at_the_end_of_their_reply() {
    let (sent, _) = blocks_sent(WIRE, vec![call("a"), Block::text("so"), call("b")]);
    assert_eq!(sent, [Block::text("so"), call("a"), call("b")]);
}

/// Providers refuse calls in the history if the request has no tool list.
#[test]
fn a_history_with_calls_is_sent_with_the_tools_it_had_and_they_may_not_be_called() {
    let mut bare = context(WIRE);
    bare.tools.clear();
    let mut journal = Journal::new();
    journal.push(context(WIRE));
    journal.prompt(1, "go");
    journal.reply(vec![call("a")]);
    journal.result("a", "done");
    let request = answer(&journal.window(), &bare).unwrap();
    assert_eq!(request.context.tools, context(WIRE).tools);
    assert!(!request.may_call);
}

#[test]
fn an_imported_history_with_calls_gets_tools_by_their_names() {
    let mut bare = context(WIRE);
    bare.tools.clear();
    let mut journal = Journal::new();
    journal.prompt(1, "go");
    journal.reply(vec![
        crate::fixture::call_of("grep", "a"),
        call("b"),
        call("c"),
    ]);
    for id in ["a", "b", "c"] {
        journal.result(id, "done");
    }
    let request = answer(&journal.window(), &bare).unwrap();
    let names: Vec<&Tool> = request.context.tools.iter().collect();
    let names: Vec<&str> = names.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["grep", "shell"]);
    assert!(!request.may_call);
}

#[test]
fn a_summary_is_asked_for_over_what_it_covers_and_needs_no_repair() {
    let mut journal = Journal::new();
    journal.prompt(1, "one");
    let through = journal.reply(vec![Block::text("two")]).position();
    journal.prompt(2, "three");
    let request = summary(&journal.window(), &context(WIRE), through, None);
    assert_eq!(request.purpose, Purpose::Compact);
    assert_eq!(request.messages.len(), 3);
    assert_eq!(
        request.messages[2].blocks,
        [Block::text(COMPACT_INSTRUCTION)]
    );
    assert!(!request.may_call);
    assert_eq!(request.repairs, []);
}

#[test]
fn an_estimate_grows_with_everything_that_is_sent() {
    let mut journal = Journal::new();
    journal.prompt(1, "hi");
    let base = asked(&journal);
    let mut longer = base.clone();
    longer.context.system.push_str(&"s".repeat(300));
    assert_eq!(estimate_tokens(&longer), estimate_tokens(&base) + 100);
    let mut longer = base.clone();
    longer.context.tools.push(crate::fixture::tool("other"));
    assert!(estimate_tokens(&longer) > estimate_tokens(&base));
    for block in [Block::text("x".repeat(300)), call("a"), result("a", "out")] {
        let mut longer = base.clone();
        longer.messages[0].blocks.push(block);
        assert!(estimate_tokens(&longer) > estimate_tokens(&base));
    }
}

/// Claude accepts its thinking only after the messages that led to it. A summary changes them, and so does another
/// model.
#[test]
fn thinking_that_was_moved_is_not_sent_to_anthropic() {
    use crate::event::Compacted;
    let wire = Wire::AnthropicMessages;
    let thinks = |journal: &Journal, wire| {
        let (messages, omissions) = project(&journal.window(), &context(wire));
        let blocks = messages.iter().flat_map(|message| &message.blocks);
        let sent = blocks.filter(|block| matches!(block, Block::Thinking { .. }));
        let moved = |it: &&Omission| matches!(it, Omission::MovedThinking { .. });
        (sent.count(), omissions.iter().filter(moved).count())
    };
    let mut journal = Journal::new();
    journal.push(context(wire));
    journal.prompt(1, "one");
    let through = journal.reply(vec![Block::text("two")]).position();
    journal.prompt(2, "three");
    journal.reply(vec![thinking("hm", wire), call("a")]);
    journal.result("a", "done");
    assert_eq!(thinks(&journal, wire), (1, 0));
    let mut compacted = journal.clone();
    compacted.push(Compacted { through });
    let text = "s".to_owned();
    compacted.push(Summary { through, text });
    assert_eq!(thinks(&compacted, wire), (0, 1));
    // Later thinking is sent back.
    compacted.reply(vec![thinking("so", wire), call("b")]);
    compacted.result("b", "done");
    assert_eq!(thinks(&compacted, wire), (1, 1));
    let mut other_model = journal.clone();
    other_model.push(Context {
        model: "another".to_owned(),
        ..context(wire)
    });
    assert_eq!(thinks(&other_model, wire), (0, 1));
    // A lower limit of output tokens changes nothing.
    let mut shorter = journal.clone();
    shorter.push(Context {
        max_output_tokens: 5,
        ..context(wire)
    });
    assert_eq!(thinks(&shorter, wire), (1, 0));
}
