//! The system prompt: the agent's role, how its tools behave, and the part that a conversation keeps from its first
//! request on: where the agent works, and the instructions of the user and the project.
//!
//! The last part is read when a conversation begins and does not follow later changes of the files, so that each
//! request begins like the one before it and the provider's prompt cache stays valid.

mod present;

pub use present::{Present, ToldFiles, skill_changes};

use crate::digest::digest;
use crate::event::{Context, InstructionFile, InstructionsChanged, KeptPart, KnownSkill};
use crate::plain;
use crate::skill::Skill;
use crate::spec::{AgentSpec, ApprovalMode, Network, Sandbox, Verbosity};
use std::collections::BTreeMap;
use std::path::Path;

/// How much of the instruction files is in the system prompt, in bytes.
pub const MOST_BYTES: usize = 32 * 1024;

/// How much of one instruction file a notice contains, in bytes.
const MOST_TOLD: usize = 8 * 1024;

/// The role of an agent whose spec has no system prompt.
const ROLE: &str = "\
You are an agent that works on the user's machine through tools. Do what the user asks, and no more than that. Read \
before you change: look at the files and conventions that concern the task. After a change, check that it works, \
with the project's own tests or tools where they exist. If something fails, find the cause instead of working \
around it. When you are done, say briefly what you did, what you checked, and what is left open.";

/// What is known about the place where an agent works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workplace {
    pub cwd: String,
    /// The root of the project, if it is a directory above the working directory.
    pub root: Option<String>,
    /// The operating system and the processor.
    pub platform: String,
    /// The date on which the conversation begins.
    pub date: String,
    pub git: Git,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Git {
    /// The working directory is in no repository.
    None,
    Branch(String),
    /// A commit is checked out, and no branch.
    Detached,
}

/// An instruction file, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// The path, as the model can use it.
    pub path: String,
    /// Its text, or why it could not be read.
    pub text: Result<String, String>,
}

impl Instructions {
    fn len(&self) -> usize {
        self.text.as_ref().map_or(0, String::len)
    }
}

/// The first part: the role, how the tools behave under these settings, and the verbosity, if requests for the model have
/// no parameter for it. It changes only with the settings, so that the prompt cache stays valid.
pub fn role(spec: &AgentSpec, sandbox: Sandbox, verbosity: Option<Verbosity>) -> String {
    let role = match spec.system.trim().is_empty() {
        true => ROLE,
        false => spec.system.trim_end(),
    };
    let tools = tools(spec, sandbox);
    match verbosity {
        Some(verbosity) => format!("{role}\n\n{tools}\n\n# Answers\n\n{}", verbosity.sentence()),
        None => format!("{role}\n\n{tools}"),
    }
}

fn tools(spec: &AgentSpec, sandbox: Sandbox) -> String {
    let sees = match sandbox {
        Sandbox::ReadOnly => {
            "Tools run in a sandbox: they can read the working directory and the system, and can write only to /tmp, \
             which is their own."
        }
        Sandbox::WorkspaceWrite => {
            "Tools run in a sandbox: they can write to the working directory and to /tmp, which is their own. They can \
             read the system, but not the user's other files."
        }
        Sandbox::FullAccess => {
            "Tools run without a sandbox, with all permissions of the user. Be careful with everything outside the \
             working directory."
        }
    };
    let network = match spec.network.clone().unwrap_or_default() {
        Network::On => "They can use the network.",
        Network::Off => "They cannot use the network.",
        Network::Hosts(_) => "They can reach only some hosts of the network.",
    };
    let asks = match spec.approval.unwrap_or_default() {
        ApprovalMode::OnRequest if sandbox == Sandbox::FullAccess => {
            "Some calls may need the user's approval. If a call is denied, do not repeat it in another form: follow the \
             reason that the user gives."
        }
        ApprovalMode::OnRequest => {
            "If a command fails because of the sandbox and is needed, repeat it with `escalate` (the reason) and `needs` \
             (what it needs): the user decides. Do not try to get around the sandbox."
        }
        ApprovalMode::Always => {
            "The user is asked before each call that changes something or uses the network. If a call is denied, do \
             not repeat it in another form: follow the reason that the user gives."
        }
        ApprovalMode::Never => {
            "The user cannot be asked: a call that needs approval is refused. If a task is not possible under these \
             rules, say so."
        }
    };
    format!("# Tools\n\n{sees} {network} {asks}")
}

