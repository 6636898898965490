//! A prompt of the editor as a text and attachments.

use crate::error::{Error, Exit};
use agent_client_protocol::v1::schema::{
    ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent,
};
use agentd_client::api::NewAttachment;

/// The longest name of an attachment, in bytes.
const LONGEST_NAME: usize = 200;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    pub text: String,
    pub attachments: Vec<NewAttachment>,
}

/// Text stays as it is. An image or an embedded resource is attached; a link stays a link: the agent has tools to read it.
pub fn read(blocks: Vec<ContentBlock>) -> Result<Given, Error> {
    let mut given = Given::default();
    for block in blocks {
        match block {
            ContentBlock::Text(text) => given.text.push_str(&text.text),
            ContentBlock::ResourceLink(link) => given.link(&link.name, &link.uri),
            ContentBlock::Image(image) => given.image(&image),
            ContentBlock::Resource(resource) => given.resource(resource),
            ContentBlock::Audio(_) => return Err(refused("audio")),
            _ => return Err(refused("such content")),
        }
    }
    if given.text.trim().is_empty() && given.attachments.is_empty() {
        let error = Error::new(Exit::Usage, "the prompt is empty");
        return Err(error.next("write a text, or attach an image or a file"));
    }
    Ok(given)
}

fn refused(what: &str) -> Error {
    Error::new(Exit::Usage, format!("a prompt cannot contain {what}"))
        .next("send text, images, resources or links to resources")
}

impl Given {
    fn link(&mut self, name: &str, uri: &str) {
        self.text.push_str(&format!("[{name}]({uri})"));
    }

    fn image(&mut self, image: &ImageContent) {
        let kind = image.mime_type.rsplit('/').next().unwrap_or("png");
        let number = self.attachments.len() + 1;
        let name = image.uri.as_deref().map(name_of);
        self.attachments.push(NewAttachment {
            name: name.unwrap_or_else(|| cleaned(&format!("image-{number}.{kind}"))),
            // Recognized by its content, as every attachment.
            media_type: None,
            data: image.data.clone(),
        });
    }

    fn resource(&mut self, resource: EmbeddedResource) {
        let (uri, attachment) = match resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                let name = name_of(&text.uri);
                // An empty file cannot be attached.
                let attachment = (!text.text.is_empty())
                    .then(|| NewAttachment::of_bytes(name, text.text.as_bytes()));
                (text.uri, attachment)
            }
            EmbeddedResourceResource::BlobResourceContents(blob) => {
                let attachment = NewAttachment {
                    name: name_of(&blob.uri),
                    media_type: None,
                    data: blob.blob,
                };
                (blob.uri, Some(attachment))
            }
            _ => return,
        };
        self.link(&name_of(&uri), &uri);
        self.attachments.extend(attachment);
    }
}

/// The last part of an address.
fn name_of(uri: &str) -> String {
    let path = uri.split(['#', '?']).next().unwrap_or_default();
    let last = path.rsplit('/').find(|part| !part.is_empty());
    cleaned(last.unwrap_or_default())
}

fn cleaned(name: &str) -> String {
    let mut kept = String::new();
    for c in name.chars().filter(|c| !c.is_control()) {
        if kept.len() + c.len_utf8() > LONGEST_NAME {
            break;
        }
        kept.push(c);
    }
    match kept.is_empty() {
        true => "resource".to_owned(),
        false => kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn blocks(value: serde_json::Value) -> Vec<ContentBlock> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn resources_are_attached_where_they_are_mentioned() {
        let given = read(blocks(json!([
            {"type": "text", "text": "compare "},
            {"type": "resource", "resource": {"uri": "file:///w/src/lib.rs#L1", "text": "fn a() {}"}},
            {"type": "text", "text": " with "},
            {"type": "resource_link", "name": "b.rs", "uri": "file:///w/src/b.rs"},
            {"type": "image", "mimeType": "image/png", "data": "aGk="},
            {"type": "resource", "resource": {"uri": "file:///w/empty", "text": ""}},
        ])))
        .unwrap();
        assert_eq!(
            given.text,
            "compare [lib.rs](file:///w/src/lib.rs#L1) with [b.rs](file:///w/src/b.rs)[empty](file:///w/empty)"
        );
        let names: Vec<&str> = given
            .attachments
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(names, ["lib.rs", "image-2.png"]);
    }

    #[test]
    fn audio_and_empty_prompts_are_refused_with_a_next_step() {
        let audio = json!([{"type": "audio", "mimeType": "audio/wav", "data": "aGk="}]);
        for wrong in [audio, json!([]), json!([{"type": "text", "text": " \n"}])] {
            let error = read(blocks(wrong)).unwrap_err();
            assert!(error.advice().is_some(), "{error}");
        }
    }

    #[test]
    fn a_name_is_short_and_has_no_control_characters() {
        assert_eq!(name_of("file:///a/b\u{1b}.rs?x#y"), "b.rs");
        assert_eq!(name_of(""), "resource");
        assert_eq!(name_of(&"ü".repeat(500)).len(), LONGEST_NAME);
    }
}
