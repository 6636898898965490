//! The four streams, each with the same content: thinking, text, two calls whose arguments arrive in pieces of every
//! size, and a block that only its provider knows.

use super::{Broken, Decoder, End};
use crate::draft::Reply;
use crate::event::{FailureClass, StopReason};
use crate::id::{Incarnation, TryId};
use crate::message::{Arguments, Block, Wire};
use crate::usage::Usage;
use serde_json::{Value, json};

const ARGUMENTS: &str = r#"{"command":"printf 'ä\"\\n€'"}"#;

/// Arguments in pieces of `size` bytes, never cutting a character.
fn pieces(size: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for c in ARGUMENTS.chars() {
        let full = pieces.last().is_some_and(|piece| piece.len() >= size);
        if full {
            pieces.push(String::new());
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}

fn anthropic(size: usize) -> Vec<Value> {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let grow = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "usage": {
            "input_tokens": 10, "cache_read_input_tokens": 5,
            "cache_creation_input_tokens": 2, "output_tokens": 1}}}),
        json!({"type": "ping"}),
        start(0, json!({"type": "thinking", "thinking": ""})),
        grow(0, json!({"type": "thinking_delta", "thinking": "let me "})),
        grow(0, json!({"type": "thinking_delta", "thinking": "see"})),
        grow(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        start(1, json!({"type": "text", "text": ""})),
        grow(1, json!({"type": "text_delta", "text": "I will "})),
        grow(1, json!({"type": "text_delta", "text": "look."})),
        stop(1),
        start(
            2,
            json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}),
        ),
        grow(
            2,
            json!({"type": "input_json_delta", "partial_json": "{\"query\":"}),
        ),
        grow(
            2,
            json!({"type": "input_json_delta", "partial_json": "\"x\"}"}),
        ),
        stop(2),
    ];
    for index in [3, 4] {
        events.push(start(
            index,
            json!({"type": "tool_use", "id": "t", "name": "shell", "input": {}}),
        ));
        let json = |piece| json!({"type": "input_json_delta", "partial_json": piece});
        events.extend(
            pieces(size)
                .into_iter()
                .map(|piece| grow(index, json(piece))),
        );
        events.push(stop(index));
    }
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
                       "usage": {"output_tokens": 42}}),
    );
    events.push(json!({"type": "message_stop"}));
    events
}

fn openai_chat(size: usize) -> Vec<Value> {
    let chunk = |delta: Value| json!({"id": "c1", "choices": [{"index": 0, "delta": delta}]});
    let mut events = vec![
        chunk(json!({"role": "assistant", "content": ""})),
        chunk(json!({"reasoning_content": "let me "})),
        chunk(json!({"reasoning_content": "see"})),
        chunk(json!({"content": "I will "})),
        chunk(json!({"content": "look."})),
    ];
    for index in [0, 1] {
        events.push(chunk(json!({"tool_calls": [{
            "index": index, "id": "t", "type": "function",
            "function": {"name": "shell", "arguments": ""}}]})));
        events.extend(pieces(size).into_iter().map(|piece| {
            chunk(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
        }));
    }
    events.push(
        json!({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    );
    events.push(json!({"id": "c1", "choices": [], "usage": {
        "prompt_tokens": 17, "completion_tokens": 42,
        "prompt_tokens_details": {"cached_tokens": 5}}}));
    events
}

fn openai_responses(size: usize) -> Vec<Value> {
    let added = |index: u64, item: Value| json!({"type": "response.output_item.added", "output_index": index, "item": item});
    let done = |index: u64, item: Value| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    let mut events = vec![
        json!({"type": "response.created", "response": {"id": "resp_1"}}),
        added(0, json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "let me "}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "see"}),
        done(
            0,
            json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "c2ln"}),
        ),
        added(
            1,
            json!({"type": "message", "role": "assistant", "content": []}),
        ),
        json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "I will "}),
        json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "look."}),
        done(1, json!({"type": "message"})),
        added(2, json!({"type": "web_search_call", "id": "ws_1"})),
        done(
            2,
            json!({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
        ),
    ];
    for index in [3, 4] {
        events.push(added(
            index,
            json!({"type": "function_call", "call_id": "t", "name": "shell"}),
        ));
        events.extend(pieces(size).into_iter().map(|piece| {
            json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": piece})
        }));
        events.push(done(index, json!({"type": "function_call"})));
    }
    events.push(
        json!({"type": "response.completed", "response": {"id": "resp_1", "usage": {
        "input_tokens": 17, "output_tokens": 42,
        "input_tokens_details": {"cached_tokens": 5}}}}),
    );
    events
}