/// Adds the part that a new conversation keeps to a system prompt that ends with its first part.
pub fn with_kept_part(
    role: String,
    workplace: &Workplace,
    skills: &[Skill],
    instructions: &[Instructions],
) -> (String, KeptPart) {
    let mut system = role;
    system.push_str("\n\n");
    let begin = system.len();
    system.push_str(&place(workplace));
    system.push_str(&skill_list(skills));
    let room = shares(instructions);
    if !instructions.is_empty() {
        system.push_str(
            "\n\n# Instructions\n\nThe user and the project give you these instructions. Where two of them disagree, \
             the later one applies. What the user asks for in the conversation comes before both.",
        );
    }
    let mut files = Vec::new();
    for (file, room) in instructions.iter().zip(room) {
        let path = one_line(&file.path);
        let (text, shown) = match &file.text {
            // Tools may not be able to read a file above the working directory.
            Ok(text) if Path::new(&file.path).starts_with(&workplace.cwd) => {
                let how = format!(": read {path} if they may concern the task");
                shown(text, room, &how)
            }
            Ok(text) => shown(text, room, ""),
            Err(why) => (format!("[this file was not read: {}]", one_line(why)), 0),
        };
        system.push_str(&format!("\n\n## {path}\n\n{text}"));
        files.push(InstructionFile {
            path: file.path.clone(),
            bytes: file.len() as u64,
            shown: shown as u64,
            digest: file
                .text
                .as_ref()
                .ok()
                .map(|text| digest(&[text.as_bytes()])),
        });
    }
    let kept = KeptPart {
        begin: begin as u64,
        cwd: workplace.cwd.clone(),
        files,
        skills: skills.iter().map(known).collect(),
    };
    (system, kept)
}

/// As much of a file as there is room for, and how many bytes that is. `how` says how to see the rest.
fn shown(text: &str, room: usize, how: &str) -> (String, usize) {
    let hidden = hidden_line(text);
    let text = plain::only_plain(text);
    let begin = beginning(&text, room);
    let left = text.len() - begin.len();
    let mut shown = begin.trim_end().to_owned();
    if left > 0 {
        shown.push_str(&format!(
            "\n\n[{left} more bytes of this file are not shown{how}]"
        ));
    }
    if let Some(line) = hidden {
        shown.push_str(&format!(
            "\n\n[invisible characters were removed from this file, the first in line {line}; tell the user]"
        ));
    }
    (shown, begin.len())
}

/// The first line with a character that a reader of the file does not see. Control characters, such as carriage returns, and the
/// mark at the beginning of a file are no reason to tell the user.
fn hidden_line(text: &str) -> Option<usize> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_hidden = |line: &str| {
        let mut is_hidden = false;
        plain::in_prose(line, |c, _| is_hidden |= !c.is_control());
        is_hidden
    };
    text.lines().position(is_hidden).map(|at| at + 1)
}

fn place(workplace: &Workplace) -> String {
    let mut lines = vec![
        "# Environment".to_owned(),
        String::new(),
        format!("- working directory: {}", one_line(&workplace.cwd)),
    ];
    if let Some(root) = &workplace.root {
        lines.push(format!("- project: {}", one_line(root)));
    }
    lines.push(match &workplace.git {
        Git::None => "- Git: not a repository".to_owned(),
        Git::Branch(branch) => format!(
            "- Git: on branch {} when this conversation began",
            one_line(branch)
        ),
        Git::Detached => "- Git: no branch is checked out".to_owned(),
    });
    lines.push(format!("- platform: {}", workplace.platform));
    lines.push(format!("- date: {}", workplace.date));
    lines.join("\n")
}

