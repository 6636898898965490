//! Prompts as programs send them: frames that end with NUL, each a plain prompt or a JSON object.
//!
//! A frame that begins with `{` and has a `v` is an object. Any other frame is the text of a prompt.

use crate::attachment::{self, MAX_STORED_BYTES, NewAttachment};
use crate::event::{Decision, PromptMode};
use crate::id::ApprovalId;
use crate::message::Block;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The version of frames that this build reads.
pub const VERSION: u64 = 1;
/// The size limit of one frame, with its attachments.
pub const MAX_BYTES: usize = 40 * 1024 * 1024;
/// The size limit of the text of a prompt.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// What a frame requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    Prompt(PromptFrame),
    /// A decision about a call that is waiting for approval.
    Answer {
        approval: ApprovalId,
        decision: Decision,
    },
    /// Continue the turn that ended as `limited`, or the turn that waits after a crash.
    Continue,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PromptFrame {
    /// The sender's own id for it. A prompt that is sent twice is delivered once.
    pub turn_id: Option<String>,
    pub blocks: Vec<Block>,
    /// What it does to a running turn; `None` leaves the choice to the receiver.
    pub mode: Option<PromptMode>,
    /// Returned with the result.
    pub metadata: Option<Map<String, Value>>,
}

/// A frame that cannot be processed. The frames after it are read normally.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("the frame is larger than {MAX_BYTES} bytes; attach less")]
    TooLarge,
    #[error(
        "the text of the prompt is larger than {MAX_TEXT_BYTES} bytes; send less, or put it into a file"
    )]
    LongText,
    #[error("{0}; {next}", next = .0.next())]
    Attachment(#[from] attachment::Refused),
    #[error("the frame is not UTF-8, starting at byte {at}")]
    NotText { at: usize },
    #[error("the frame has version {found}; this agentd reads version {VERSION}")]
    Version { found: String },
    #[error("the frame cannot be read: {reason}")]
    Malformed { reason: String },
    #[error("the frame is empty")]
    Empty,
}

impl FrameError {
    /// A machine-readable name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::TooLarge | Self::LongText => "frame_too_large",
            Self::Attachment(_) => "attachment_refused",
            Self::NotText { .. } => "frame_not_text",
            Self::Version { .. } => "frame_version",
            Self::Malformed { .. } => "frame_malformed",
            Self::Empty => "frame_empty",
        }
    }
}

/// Splits a stream of bytes into frames. A frame that is too large is dropped while it arrives, and reported once.
#[derive(Debug, Default)]
pub struct Splitter {
    held: Vec<u8>,
    too_large: bool,
}

impl Splitter {
    /// The frames that are complete with these bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Result<Vec<u8>, FrameError>> {
        let mut frames = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == 0) {
            let (piece, ends) = match piece.split_last() {
                Some((0, piece)) => (piece, true),
                _ => (piece, false),
            };
            if self.held.len() + piece.len() > MAX_BYTES {
                self.too_large = true;
                self.held = Vec::new();
            }
            if !self.too_large {
                self.held.extend_from_slice(piece);
            }
            if ends {
                frames.extend(self.finish());
            }
        }
        frames
    }

    /// The last frame, if the stream ends without a NUL.
    pub fn finish(&mut self) -> Option<Result<Vec<u8>, FrameError>> {
        let frame = std::mem::take(&mut self.held);
        if std::mem::take(&mut self.too_large) {
            return Some(Err(FrameError::TooLarge));
        }
        (!frame.is_empty()).then_some(Ok(frame))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    #[serde(rename = "v")]
    _version: u64,
    turn_id: Option<String>,
    input: Option<Input>,
    #[serde(default)]
    attachments: Vec<NewAttachment>,
    mode: Option<PromptMode>,
    metadata: Option<Map<String, Value>>,
    approval: Option<ApprovalId>,
    decision: Option<Decision>,
    #[serde(rename = "continue", default)]
    continues: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Input {
    Text(String),
    Blocks(Vec<InputBlock>),
}

/// What a prompt may hold.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum InputBlock {
    Text { text: String },
    Image { media_type: String, data: String },
}