fn gemini(_size: usize) -> Vec<Value> {
    let arguments: Value = serde_json::from_str(ARGUMENTS).unwrap();
    let parts =
        |parts: Value| json!({"responseId": "g1", "candidates": [{"content": {"parts": parts}}]});
    let call = json!({"functionCall": {"name": "shell", "args": arguments}});
    let mut signed = call.clone();
    signed["thoughtSignature"] = json!("c2ln");
    vec![
        parts(json!([{"text": "let me ", "thought": true}])),
        parts(json!([{"text": "see", "thought": true, "thoughtSignature": "c2ln"}])),
        parts(json!([{"text": "I will "}])),
        parts(json!([{"text": "look."}])),
        parts(json!([{"executableCode": {"language": "PYTHON", "code": "1"}}])),
        parts(json!([signed, call])),
        json!({"responseId": "g1", "candidates": [{"content": {"parts": []}, "finishReason": "STOP"}],
               "usageMetadata": {"promptTokenCount": 17, "cachedContentTokenCount": 5,
                                 "candidatesTokenCount": 40, "thoughtsTokenCount": 2}}),
    ]
}

fn story(wire: Wire, size: usize) -> Vec<Value> {
    match wire {
        Wire::AnthropicMessages => anthropic(size),
        Wire::OpenaiChat => openai_chat(size),
        Wire::OpenaiResponses => openai_responses(size),
        Wire::Gemini => gemini(size),
    }
}

fn read(wire: Wire, events: &[Value]) -> (Reply, Result<End, Broken>) {
    let mut decoder = Decoder::new(wire);
    let mut reply = Reply::default();
    for event in events {
        match decoder.event(&event.to_string()) {
            Ok(deltas) => deltas.into_iter().for_each(|delta| reply.apply(delta)),
            Err(broken) => return (reply, Err(broken)),
        }
    }
    (reply, decoder.finish())
}

fn finish(reply: Reply) -> Vec<Block> {
    let incarnation = Incarnation(1);
    reply.finish(TryId { incarnation, n: 1 }, [])
}

#[test]
fn every_format_tells_the_same_story_whatever_the_size_of_the_pieces() {
    for wire in Wire::ALL {
        for size in 1..=ARGUMENTS.len() {
            let (reply, end) = read(wire, &story(wire, size));
            let end = end.unwrap();
            assert_eq!(end.stop, StopReason::ToolUse, "{wire:?}");
            let usage = end.usage.unwrap();
            assert_eq!(usage.output_tokens, 42, "{wire:?}");
            assert_eq!(usage.cache_read_tokens, 5, "{wire:?}");
            assert!(end.provider_request.is_some());
            let blocks = finish(reply);
            let thinking = blocks.iter().find_map(|block| match block {
                Block::Thinking { text, .. } => Some(text.as_str()),
                _ => None,
            });
            assert_eq!(thinking, Some("let me see"), "{wire:?}");
            let text = blocks.iter().find_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                _ => None,
            });
            assert_eq!(text, Some("I will look."), "{wire:?}");
            let calls: Vec<_> = blocks.iter().filter_map(Block::as_call).collect();
            assert_eq!(calls.len(), 2, "{wire:?}");
            assert_ne!(calls[0].id, calls[1].id, "each call has an id of its own");
            for call in calls {
                assert_eq!(call.arguments, Arguments::parse(ARGUMENTS), "{wire:?}");
            }
        }
    }
}

