//! One call of a tool: its time limit, its cancellation, and its result as blocks.

use super::asking::{Asker, Running};
use super::connect::Connection;
use super::progress::Showing;
use super::short;
use super::time_limit::TimeLimit;
use agentd_core::attachment::image_type;
use agentd_core::message::Block;
use base64::Engine as _;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam,
    ClientRequest, ContentBlock, InputRequest, InputRequests, InputResponses, RequestId,
    ResourceContents, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::{Map, Value};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;

/// How often a server may ask for input during one call.
const MOST_ROUNDS: usize = 10;
/// How long it may take to tell a server that a call was cancelled.
const TELLING: Duration = Duration::from_secs(1);
const UNKNOWN: &str = "[content of an unknown kind was left out]";
/// The most images of one result, and the largest, in bytes of base64.
const MOST_IMAGES: usize = 8;
const IMAGE_BYTES: usize = 5 * 1024 * 1024;

/// What a server answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub is_error: bool,
    pub text: String,
    pub images: Vec<Block>,
}

/// A call without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It was not sent, or the server answered with an error.
    Refused(String),
    /// The server had it, and what became of it is unknown.
    Unknown(String),
    /// The user interrupted it.
    Cancelled,
}

/// What a call needs.
pub(super) struct Calling<'a> {
    pub connection: &'a Connection,
    pub asker: &'a Asker,
    pub running: &'a Running<'a>,
    pub tool: &'a str,
    /// How long the server may be silent.
    pub limit: Duration,
}

impl Calling<'_> {
    pub async fn call(
        &self,
        arguments: Map<String, Value>,
        cancelled: impl Future<Output = ()>,
    ) -> Result<Answer, Cut> {
        let mut cancelled = std::pin::pin!(cancelled);
        let mut params = CallToolRequestParams::new(self.tool.to_owned()).with_arguments(arguments);
        for _ in 0..MOST_ROUNDS {
            let request = CallToolRequest::new(params.clone());
            let request = ClientRequest::CallToolRequest(request);
            let response = self.response(request, cancelled.as_mut()).await?;
            let Ok(ServerResult::InputRequiredResult(required)) = response else {
                return outcome(self.connection, response).await;
            };
            // The server has ended this request, and does the call when it gets the input. It has no state in between.
            params.request_state = required.request_state;
            let input = self.input(required.input_requests.unwrap_or_default());
            let responses = tokio::select! {
                biased;
                () = cancelled.as_mut() => return Err(Cut::Cancelled),
                responses = input => responses?,
            };
            params.input_responses = Some(responses);
        }
        let text = "The server asked for input again and again; the call was given up.";
        Err(Cut::Unknown(text.to_owned()))
    }

    /// The user's input for a call that requires it.
    async fn input(&self, requests: InputRequests) -> Result<InputResponses, Cut> {
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let InputRequest::Elicitation(request) = request else {
                let text = "The server asks for sampling or roots, which agentd refuses. The call was not completed.";
                return Err(Cut::Refused(text.to_owned()));
            };
            let result = self.asker.ask(self.running.call(), request.params).await;
            let result = serde_json::to_value(result).unwrap_or_default();
            responses.insert(key, result);
        }
        Ok(responses)
    }

    /// Sends a request and waits for its response. The time limits of the library are not used: it would wait without a
    /// limit until a server that does not read has been told of them.
    async fn response(
        &self,
        request: ClientRequest,
        mut cancelled: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Result<ServerResult, ServiceError>, Cut> {
        let (connection, limit) = (self.connection, self.limit);
        let mut handle = send(connection, request, limit).await?;
        let mut progress = connection.progress.follow(handle.progress_token.clone());
        let mut showing = Showing::default();
        let mut waits = self.running.waits();
        let mut time = TimeLimit::new(Instant::now(), limit);
        loop {
            tokio::select! {
                biased;
                () = cancelled.as_mut() => {
                    tell_cancelled(connection, handle.id, "interrupted by the user").await;
                    return Err(Cut::Cancelled);
                }
                response = &mut handle.rx => {
                    return Ok(response.unwrap_or(Err(ServiceError::TransportClosed)));
                }
                // The server waits for the user.
                Ok(()) = waits.changed() => match *waits.borrow_and_update() {
                    true => time.pause(Instant::now()),
                    false => time.resume(Instant::now()),
                },
                report = showing.next() => self.asker.progress(self.running.call(), &report),
                report = progress.next() => {
                    showing.report(report);
                    time.progress(Instant::now());
                }
                () = until(time.ends_at()) => {
                    tell_cancelled(connection, handle.id, "the time limit was reached").await;
                    let seconds = limit.as_secs().max(1);
                    let text = format!("The server did not answer within {seconds} s.");
                    return Err(Cut::Unknown(text));
                }
            }
        }
    }
}

/// Never returns if there is nothing to wait for.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Passes the request on to the connection.
async fn send(
    connection: &Connection,
    request: ClientRequest,
    limit: Duration,
) -> Result<RequestHandle<RoleClient>, Cut> {
    let options = PeerRequestOptions::no_options();
    let sending = connection.peer.send_request_with_option(request, options);
    let why = match tokio::time::timeout(limit, sending).await {
        Ok(Ok(handle)) => return Ok(handle),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the server does not read".to_owned(),
    };
    connection.mark_broken();
    Err(Cut::Refused(format!("The call was not sent: {why}.")))
}

