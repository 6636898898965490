//! What deltas add up to, how a reply ends, and how a draft is stored.

use super::*;
use crate::fixture::{request, signature, thinking};
use crate::message::Wire;
use serde_json::json;

const WIRE: Wire = Wire::AnthropicMessages;

fn reply(changes: impl IntoIterator<Item = (usize, Change)>) -> Reply {
    let mut reply = Reply::default();
    for (part, change) in changes {
        reply.apply(Delta { part, change });
    }
    reply
}

fn says(text: &str) -> Change {
    let text = text.to_owned();
    Change::Text { text }
}

fn thinks(text: &str) -> Change {
    let text = text.to_owned();
    Change::Thinking { text }
}

fn signs() -> Change {
    let signature = signature(WIRE);
    Change::Signature { signature }
}

fn calls(id: &str, name: &str) -> Change {
    let (id, name) = (CallId::new(id), name.to_owned());
    Change::Call { id, name }
}

fn with(json: &str) -> Change {
    let json = json.to_owned();
    Change::Arguments { json }
}

fn whole(block: Block) -> Change {
    Change::Whole { block }
}

fn finish(reply: Reply) -> Vec<Block> {
    reply.finish(request(1, 1), [])
}

fn cut(what: CutBlock, text: &str) -> Block {
    let text = text.to_owned();
    Block::Cut { what, text }
}

#[test]
fn arguments_grow_by_the_numbers_that_are_written_out() {
    let growth = |json: &str| reply([(0, calls("a", "write")), (0, with(json))]).growth();
    let numbers = r#"{"a":[1e15,2],"b":1e15}"#;
    assert_eq!(growth(numbers), 2 * 14);
    let blocks = finish(reply([(0, calls("a", "write")), (0, with(numbers))]));
    let [Block::ToolCall(call)] = blocks.as_slice() else {
        panic!("{blocks:?}");
    };
    let written = Value::Object(call.arguments.to_object()).to_string();
    assert_eq!(written.len(), numbers.len() + 2 * 14);
    // A call without arguments has an empty object.
    assert_eq!(growth(""), "{}".len());
    for json in [
        "{}",
        r#"{ "a" : 1e15 , "b" : [ 1 , 2 , 3 ] }"#,
        "[1e15]",
        "{1e15",
    ] {
        assert_eq!(growth(json), 0, "{json}");
    }
    assert_eq!(reply([(0, says("1e15"))]).growth(), 0);
}

#[test]
fn deltas_of_one_part_are_one_block() {
    let reply = reply([(0, says("Hel")), (0, says("lo")), (1, says("World"))]);
    assert_eq!(reply.written_bytes(), 10);
    assert_eq!(finish(reply), [Block::text("Hello"), Block::text("World")]);
}