#[test]
fn what_only_the_provider_knows_is_kept_as_it_came() {
    for wire in [Wire::AnthropicMessages, Wire::OpenaiResponses, Wire::Gemini] {
        let (reply, _) = read(wire, &story(wire, 3));
        let native = finish(reply).into_iter().find_map(|block| match block {
            Block::Native { wire, item } => Some((wire, item)),
            _ => None,
        });
        let expected = match wire {
            Wire::AnthropicMessages => json!({"type": "server_tool_use", "id": "srvtoolu_1",
                                              "name": "web_search", "input": {"query": "x"}}),
            Wire::OpenaiResponses => {
                json!({"type": "web_search_call", "id": "ws_1", "status": "completed"})
            }
            _ => json!({"executableCode": {"language": "PYTHON", "code": "1"}}),
        };
        assert_eq!(native, Some((wire, expected)));
    }
}

#[test]
fn a_stream_that_stops_anywhere_was_cut_off() {
    for wire in Wire::ALL {
        let whole = story(wire, 3);
        // Chat's last chunk contains only the usage; the reply is complete before it.
        let last = whole.len() - usize::from(wire == Wire::OpenaiChat);
        for len in 0..last {
            let (_, end) = read(wire, &whole[..len]);
            let class = end.map_err(|broken| broken.class);
            assert_eq!(class, Err(FailureClass::Dropped), "{wire:?} after {len}");
        }
    }
}

#[test]
fn a_chat_server_that_ends_with_done_alone_is_believed_if_it_said_anything() {
    let mut decoder = Decoder::new(Wire::OpenaiChat);
    decoder.event("[DONE]").unwrap();
    assert_eq!(decoder.finish().unwrap_err().class, FailureClass::Dropped);
    let mut decoder = Decoder::new(Wire::OpenaiChat);
    let chunk = json!({"choices": [{"delta": {"content": "hi"}}]}).to_string();
    decoder.event(&chunk).unwrap();
    decoder.event("[DONE]").unwrap();
    assert_eq!(decoder.finish().unwrap().usage, None);
}

/// Regression: LiteLLM ends `/v1/responses` with `[DONE]` after `response.completed`, and every turn failed.
#[test]
fn done_after_the_end_of_any_format_is_ignored() {
    for wire in Wire::ALL {
        let mut decoder = Decoder::new(wire);
        for event in story(wire, 3) {
            decoder.event(&event.to_string()).unwrap();
        }
        decoder.event("[DONE]").unwrap();
        assert_eq!(
            decoder.finish().unwrap().stop,
            StopReason::ToolUse,
            "{wire:?}"
        );
    }
    // It does not end a reply that has no end of its own.
    let mut decoder = Decoder::new(Wire::OpenaiResponses);
    let text = json!({"type": "response.output_text.delta", "delta": "half"});
    decoder.event(&text.to_string()).unwrap();
    decoder.event("[DONE]").unwrap();
    assert_eq!(decoder.finish().unwrap_err().class, FailureClass::Dropped);
}

/// Regression: the ids of messages were dropped, so their text could not be sent back as the API requires.
#[test]
fn the_text_of_a_responses_message_keeps_the_id() {
    let message = |content: Value| {
        json!({"type": "message", "id": "msg_1", "role": "assistant",
                                          "status": "completed", "content": content})
    };
    let whole = json!([{"type": "output_text", "text": "so", "annotations": []},
                       {"type": "refusal", "refusal": "no"}]);
    let events = [
        json!({"type": "response.output_item.added", "output_index": 0, "item": message(json!([]))}),
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0,
               "delta": "so"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": message(whole)}),
    ];
    let (reply, _) = read(Wire::OpenaiResponses, &events);
    let (text, wire) = ("so".to_owned(), Wire::OpenaiResponses);
    let item = message(json!([{"type": "output_text", "annotations": []}]));
    let refusal = Block::Native {
        wire,
        item: message(json!([{"type": "refusal", "refusal": "no"}])),
    };
    let expected = [Block::Annotated { text, wire, item }, refusal];
    assert_eq!(finish(reply), expected);
}

