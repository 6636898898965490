//! An attached PDF in each format.

use super::body;
use crate::message::{AttachedFile, Attachment, Block, Message, Wire};
use crate::wire::messages;
use serde_json::json;

#[test]
fn a_pdf_is_a_document_a_file_or_inline_data() {
    let pdf = Block::Attachment(Attachment {
        name: "a.pdf".to_owned(),
        file: AttachedFile::Pdf {
            pages: 1,
            data: "JVBERi0=".to_owned(),
        },
    });
    let part = |wire, key: &str| {
        let sent = vec![
            Message::user(vec![Block::text("read"), pdf.clone()]),
            Message::assistant(vec![Block::text("I have.")]),
            Message::user(vec![Block::text("and?")]),
        ];
        let body = body(wire, sent);
        let messages = messages(wire, &body).unwrap().iter();
        let mut users = messages.filter(|message| message["role"] == "user");
        users.next().unwrap()[key][1].clone()
    };
    let url = "data:application/pdf;base64,JVBERi0=";
    assert_eq!(
        part(Wire::AnthropicMessages, "content"),
        json!({"type": "document", "title": "a.pdf", "source":
            {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}})
    );
    assert_eq!(
        part(Wire::OpenaiChat, "content"),
        json!({"type": "file", "file": {"filename": "a.pdf", "file_data": url}})
    );
    assert_eq!(
        part(Wire::OpenaiResponses, "content"),
        json!({"type": "input_file", "filename": "a.pdf", "file_data": url})
    );
    assert_eq!(
        part(Wire::Gemini, "parts"),
        json!({"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}})
    );
}