#[test]
fn thinking_text_and_calls_stand_where_they_came() {
    let reply = reply([
        (0, thinks("hm ")),
        (0, thinks("hm")),
        (0, signs()),
        (1, says("I look.")),
        (2, calls("toolu_1", "read")),
        (2, with(r#"{"path":"#)),
        (2, with(r#" "a"}"#)),
    ]);
    let blocks = finish(reply);
    assert_eq!(blocks[0], thinking("hm hm", WIRE));
    assert_eq!(blocks[1], Block::text("I look."));
    let call = blocks[2].as_call().unwrap();
    assert_eq!(call.name, "read");
    let path = crate::fixture::object(json!({"path": "a"}));
    assert_eq!(call.arguments, Arguments::Object(path));
}

#[test]
fn a_change_that_does_not_fit_its_part_begins_a_new_one() {
    let reply = reply([
        (0, says("text")),
        (0, thinks("thought")),
        (7, says("far off")),
        (9, with("stray")),
    ]);
    let mut words = Vec::new();
    finish(reply)
        .iter()
        .for_each(|block| block.words(&mut words));
    assert_eq!(words, ["text", "thought", "far off", "stray"]);
}

#[test]
fn arguments_that_are_no_object_are_kept_as_they_came() {
    for raw in ["[1]", "\"text\"", "{\"a\":", "null"] {
        let blocks = finish(reply([(0, calls("x", "f")), (0, with(raw))]));
        let call = blocks[0].as_call().unwrap();
        assert_eq!(call.arguments, Arguments::Malformed(raw.to_owned()));
    }
    let blocks = finish(reply([(0, calls("x", "f")), (0, with(" "))]));
    let call = blocks[0].as_call().unwrap();
    assert_eq!(call.arguments, Arguments::Object(Default::default()));
}

/// goose `fix_conversation`, hole (b): a call id that occurs twice. The draft gives the second call another id.
#[test]
fn every_call_has_an_id_of_its_own_whatever_the_provider_said() {
    let twins = reply([
        (0, calls("0", "f")),
        (1, calls("0", "f")),
        (2, calls("", "f")),
    ]);
    let taken = [CallId::new("call_1_1_1")];
    let blocks = twins.finish(request(1, 1), &taken);
    let mut ids: Vec<&CallId> = blocks
        .iter()
        .filter_map(Block::as_call)
        .map(|c| &c.id)
        .collect();
    ids.extend(&taken);
    let different: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(different.len(), 4);
    assert!(
        ids.iter()
            .all(|id| crate::repair::valid_call_id(id.as_str()))
    );
}

#[test]
fn blank_text_is_left_out() {
    let blocks = finish(reply([(0, says(" \n")), (1, says("x")), (2, says(""))]));
    assert_eq!(blocks, [Block::text("x")]);
}

#[test]
fn thinking_that_nothing_follows_is_kept_for_people() {
    let blocks = finish(reply([(0, says("x")), (1, thinks("and")), (1, signs())]));
    assert_eq!(blocks, [Block::text("x"), cut(CutBlock::Thinking, "and")]);
    let blocks = finish(reply([(0, thinks("first")), (0, signs()), (1, says("x"))]));
    assert_eq!(blocks[0], thinking("first", WIRE));
}

#[test]
fn sealed_thinking_that_only_unsent_things_follow_is_sealed_off_too() {
    let blocks = finish(reply([
        (0, says("x")),
        (1, thinks("signed")),
        (1, signs()),
        (2, thinks("unsigned")),
    ]));
    assert_eq!(blocks[1], cut(CutBlock::Thinking, "signed"));
}

#[test]
fn a_cut_reply_keeps_its_text_and_sets_the_rest_aside() {
    let reply = reply([
        (0, thinks("done thinking")),
        (0, signs()),
        (1, says("I will now")),
        (2, calls("toolu_1", "shell")),
        (2, with(r#"{"command": "rm"#)),
    ]);
    let blocks = reply.cut();
    assert_eq!(blocks[0], thinking("done thinking", WIRE));
    assert_eq!(blocks[1], Block::text("I will now"));
    assert_eq!(
        blocks[2],
        cut(CutBlock::ToolCall, r#"shell {"command": "rm"#)
    );
}

#[test]
fn a_cut_reply_of_thinking_alone_has_nothing_to_send() {
    let blocks = reply([(0, thinks("signed")), (0, signs()), (1, thinks("half"))]).cut();
    let thought = |text| cut(CutBlock::Thinking, text);
    assert_eq!(blocks, [thought("signed"), thought("half")]);
}

/// A call that arrives in one piece is treated like any other: if it is cut off it never runs, and if it is complete
/// it gets our id.
#[test]
fn a_call_that_came_in_one_piece_ends_like_one_that_came_in_many() {
    let pieces = [(0, calls("x", "shell")), (0, with(r#"{"command":"do x"}"#))];
    let one = whole(crate::fixture::call("x"));
    assert_eq!(reply([(0, one.clone())]).cut(), reply(pieces.clone()).cut());
    assert_eq!(finish(reply([(0, one)])), finish(reply(pieces)));
}

#[test]
fn other_blocks_in_one_piece_stay_what_they_are() {
    let native = Block::Native {
        wire: WIRE,
        item: json!({"type": "server_tool_use", "id": "s"}),
    };
    let reply = reply([(0, whole(native.clone())), (1, whole(Block::text("x")))]);
    assert_eq!(finish(reply.clone()), [native.clone(), Block::text("x")]);
    assert_eq!(reply.cut(), [native, Block::text("x")]);
}

#[test]
fn nothing_at_all_is_no_block() {
    assert!(Reply::default().is_empty());
    assert_eq!(finish(Reply::default()), []);
    assert_eq!(Reply::default().cut(), []);
    assert_eq!(Reply::default().written_bytes(), 0);
}

fn deltas() -> Vec<Delta> {
    let changes = [
        thinks("hm"),
        signs(),
        says("line one\nline \"two\" \u{1F980}"),
        calls("toolu_1", "shell"),
        with(r#"{"n": 1.5}"#),
        whole(crate::fixture::result("toolu_0", "out")),
        whole(Block::Native {
            wire: Wire::Gemini,
            item: json!({"type": "x", "part": 7, "deep": [1, {"a": null}]}),
        }),
    ];
    let parts = [0, 0, 1, 2, 2, 3, 4];
    let both = parts.into_iter().zip(changes);
    both.map(|(part, change)| Delta { part, change }).collect()
}

#[test]
fn a_draft_is_read_back_as_the_reply_it_was() {
    let mut reply = Reply::default();
    deltas().into_iter().for_each(|delta| reply.apply(delta));
    let bytes = encode(&deltas()).unwrap();
    assert_eq!(decode(&bytes).unwrap(), reply);
}

#[test]
fn it_does_not_matter_how_a_draft_was_flushed() {
    let all = encode(&deltas()).unwrap();
    for cut in 0..=deltas().len() {
        let (first, second) = (&deltas()[..cut], &deltas()[cut..]);
        let mut bytes = encode(first).unwrap();
        bytes.extend(encode(second).unwrap());
        assert_eq!(bytes, all);
    }
    assert_eq!(decode(b"").unwrap(), Reply::default());
}

#[test]
fn a_damaged_draft_says_where() {
    let mut bytes = encode(&deltas()[..1]).unwrap();
    let good = bytes.len();
    bytes.extend(b"{\"part\": 0, \"type\": \"te\n");
    let error = decode(&bytes).unwrap_err();
    assert_eq!(error.offset, good);
    assert!(error.to_string().contains("damaged at byte"));
}
