//! The demo's model, and its one tool. No network and no chance in it: it multiplies by calling the
//! tool, and it counts in words of its own, from where it was when it was cut off.

use agentd_core::draft::{Change, Delta};
use agentd_core::event::{Context, StopReason, Tool};
use agentd_core::id::CallId;
use agentd_core::message::{Arguments, Block, CallOutcome, Role, ToolCall, Wire};
use agentd_core::request::Request;
use serde_json::json;

pub const MULTIPLY: &str = "multiply";

/// Numbers that come in one piece while it counts.
const NUMBERS_IN_A_PIECE: u64 = 4;

/// What a request holds besides its messages.
pub fn context() -> Context {
    Context {
        provider: "demo".to_owned(),
        wire: Wire::AnthropicMessages,
        model: "script".to_owned(),
        system: "You calculate.".to_owned(),
        tools: vec![Tool {
            name: MULTIPLY.to_owned(),
            description: "Multiplies two numbers.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
            }),
        }],
        max_output_tokens: 64_000,
        temperature: None,
        thinking_tokens: None,
    }
}

/// A prompt that is answered with a product.
pub fn ask_for_product(a: u64, b: u64) -> String {
    format!("What is {a} × {b}?")
}

/// A prompt that is answered with a long text.
pub fn ask_to_count(to: u64) -> String {
    format!("Count from 1 to {to}.")
}

/// A reply, as it streams.
pub struct Answer {
    pub deltas: Vec<Delta>,
    pub stop: StopReason,
}

pub fn answer(request: &Request) -> Answer {
    let last = request.messages.last();
    let result = last.and_then(|message| message.blocks.iter().find_map(Block::as_result));
    if let Some(result) = result {
        return say(&format!("It is {}.", text_of(&result.blocks)));
    }
    let (prompt, said) = newest_prompt(request);
    match numbers(&prompt).as_slice() {
        [1, to] => count(numbers(&said).last().map_or(1, |last| last + 1), *to),
        [a, b] => call(*a, *b, request.messages.len()),
        _ => say("I can multiply two numbers, and count."),
    }
}

/// What the tool says.
pub fn multiply(call: &ToolCall) -> (CallOutcome, Vec<Block>) {
    let factor = |name: &str| match &call.arguments {
        Arguments::Object(arguments) => arguments.get(name)?.as_u64(),
        Arguments::Malformed(_) => None,
    };
    let product = factor("a").and_then(|a| a.checked_mul(factor("b")?));
    match product {
        Some(product) => (CallOutcome::Ok, vec![Block::text(product.to_string())]),
        None => {
            let text = "`a` and `b` must be numbers whose product fits.";
            (CallOutcome::Error, vec![Block::text(text)])
        }
    }
}

/// What the user asked last, and what was said in answer to it so far.
fn newest_prompt(request: &Request) -> (String, String) {
    let mut said = Vec::new();
    for message in request.messages.iter().rev() {
        let text = text_of(&message.blocks);
        match message.role {
            Role::Assistant => said.push(text),
            // A notice or a result holds no text of the user's.
            Role::User if text.is_empty() => {}
            Role::User => return (text, said.into_iter().rev().collect()),
        }
    }
    (String::new(), String::new())
}

pub fn text_of(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The numbers in a text, in order.
pub fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

fn text(part: usize, text: String) -> Delta {
    let change = Change::Text { text };
    Delta { part, change }
}

fn say(what: &str) -> Answer {
    let words = what.split_inclusive(' ');
    Answer {
        deltas: words.map(|word| text(0, word.to_owned())).collect(),
        stop: StopReason::EndTurn,
    }
}

fn call(a: u64, b: u64, message: usize) -> Answer {
    let mut deltas = say("Let me calculate that.").deltas;
    let id = CallId::new(format!("call_{message}"));
    let name = MULTIPLY.to_owned();
    let json = json!({"a": a, "b": b}).to_string();
    deltas.extend(
        [Change::Call { id, name }, Change::Arguments { json }]
            .map(|change| Delta { part: 1, change }),
    );
    Answer {
        deltas,
        stop: StopReason::ToolUse,
    }
}

fn count(from: u64, to: u64) -> Answer {
    let mut deltas = Vec::new();
    let mut next = from;
    while next <= to {
        let end = to.min(next + NUMBERS_IN_A_PIECE - 1);
        let piece: String = (next..=end).map(|number| format!("{number} ")).collect();
        deltas.push(text(0, piece));
        next = end + 1;
    }
    if deltas.is_empty() {
        return say("Done.");
    }
    Answer {
        deltas,
        stop: StopReason::EndTurn,
    }
}
