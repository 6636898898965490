//! What goes into the chat ([`Input`], [`Answer`]) and what it asks for ([`Effect`]). The chat itself has no terminal, no
//! connection and no clock.

use super::commands::Own;
use crate::error::Error;
use crate::follow::Seen;
use agentd_client::api::{
    Agent, Call, Conversations, EditPrompt, MovePrompt, OneConversation, Output, Queue,
    RemovePrompts, Reset, Tasks,
};
use agentd_core::event::{Event, PromptMode};
use agentd_core::id::{AgentId, ApprovalId, ConversationId, Seq, TaskId};
use agentd_core::spec::{AgentSpec, ApprovalMode};
use ratatui::crossterm::event::KeyEvent;

pub enum Input {
    Key(KeyEvent),
    Paste(String),
    /// From the agent's event stream.
    Seen(Seen),
    Answer(Answer),
    /// Time has passed.
    Tick,
}

/// What the driver does for the chat. Every request ends with an [`Answer`].
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Send {
        text: String,
        /// The part that the user typed, whose `@path` words are attached. The text of a command file is not: tools can write
        /// it.
        typed: String,
        /// Files that the user chose with `/attach`; a word of the prompt names each.
        chosen: Vec<String>,
        mode: PromptMode,
    },
    /// Looks for the file of `/attach`.
    Attach(String),
    /// Runs a command in the sandbox of the agent's tools.
    RunCommand(String),
    Interrupt,
    Approve {
        approval: ApprovalId,
        /// The digest of the call that the user saw.
        hash: String,
        always: bool,
    },
    Deny {
        approval: ApprovalId,
        hash: Option<String>,
        reason: Option<String>,
    },
    /// Answers the question of an MCP server.
    Answer {
        approval: ApprovalId,
        content: serde_json::Map<String, serde_json::Value>,
    },
    SetApprovalMode(ApprovalMode),
    SetModel(String),
    /// The events before this one.
    LoadOlder(Seq),
    LoadAgent,
    /// The content of the file that a call would replace.
    LoadBefore {
        approval: ApprovalId,
        call: Box<Call>,
    },
    LoadSpec,
    /// The user's commands and the agent's skills.
    LoadCommands,
    LoadQueue,
    LoadTasks,
    /// The output of a task from an offset on.
    LoadOutput {
        task: TaskId,
        offset: u64,
    },
    LoadSubagent(AgentId),
    EditQueued(EditPrompt),
    MoveQueued(MovePrompt),
    RemoveQueued(RemovePrompts),
    StopTask(TaskId),
    Reset(Reset),
    /// Asks what to rewind.
    ChooseParts(RewindTo),
    /// Asks the daemon which files a rewind would write.
    PlanRewind {
        to: RewindTo,
        parts: Parts,
    },
    Rewind {
        to: RewindTo,
        parts: Parts,
        conflicts: Conflicts,
    },
    Fork {
        name: String,
        at: Option<String>,
    },
    Compact {
        instructions: Option<String>,
    },
    Continue,
    Start,
    /// The turns of a conversation, for a choice. Without an id, those of the current one.
    LoadTurns(Option<ConversationId>),
    LoadConversations,
    /// A text that is shown on its own page.
    LoadPage(Page),
    /// The paths that begin with what was typed after `@`.
    LoadPaths(String),
    /// The paths that begin with what was typed after `/attach`. They may be anywhere.
    LoadFiles(String),
    /// Opens the text in the user's editor.
    Edit(String),
    Copy(String),
    /// Draws the whole screen again.
    Redraw,
    Quit,
}

/// A position of a conversation. Without an id, of the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewindTo {
    pub at: String,
    pub conversation: Option<ConversationId>,
}

/// What a rewind returns to its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    Conversation,
    Files,
    Both,
}

/// What happens to files that something else than the agent has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflicts {
    Keep,
    Overwrite,
}

/// What a rewind would do to files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesPlan {
    pub to: RewindTo,
    pub parts: Parts,
    pub conflicts: Conflicts,
    /// The files, as lines.
    pub lines: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    /// What was changed in files, by one turn or by all.
    Diff(Option<String>),
    Context,
    Usage,
    Search(String),
    Permissions,
}

/// Events before those that are shown.
pub struct Older {
    /// Earlier events of the turn in which they begin.
    pub context: Vec<Event>,
    pub events: Vec<Event>,
    /// There are no events before these.
    pub is_first: bool,
}

/// A request that changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The message says what was done.
    Done(String),
    /// A reset that begins the log anew.
    Cleared(String),
    /// An undo or redo: the log may begin earlier again.
    Stepped(String),
    /// What a rewind would do to files, for the user to confirm.
    Planned(FilesPlan),
    /// Another model, with the size of its context window in tokens if it is known.
    Model {
        message: String,
        window: Option<u64>,
    },
}

/// What the user should know about the files of a prompt that was accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileNotes {
    /// The `@path` words that name no file.
    pub missing: Vec<String>,
    /// A warning for each file that the model does not accept.
    pub omitted: Vec<String>,
}

pub enum Answer {
    /// A prompt was accepted or refused; with its text.
    Sent(String, Result<FileNotes, Error>),
    /// The file of `/attach`, as it stands in the prompt.
    Attached(Result<String, Error>),
    /// A command has ended, or was not run; with its line.
    Ran(String, Result<(), Error>),
    Changed(Result<Change, Error>),
    Queue(Result<Queue, Error>),
    Older(Result<Older, Error>),
    Agent(Result<Box<Agent>, Error>),
    /// What a file contains that a call would replace.
    Before(ApprovalId, Option<String>),
    Spec(Result<Box<AgentSpec>, Error>),
    Commands(Vec<Own>),
    Tasks(Result<Tasks, Error>),
    /// The output of a task, and the offset at which it begins.
    Output(TaskId, u64, Result<Output, Error>),
    Subagent(AgentId, Result<Box<Agent>, Error>),
    Turns(Result<Box<OneConversation>, Error>),
    Conversations(Result<Conversations, Error>),
    /// The title of the page and its lines, in our colours.
    Page(Result<(String, Vec<String>), Error>),
    Paths(String, Vec<String>),
    Files(String, Vec<String>),
    Edited(Result<String, Error>),
}