/// Reads one frame.
pub fn parse(frame: &[u8]) -> Result<Frame, FrameError> {
    if frame.len() > MAX_BYTES {
        return Err(FrameError::TooLarge);
    }
    let text = std::str::from_utf8(frame).map_err(|error| FrameError::NotText {
        at: error.valid_up_to(),
    })?;
    let Some(object) = object(text) else {
        return prompt(vec![Block::text(text)], None, None, None);
    };
    let version = object.get("v").cloned().unwrap_or_default();
    if version != VERSION {
        let found = version.to_string();
        return Err(FrameError::Version { found });
    }
    let malformed = |reason: String| FrameError::Malformed { reason };
    let object: Object = serde_json::from_value(Value::Object(object))
        .map_err(|error| malformed(error.to_string()))?;
    match (object.input, object.approval, object.decision) {
        (Some(input), None, None) if !object.continues => {
            let mut blocks: Vec<Block> = match input {
                Input::Text(text) => vec![Block::text(text)],
                Input::Blocks(blocks) => blocks.into_iter().map(Block::from).collect(),
            };
            blocks.retain(|block| !block.is_blank());
            if blocks.is_empty() {
                return Err(FrameError::Empty);
            }
            blocks.extend(attachment::accept(object.attachments)?);
            prompt(blocks, object.turn_id, object.mode, object.metadata)
        }
        (None, Some(approval), Some(decision)) if !object.continues => {
            Ok(Frame::Answer { approval, decision })
        }
        (None, None, None) if object.continues => Ok(Frame::Continue),
        _ => Err(malformed(
            "it needs an `input`, or an `approval` and its `decision`, or `continue`".to_owned(),
        )),
    }
}

/// The object, if the text is a JSON object with a `v`.
fn object(text: &str) -> Option<Map<String, Value>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) if object.contains_key("v") => Some(object),
        _ => None,
    }
}

fn prompt(
    mut blocks: Vec<Block>,
    turn_id: Option<String>,
    mode: Option<PromptMode>,
    metadata: Option<Map<String, Value>>,
) -> Result<Frame, FrameError> {
    blocks.retain(|block| !block.is_blank());
    if blocks.is_empty() {
        return Err(FrameError::Empty);
    }
    let texts = blocks.iter().map(|block| match block {
        Block::Text { text } => text.len(),
        _ => 0,
    });
    if texts.sum::<usize>() > MAX_TEXT_BYTES {
        return Err(FrameError::LongText);
    }
    let images = blocks.iter().map(|block| match block {
        Block::Image { data, .. } => data.len(),
        _ => 0,
    });
    let bytes = images.sum::<usize>() + attachment::stored_bytes(&blocks);
    if bytes > MAX_STORED_BYTES {
        return Err(attachment::Refused::TooLarge { bytes }.into());
    }
    Ok(Frame::Prompt(PromptFrame {
        turn_id,
        blocks,
        mode,
        metadata,
    }))
}

