//! Turns a window into the next model request. Pure: the same journal always gives the same bytes.

mod files;
mod omission;
mod parts;
mod project;

pub use files::check_attachments;
pub use omission::Omission;
pub(crate) use parts::entry_tokens;
pub use parts::{Part, PartKind, parts};
pub use project::project;

use crate::attachment::{image_tokens, pdf_tokens};
use crate::event::{Context, Position, Purpose};
use crate::message::{AttachedFile, Attachment, Block, Message, Role};
use crate::repair::{Repair, repair};
use crate::window::Window;
use parts::tool_bytes;

/// A request in a provider-neutral form; [`crate::wire`] translates it to each provider's format.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub purpose: Purpose,
    pub context: Context,
    /// False if there are no tools, or if they are listed only because the history contains calls.
    pub may_call: bool,
    pub messages: Vec<Message>,
    /// What part of the window is not sent, and why.
    pub omissions: Vec<Omission>,
    /// What had to be changed to make the history valid.
    pub repairs: Vec<Repair>,
}

const COMPACT_INSTRUCTION: &str = "Summarise the conversation so far for yourself: you will \
    continue from your summary alone. Keep the user's goals and constraints, decisions and their reasons, \
    what was done and found (paths, commands, names, numbers), what is still open and what comes \
    next. A message of the user that you have not finished answering will follow your summary word \
    for word: state how far you are with it. Answer with the summary only; call no tool.";

/// The request for the next answer, or `None` if nothing awaits one.
pub fn answer(window: &Window, context: &Context) -> Option<Request> {
    window
        .awaits_answer()
        .then(|| build(window, context, Purpose::Answer, None))
}

/// Asks for a summary of the window up to `through`: of everything that the summary will replace, and of nothing
/// else.
pub fn summary(
    window: &Window,
    context: &Context,
    through: Position,
    instruction: Option<&str>,
) -> Request {
    let ask = match instruction {
        Some(more) => format!("{COMPACT_INSTRUCTION} The user's additional instruction: {more}"),
        None => COMPACT_INSTRUCTION.to_owned(),
    };
    build(&window.up_to(through), context, Purpose::Compact, Some(ask))
}

fn build(window: &Window, context: &Context, purpose: Purpose, ask: Option<String>) -> Request {
    let (mut messages, omissions) = project(window, context);
    if let Some(ask) = ask {
        messages.push(Message::user(vec![Block::text(ask)]));
    }
    let (messages, repairs) = repair(messages);
    let mut context = context.clone();
    let has_tools = !context.tools.is_empty() || !context.server_tools.is_empty();
    let mut may_call = purpose == Purpose::Answer && has_tools;
    let has_calls = messages
        .iter()
        .any(|message| message.role == Role::Assistant && message.calls().next().is_some());
    if has_calls && context.tools.is_empty() {
        // Providers refuse calls in the history if the request has no tool list.
        context.tools = known_tools(window, &messages);
        may_call = false;
    }
    Request {
        purpose,
        context,
        may_call,
        messages,
        omissions,
        repairs,
    }
}

/// The tools that the model last had. For an imported history, a tool for each name that it calls.
fn known_tools(window: &Window, messages: &[Message]) -> Vec<crate::event::Tool> {
    if !window.last_tools().is_empty() {
        return window.last_tools().to_vec();
    }
    let names: std::collections::BTreeSet<&str> = messages
        .iter()
        .flat_map(Message::calls)
        .map(|call| call.name.as_str())
        .collect();
    names
        .into_iter()
        .map(|name| crate::event::Tool {
            name: name.to_owned(),
            description: "No longer available.".to_owned(),
            parameters: serde_json::json!({"type": "object", "properties": {}}),
        })
        .collect()
}

/// A conservative estimate of the number of tokens of a request: about one for every three bytes.
pub fn estimate_tokens(request: &Request) -> u64 {
    let mut bytes = request.context.system.len();
    bytes += request.context.tools.iter().map(tool_bytes).sum::<usize>();
    for message in &request.messages {
        bytes += 16 + message.blocks.iter().map(estimate_bytes).sum::<usize>();
    }
    tokens(bytes)
}

const fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(3) as u64
}

/// The text that would have as many tokens.
fn bytes_of(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(3)).unwrap_or(usize::MAX)
}

/// The cost of a file depends on its pixels or pages, not on its bytes.
fn attachment_bytes(attachment: &Attachment) -> usize {
    let marker = attachment.name.len() + 48;
    marker
        + match &attachment.file {
            AttachedFile::Text { text } => text.len(),
            AttachedFile::Image { media_type, data } => bytes_of(image_tokens(media_type, data)),
            AttachedFile::Pdf { pages, .. } => bytes_of(pdf_tokens(*pages)),
        }
}

pub(crate) fn estimate_bytes(block: &Block) -> usize {
    match block {
        Block::Text { text } | Block::Notice { text } => text.len() + 8,
        Block::Thinking { text, signature } => {
            text.len() + signature.as_ref().map_or(0, |s| s.value.len())
        }
        Block::Image { media_type, data } => bytes_of(image_tokens(media_type, data)),
        Block::Attachment(attachment) => attachment_bytes(attachment),
        Block::ToolCall(call) => {
            call.name.len()
                + serde_json::Value::Object(call.arguments.to_object())
                    .to_string()
                    .len()
                + 32
        }
        Block::ToolResult(result) => 32 + result.blocks.iter().map(estimate_bytes).sum::<usize>(),
        Block::Native { item, .. } => item.to_string().len(),
        Block::Annotated { text, item, .. } => {
            // Most items contain the text; those of OpenAI do not.
            let bytes = item.to_string().len();
            if bytes < text.len() {
                bytes + text.len()
            } else {
                bytes
            }
        }
        Block::Cut { .. } => 0,
    }
}

#[cfg(test)]
mod tests;