#[test]
fn signatures_and_citations_stay_with_their_text() {
    let gemini = [
        json!({"candidates": [{"content": {"parts": [{"text": "half "}]}}]}),
        json!({"candidates": [{"content": {"parts": [{"text": "done"}]}}]}),
        json!({"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": "s"}]},
                               "finishReason": "STOP"}]}),
    ];
    let (reply, _) = read(Wire::Gemini, &gemini);
    let item = json!({"text": "half done", "thoughtSignature": "s"});
    let (text, wire) = ("half done".to_owned(), Wire::Gemini);
    assert_eq!(finish(reply), [Block::Annotated { text, wire, item }]);

    let citation = json!({"type": "char_location", "cited_text": "x"});
    let anthropic = [
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "so"}}),
        json!({"type": "content_block_delta", "index": 0,
               "delta": {"type": "citations_delta", "citation": citation}}),
        json!({"type": "content_block_stop", "index": 0}),
    ];
    let (reply, _) = read(Wire::AnthropicMessages, &anthropic);
    let item = json!({"type": "text", "text": "so", "citations": [citation]});
    let (text, wire) = ("so".to_owned(), Wire::AnthropicMessages);
    assert_eq!(finish(reply), [Block::Annotated { text, wire, item }]);
}

#[test]
fn errors_in_the_stream_say_what_to_do_next() {
    let overloaded = FailureClass::Overloaded;
    let limited = FailureClass::RateLimited;
    let overflow = FailureClass::ContextOverflow;
    let cases = [
        (
            Wire::AnthropicMessages,
            json!({"type": "error", "error": {"type": "overloaded_error"}}),
            overloaded,
        ),
        (
            Wire::OpenaiChat,
            json!({"error": {"code": "context_length_exceeded"}}),
            overflow,
        ),
        (
            Wire::OpenaiResponses,
            json!({"type": "response.failed",
            "response": {"error": {"code": "rate_limit_exceeded"}}}),
            limited,
        ),
        (
            Wire::Gemini,
            json!({"error": {"status": "UNAVAILABLE"}}),
            overloaded,
        ),
    ];
    for (wire, event, class) in cases {
        let (_, end) = read(wire, &[event]);
        assert_eq!(end.unwrap_err().class, class, "{wire:?}");
    }
    for wire in Wire::ALL {
        let mut decoder = Decoder::new(wire);
        let broken = decoder.event("{\"type\": \"mess").unwrap_err();
        assert_eq!(broken.class, FailureClass::Malformed);
    }
}

/// Any input results in deltas or an error, never in a panic.
#[test]
fn junk_in_every_place_is_survived() {
    let junk = [
        json!(null),
        json!(7),
        json!("x"),
        json!([]),
        json!({"type": "text"}),
    ];
    for wire in Wire::ALL {
        let whole = story(wire, 5);
        for index in 0..whole.len() {
            for junk in &junk {
                let mut events = whole.clone();
                events[index] = junk.clone();
                let (reply, _) = read(wire, &events);
                finish(reply.clone());
                reply.cut();
            }
        }
    }
}

#[test]
fn anthropic_counts_what_it_wrote_to_the_cache() {
    let (_, end) = read(Wire::AnthropicMessages, &anthropic(3));
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 42,
        cache_read_tokens: 5,
        cache_write_tokens: 2,
    };
    assert_eq!(end.unwrap().usage, Some(usage));
}

#[test]
fn an_empty_text_does_not_take_the_sources_from_the_answer() {
    let sources = json!({"groundingChunks": [{"web": {"uri": "https://a.example"}}]});
    let gemini = [
        json!({"candidates": [{"content": {"parts": [{"text": "It rains."}]}}]}),
        json!({"candidates": [{"content": {"parts": [{"text": "hm", "thought": true}]}}]}),
        json!({"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP",
                               "groundingMetadata": sources}]}),
    ];
    let (reply, _) = read(Wire::Gemini, &gemini);
    let item = json!({"text": "It rains.", "groundingMetadata": sources});
    let (text, wire) = ("It rains.".to_owned(), Wire::Gemini);
    assert_eq!(finish(reply)[0], Block::Annotated { text, wire, item });
}