/// A server that cannot be told, because it is gone or does not read, gets a new connection at the next use.
async fn tell_cancelled(connection: &Connection, id: RequestId, reason: &str) {
    let told = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
    let telling = connection.peer.notify_cancelled(told);
    let told = tokio::time::timeout(TELLING, telling).await;
    if !matches!(told, Ok(Ok(()))) {
        connection.mark_broken();
    }
}

async fn outcome(
    connection: &Connection,
    response: Result<ServerResult, ServiceError>,
) -> Result<Answer, Cut> {
    match response {
        Ok(ServerResult::CallToolResult(result)) => Ok(answer(result)),
        Ok(ServerResult::CreateTaskResult(_)) => {
            let text = "The server does the call in the background, which agentd does not support.";
            Err(Cut::Unknown(text.to_owned()))
        }
        Ok(_) => Err(Cut::Unknown(
            "The server's answer is not a result.".to_owned(),
        )),
        Err(ServiceError::McpError(error)) => {
            let text = format!(
                "The server answered with an error: {}",
                short(&error.message)
            );
            Err(Cut::Refused(text))
        }
        Err(ServiceError::TransportClosed) => {
            // With its exit code and the end of its stderr, if it is a program.
            let how = connection.close().await;
            Err(Cut::Unknown(format!(
                "The server ended during the call{how}."
            )))
        }
        Err(error) => {
            connection.mark_broken();
            let text = format!("The connection broke: {}.", short(&error.to_string()));
            Err(Cut::Unknown(text))
        }
    }
}

fn answer(result: CallToolResult) -> Answer {
    let (mut texts, images) = contents(result.content);
    if texts.is_empty() && images.is_empty() {
        texts.extend(result.structured_content.map(|value| value.to_string()));
    }
    Answer {
        is_error: result.is_error == Some(true),
        text: texts.join("\n"),
        images,
    }
}

/// The content as one text. Images are replaced by a sentence.
pub(super) fn as_text(blocks: impl IntoIterator<Item = ContentBlock>) -> String {
    let (mut texts, images) = contents(blocks);
    if !images.is_empty() {
        texts.push(format!("[{} images were left out]", images.len()));
    }
    texts.join("\n")
}

fn contents(blocks: impl IntoIterator<Item = ContentBlock>) -> (Vec<String>, Vec<Block>) {
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for block in blocks {
        match block {
            ContentBlock::Text(text) => texts.push(text.text),
            ContentBlock::Image(image) => {
                picture(image.data, &image.mime_type, &mut images, &mut texts)
            }
            ContentBlock::Audio(audio) => texts.push(omitted(&audio.mime_type, audio.data.len())),
            ContentBlock::Resource(embedded) => match embedded.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    texts.push(format!("{uri}:\n{text}"));
                }
                ResourceContents::BlobResourceContents {
                    blob, mime_type, ..
                } => {
                    let called = mime_type.as_deref().unwrap_or("data");
                    picture(blob, called, &mut images, &mut texts);
                }
                _ => texts.push(UNKNOWN.to_owned()),
            },
            ContentBlock::ResourceLink(link) => {
                texts.push(format!("[resource {}: {}]", link.name, link.uri));
            }
            _ => texts.push(UNKNOWN.to_owned()),
        }
    }
    (texts, images)
}

/// An image by its content, whatever the server calls it. Anything else is replaced by a sentence.
fn picture(data: String, called: &str, images: &mut Vec<Block>, texts: &mut Vec<String>) {
    let bytes = base64::engine::general_purpose::STANDARD.decode(data.as_bytes());
    let media_type = bytes.ok().and_then(|bytes| image_type(&bytes));
    match media_type {
        Some(media_type) if images.len() < MOST_IMAGES && data.len() <= IMAGE_BYTES => {
            let media_type = media_type.to_owned();
            images.push(Block::Image { media_type, data });
        }
        _ => texts.push(omitted(called, data.len())),
    }
}

fn omitted(kind: &str, base64_bytes: usize) -> String {
    let kind: String = kind.chars().filter(|c| !c.is_control()).take(64).collect();
    format!("[{kind} of {} bytes was left out]", base64_bytes / 4 * 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(content: Value) -> Answer {
        answer(serde_json::from_value(json!({ "content": content })).unwrap())
    }

    #[test]
    fn an_image_is_known_by_its_content() {
        let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
        let answer = read(json!([
            {"type": "text", "text": "here"},
            {"type": "image", "data": png, "mimeType": "image/gif"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
        ]));
        let Block::Image { media_type, .. } = &answer.images[0] else {
            panic!("{answer:?}");
        };
        assert_eq!((media_type.as_str(), answer.images.len()), ("image/png", 1));
        assert!(
            answer
                .text
                .starts_with("here\n[image/png of 3 bytes was left out]")
        );
    }

    #[test]
    fn a_structured_result_without_content_is_shown() {
        let result = json!({"content": [], "structuredContent": {"a": 1}, "isError": true});
        let answer = answer(serde_json::from_value(result).unwrap());
        assert_eq!((answer.text.as_str(), answer.is_error), ("{\"a\":1}", true));
    }
}