impl From<InputBlock> for Block {
    fn from(block: InputBlock) -> Self {
        match block {
            InputBlock::Text { text } => Self::Text { text },
            InputBlock::Image { media_type, data } => Self::Image { media_type, data },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{AttachedFile, Attachment};

    fn text(frame: &str) -> String {
        match parse(frame.as_bytes()).unwrap() {
            Frame::Prompt(PromptFrame { blocks, .. }) => match &blocks[..] {
                [Block::Text { text }] => text.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_says_it_is_a_frame_is_one_and_everything_else_is_the_prompt_itself() {
        assert_eq!(text("hello"), "hello");
        assert_eq!(text(r#"{"v":1,"input":"hello"}"#), "hello");
        assert_eq!(text(r#"{"not":"a frame"}"#), r#"{"not":"a frame"}"#);
        assert_eq!(text("{ broken"), "{ broken");
        let full = r#"{"v":1,"turn_id":"t-1","input":[{"type":"text","text":"a"}],
                       "metadata":{"k":1},"mode":"steer"}"#;
        let Frame::Prompt(prompt) = parse(full.as_bytes()).unwrap() else {
            panic!("it is a prompt");
        };
        assert_eq!(prompt.turn_id.as_deref(), Some("t-1"));
        assert_eq!(prompt.mode, Some(PromptMode::Steer));
        assert_eq!(prompt.metadata.unwrap()["k"], 1);
    }

    #[test]
    fn answers_and_continue() {
        let id = "0190a000-0000-7000-8000-000000000001";
        let answer = format!(r#"{{"v":1,"approval":"{id}","decision":"allow"}}"#);
        let Frame::Answer { decision, .. } = parse(answer.as_bytes()).unwrap() else {
            panic!("it is an answer");
        };
        assert_eq!(decision, Decision::Allow);
        let continues = parse(br#"{"v":1,"continue":true}"#).unwrap();
        assert_eq!(continues, Frame::Continue);
    }

    #[test]
    fn what_cannot_be_done_says_why() {
        let kind = |frame: &[u8]| parse(frame).unwrap_err().kind();
        assert_eq!(kind(br#"{"v":2,"input":"x"}"#), "frame_version");
        assert_eq!(kind(br#"{"v":1}"#), "frame_malformed");
        assert_eq!(
            kind(br#"{"v":1,"input":"x","colour":"red"}"#),
            "frame_malformed"
        );
        assert_eq!(kind(b" \n"), "frame_empty");
        assert_eq!(kind(b"\xff"), "frame_not_text");
        assert_eq!(kind(&vec![b'a'; MAX_BYTES + 1]), "frame_too_large");
        assert_eq!(kind(&vec![b'a'; MAX_TEXT_BYTES + 1]), "frame_too_large");
        let zip = r#"{"v":1,"input":"x","attachments":[{"name":"a.zip","data":"UEsDBP8="}]}"#;
        assert_eq!(kind(zip.as_bytes()), "attachment_refused");
    }

    #[test]
    fn attachments_follow_the_input_and_need_one() {
        let frame = r#"{"v":1,"input":"look","attachments":[{"name":"a.txt","data":"aGVsbG8="}]}"#;
        let Frame::Prompt(prompt) = parse(frame.as_bytes()).unwrap() else {
            panic!("it is a prompt");
        };
        let text = "hello".to_owned();
        let attachment = Block::Attachment(Attachment {
            name: "a.txt".to_owned(),
            file: AttachedFile::Text { text },
        });
        assert_eq!(prompt.blocks, [Block::text("look"), attachment]);
        let alone = r#"{"v":1,"input":" ","attachments":[{"name":"a.txt","data":"aGVsbG8="}]}"#;
        assert_eq!(parse(alone.as_bytes()), Err(FrameError::Empty));
    }

    #[test]
    fn frames_are_cut_the_same_wherever_the_bytes_are() {
        let stream = b"one\0\0two\0three";
        for cut in 0..stream.len() {
            let mut splitter = Splitter::default();
            let (first, second) = stream.split_at(cut);
            let mut frames = splitter.feed(first);
            frames.extend(splitter.feed(second));
            frames.extend(splitter.finish());
            let frames: Vec<_> = frames.into_iter().map(Result::unwrap).collect();
            assert_eq!(frames, [&b"one"[..], b"two", b"three"], "cut at {cut}");
        }
    }

    #[test]
    fn a_frame_that_is_too_large_is_told_once_and_the_next_is_read() {
        let mut splitter = Splitter::default();
        let mut told = Vec::new();
        for _ in 0..5 {
            told.extend(splitter.feed(&vec![b'a'; MAX_BYTES / 2]));
        }
        assert_eq!(told, []);
        let told = splitter.feed(b"\0next\0");
        assert_eq!(told, [Err(FrameError::TooLarge), Ok(b"next".to_vec())]);
    }
}
