//! Resources and prompts of a server, for a user who names them.

use super::connect::Connection;
use super::{Error, call, short};
use agentd_core::mcp::work::Piece;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, ReadResourceRequestParams, ReadResourceResponse,
    ResourceContents,
};
use rmcp::service::ServiceError;
use serde_json::{Map, Value};
use std::time::Duration;

/// How many parts of a resource are read.
const MOST_PIECES: usize = 16;

pub(super) async fn resource(
    connection: &Connection,
    uri: &str,
    limit: Duration,
) -> Result<Vec<Piece>, Error> {
    let params = ReadResourceRequestParams::new(uri);
    let read = tokio::time::timeout(limit, connection.peer.read_resource_once(params)).await;
    match read.map_err(|_| Error::Silent(limit))?.map_err(refused)? {
        ReadResourceResponse::Complete(result) => {
            let pieces = result.contents.into_iter().filter_map(piece);
            Ok(pieces.take(MOST_PIECES).collect())
        }
        _ => Err(Error::Protocol("it asks the user for input".to_owned())),
    }
}

fn piece(contents: ResourceContents) -> Option<Piece> {
    match contents {
        ResourceContents::TextResourceContents {
            uri,
            mime_type,
            text,
            ..
        } => Some(Piece {
            uri,
            media_type: mime_type,
            text: Some(text),
            data: None,
        }),
        ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            ..
        } => Some(Piece {
            uri,
            media_type: mime_type,
            text: None,
            data: Some(blob),
        }),
        _ => None,
    }
}

/// The messages of a prompt as one text. Images in it are replaced by a sentence.
pub(super) async fn prompt(
    connection: &Connection,
    name: &str,
    arguments: Map<String, Value>,
    limit: Duration,
) -> Result<String, Error> {
    let params = GetPromptRequestParams::new(name).with_arguments(arguments);
    let got = tokio::time::timeout(limit, connection.peer.get_prompt_once(params)).await;
    match got.map_err(|_| Error::Silent(limit))?.map_err(refused)? {
        GetPromptResponse::Complete(result) => {
            let contents = result.messages.into_iter().map(|message| message.content);
            Ok(call::as_text(contents))
        }
        _ => Err(Error::Protocol("it asks the user for input".to_owned())),
    }
}

fn refused(error: ServiceError) -> Error {
    match error {
        ServiceError::McpError(error) => Error::Protocol(short(&error.message)),
        ServiceError::TransportClosed => Error::Ended(String::new()),
        other => Error::Protocol(short(&other.to_string())),
    }
}
