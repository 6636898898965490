//! The Agent Client Protocol: what an agent's messages mean, and what it is sent. Pure: values in, values out.

mod client;
mod elicitation;
pub mod files;
mod replay;
mod servers;
mod updates;
pub mod work;

pub use client::{
    Asked, ClientRequest, NewTerminal, Refusal, TerminalCommand, TerminalExit, TerminalOutput,
    TerminalVerb, client_request, done, terminal_created, text_answer,
};
pub use elicitation::{
    ELICITATION, ELICITATION_CALL, question, question_arguments, question_cancelled, question_reply,
};
pub use replay::Replay;
pub use servers::servers;
pub use updates::{Costs, Updates, spent};

use super::{Delivery, LONGEST_ID, Over};
use crate::message::{AttachedFile, Block};
use serde_json::{Value, json};

/// The version of the protocol that agentd speaks.
pub const VERSION: u64 = 1;
/// The file in the directory of a conversation with what is known of its session. The program does not see it.
pub const SESSION_FILE: &str = "acp-session";

/// What an agent says about itself in its answer to `initialize`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    pub load: bool,
    pub resume: bool,
    pub close: bool,
    pub delete: bool,
    pub images: bool,
    /// MCP servers that are services.
    pub http_servers: bool,
    /// Ways to log in that it names.
    pub logins: Vec<String>,
}

impl Capabilities {
    pub fn of(answer: &Value) -> Self {
        let agent = &answer["agentCapabilities"];
        let session = |name: &str| {
            let known = &agent["sessionCapabilities"][name];
            known.is_object() || known == &Value::Bool(true)
        };
        let logins = answer["authMethods"].as_array().into_iter().flatten();
        Self {
            load: agent["loadSession"] == true,
            resume: session("resume"),
            close: session("close"),
            delete: session("delete"),
            images: agent["promptCapabilities"]["image"] == true,
            http_servers: agent["mcpCapabilities"]["http"] == true,
            logins: logins
                .filter_map(|method| Some(method["name"].as_str()?.to_owned()))
                .collect(),
        }
    }
}

/// What agentd offers to an agent as its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Files and terminals, in the agent's sandbox, and questions to the user.
    All,
    /// The agent is only asked to delete a session.
    Nothing,
}

/// The parameters of `initialize`.
pub fn initialize(version: &str, offer: Offer) -> Value {
    let capabilities = match offer {
        Offer::All => json!({
            "fs": {"readTextFile": true, "writeTextFile": true},
            "terminal": true,
            "elicitation": {"form": {}, "url": {}},
        }),
        Offer::Nothing => json!({
            "fs": {"readTextFile": false, "writeTextFile": false},
            "terminal": false,
        }),
    };
    json!({
        "protocolVersion": VERSION,
        "clientCapabilities": capabilities,
        "clientInfo": {"name": "agentd", "version": version},
    })
}

/// An error for users if the agent speaks another version of the protocol.
pub fn check_version(answer: &Value) -> Result<(), String> {
    match answer["protocolVersion"].as_u64() {
        Some(VERSION) => Ok(()),
        other => {
            let other = other.map_or_else(|| "no version".to_owned(), |it| format!("version {it}"));
            Err(format!(
                "the agent's program speaks {other} of the Agent Client Protocol, and agentd speaks version {VERSION}; \
                 use a release of the program that speaks version {VERSION}"
            ))
        }
    }
}

/// The content of a prompt. A new session is told the conversation so far.
pub fn prompt(delivery: &Delivery, capabilities: &Capabilities, is_new: bool) -> Vec<Value> {
    let mut content = Vec::new();
    if let Some(so_far) = delivery.so_far.as_ref().filter(|_| is_new) {
        let text = format!(
            "[agentd] This conversation began in an earlier process. What follows is a record of it, possibly \
             shortened; do not repeat what it says was done.\n\n{so_far}\n\n[agentd] The conversation goes on:"
        );
        content.push(text_content(&text));
    }
    for notice in &delivery.notices {
        content.push(text_content(&format!("[agentd] {notice}")));
    }
    content.extend(delivery.prompts.iter().flatten().filter_map(|block| {
        Some(match block {
            Block::Text { text } | Block::Annotated { text, .. } | Block::Notice { text } => {
                text_content(text)
            }
            Block::Image { media_type, data } => image(media_type, data, capabilities),
            Block::Attachment(attachment) => match &attachment.file {
                AttachedFile::Text { text } => {
                    text_content(&format!("File {}:\n{text}", attachment.name))
                }
                AttachedFile::Image { media_type, data } => image(media_type, data, capabilities),
                AttachedFile::Pdf { .. } => {
                    let name = &attachment.name;
                    text_content(&format!("[the PDF {name} cannot be given to this agent]"))
                }
            },
            _ => return None,
        })
    }));
    content
}

fn text_content(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image(media_type: &str, data: &str, capabilities: &Capabilities) -> Value {
    match capabilities.images {
        true => json!({"type": "image", "mimeType": media_type, "data": data}),
        false => text_content("[an image that this agent does not accept]"),
    }
}

/// How the answer to `session/prompt` ends the turn.
pub fn over(answer: &Value) -> Over {
    match answer["stopReason"].as_str() {
        Some("cancelled") => Over::Interrupted,
        Some("refusal") => Over::Failed("the agent's program refused to answer".to_owned()),
        Some("max_tokens") => {
            Over::Failed("the agent's program reached the longest answer of its model".to_owned())
        }
        Some("max_turn_requests") => {
            Over::Failed("the agent's program reached its limit of requests".to_owned())
        }
        _ => Over::Answered,
    }
}

/// An error of the agent, for users. Errors about a missing login name the ways to log in.
pub fn failure(method: &str, error: &Value, capabilities: &Capabilities) -> String {
    let message = error["message"].as_str().unwrap_or("unknown error");
    let detail = match &error["data"] {
        Value::Null => String::new(),
        Value::String(text) => format!(" ({text})"),
        data => format!(" ({data})"),
    };
    let login = match (error["code"].as_i64(), capabilities.logins.is_empty()) {
        (Some(-32000), false) => format!(
            "; log in with the program itself ({}), or pass its key with `env: {{NAME: \"${{NAME}}\"}}`",
            capabilities.logins.join(", ")
        ),
        (Some(-32000), true) => {
            "; pass its key with `env: {NAME: \"${NAME}\"}` in the agent file".to_owned()
        }
        _ => String::new(),
    };
    format!("the agent's program answered {method} with an error: {message}{detail}{login}")
}

/// The option of a permission request that means yes or no, for this call only if there is one.
pub fn choice(options: &Value, is_allowed: Allowed) -> Option<String> {
    let kinds = match is_allowed {
        Allowed::Yes => ["allow_once", "allow_always"],
        Allowed::No => ["reject_once", "reject_always"],
    };
    let options = options.as_array()?;
    kinds.iter().find_map(|kind| {
        let found = options.iter().find(|option| option["kind"] == *kind)?;
        let id = found["optionId"].as_str()?;
        (id.len() <= LONGEST_ID).then(|| id.to_owned())
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    Yes,
    No,
}