fn skill_list(skills: &[Skill]) -> String {
    let mut text = String::new();
    if !skills.is_empty() {
        text.push_str(
            "\n\n# Skills\n\nA skill is a set of instructions for one kind of task. When a task fits a skill, read the \
             skill's file first and follow it.\n",
        );
    }
    for skill in skills {
        let (name, path) = (one_line(&skill.name), one_line(&skill.path));
        text.push_str(&format!(
            "\n- {name}: {} ({path})",
            one_line(&skill.description)
        ));
    }
    text
}

fn known(skill: &Skill) -> KnownSkill {
    KnownSkill {
        name: skill.name.clone(),
        path: skill.path.clone(),
    }
}

fn one_line(text: &str) -> String {
    plain::only_plain(text).replace(['\n', '\t'], " ")
}

/// How many bytes each file may have. The files are ordered from general to specific, and the specific ones come first
/// when there is not enough room for all.
fn shares(files: &[Instructions]) -> Vec<usize> {
    let mut left = MOST_BYTES;
    let mut shares: Vec<usize> = files
        .iter()
        .rev()
        .map(|file| {
            let share = file.len().min(left);
            left -= share;
            share
        })
        .collect();
    shares.reverse();
    shares
}

/// The beginning of a text, up to the end of a line where there is one.
fn beginning(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let (fits, _) = text.split_at(text.floor_char_boundary(most));
    match fits.rfind('\n') {
        Some(end) => fits.get(..=end).unwrap_or(fits),
        None => fits,
    }
}

/// What the model has to be told: the files that are new to it, that have changed, and that no longer apply. `known` has
/// the digests of the files that it knows, and `room` is how many bytes of files may be told. Without room, the model is
/// told only that a file exists: a project can have any number of them.
pub fn changes(
    known: &BTreeMap<&str, Option<&str>>,
    present: &[Instructions],
    mut room: usize,
) -> Vec<InstructionsChanged> {
    let is_present = |path: &str| present.iter().any(|file| file.path == path);
    let gone = known
        .iter()
        .filter(|(path, digest)| digest.is_some() && !is_present(path));
    let gone = gone.map(|(path, _)| InstructionsChanged {
        path: (*path).to_owned(),
        digest: None,
        text: format!("The instructions in {} no longer apply.", one_line(path)),
    });
    // A file that cannot be read now may be readable again at the next look.
    let texts = present
        .iter()
        .filter_map(|file| Some((&file.path, file.text.as_ref().ok()?)));
    let told = texts.filter_map(|(path, text)| {
        let digest = digest(&[text.as_bytes()]);
        let before = known.get(path.as_str()).copied().flatten();
        let shown = one_line(path);
        let first = match before {
            Some(before) if before == digest => return None,
            Some(_) => format!("The instructions in {shown} have changed. They are now:"),
            None => format!("{shown} has instructions for the work in its directory:"),
        };
        let how = format!(": read {shown} if they may concern the task");
        let (text, used) = self::shown(text, MOST_TOLD.min(room), &how);
        room -= used;
        Some(InstructionsChanged {
            path: path.clone(),
            digest: Some(digest),
            text: format!("{first}\n\n{text}"),
        })
    });
    gone.chain(told).collect()
}

impl Context {
    /// This context with the part of the system prompt that the conversation has kept so far. A conversation keeps it as
    /// long as the agent works in the same directory.
    pub fn keeping(&self, known: &Self) -> Self {
        let mut next = self.clone();
        if let (Some(fresh), Some(kept)) = (&self.kept, &known.kept)
            && fresh.cwd == kept.cwd
            && let Some((role, _)) = split(&self.system, fresh)
            && let Some((_, text)) = split(&known.system, kept)
        {
            next.system = format!("{role}{text}");
            next.kept = Some(KeptPart {
                begin: role.len() as u64,
                ..kept.clone()
            });
        }
        next
    }
}

/// The parts before and after the beginning of the kept part. An imported journal may name a position that the text
/// does not have.
fn split<'a>(system: &'a str, kept: &KeptPart) -> Option<(&'a str, &'a str)> {
    system.split_at_checked(usize::try_from(kept.begin).ok()?)
}

#[cfg(test)]
mod tests;
