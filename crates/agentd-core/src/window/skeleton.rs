//! A window without its text, as stored in a snapshot. The text stays in the events.

use super::plan::{KnownPlan, PlanBone};
use super::{Entry, Item, Located, SeenFiles, Window};
use crate::event::{Body, Event, Position};
use crate::id::{CallId, PromptId, TurnId};
use crate::message::ToolResult;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skeleton {
    items: Vec<Bone>,
    pending: Vec<(PromptId, Position)>,
    context: Option<Position>,
    tools: Option<Position>,
    #[serde(default)]
    instruction: Option<Position>,
    #[serde(default)]
    told: Vec<Position>,
    #[serde(default)]
    commands: Vec<Position>,
    awaits: bool,
    open: Vec<CallId>,
    revised: Vec<Position>,
    #[serde(default)]
    open_turns: Vec<TurnId>,
    #[serde(default)]
    seen: SeenFiles,
    #[serde(default)]
    environment: Option<Position>,
    #[serde(default)]
    plan: Option<PlanBone>,
    /// Lists of MCP servers, and then what was told about servers since.
    #[serde(default)]
    mcp: Vec<Position>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Bone {
    placed: Position,
    source: Position,
    turn: Option<TurnId>,
    #[serde(default)]
    is_moved: bool,
}

/// An event that a window needs is missing, or has different content than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {} of agent {}, which the window needs, is not readable", .0.seq, .0.agent)]
pub struct MissingEvent(pub Position);

impl Window {
    pub fn skeleton(&self) -> Skeleton {
        Skeleton {
            items: self
                .items
                .iter()
                .map(|item| Bone {
                    placed: item.placed,
                    source: item.source,
                    turn: item.turn,
                    is_moved: item.is_moved,
                })
                .collect(),
            pending: self
                .pending
                .iter()
                .map(|(prompt, words)| (*prompt, words.source))
                .collect(),
            context: self.context.as_ref().map(|context| context.source),
            tools: self.tools.as_ref().map(|tools| tools.source),
            instruction: self.instruction.as_ref().map(|it| it.source),
            told: self.told.values().map(|it| it.source).collect(),
            commands: self.commands.iter().map(|it| it.source).collect(),
            awaits: self.awaits,
            open: self.open.clone(),
            revised: self.revised.values().map(|call| call.source).collect(),
            open_turns: self.open_turns.clone(),
            seen: self.seen.clone(),
            environment: self.environment.as_ref().map(|it| it.source),
            plan: self.plan_bone(),
            mcp: {
                let (lists, problems) = (&self.mcp_lists, &self.mcp_problems);
                let all = lists.values().chain(problems.values());
                all.map(|it| it.source).collect()
            },
        }
    }

    /// Restores the text. `find` returns the events that [`Skeleton::sources`] names.
    pub fn restore<'a>(
        skeleton: &Skeleton,
        find: impl Fn(Position) -> Option<&'a Event>,
    ) -> Result<Self, MissingEvent> {
        let body = |at: Position| find(at).map(|event| &event.body).ok_or(MissingEvent(at));
        let mut window = Self {
            awaits: skeleton.awaits,
            open: skeleton.open.clone(),
            open_turns: skeleton.open_turns.clone(),
            seen: skeleton.seen.clone(),
            ..Self::default()
        };
        for bone in &skeleton.items {
            window.items.push(Item {
                placed: bone.placed,
                source: bone.source,
                turn: bone.turn,
                is_moved: bone.is_moved,
                entry: entry_of(body(bone.source)?).ok_or(MissingEvent(bone.source))?,
            });
        }
        for (prompt, source) in &skeleton.pending {
            let Body::Prompt(words) = body(*source)? else {
                return Err(MissingEvent(*source));
            };
            let located = Located {
                source: *source,
                value: words.blocks.clone(),
            };
            window.pending.insert(*prompt, located);
        }
        if let Some(source) = skeleton.context {
            let Body::Context(context) = body(source)? else {
                return Err(MissingEvent(source));
            };
            window.context = Some(Located {
                source,
                value: context.clone(),
            });
        }
        if let Some(source) = skeleton.tools {
            let Body::Context(context) = body(source)? else {
                return Err(MissingEvent(source));
            };
            window.tools = Some(Located {
                source,
                value: context.tools.clone(),
            });
        }
        for source in &skeleton.revised {
            let Body::CallRevised(revised) = body(*source)? else {
                return Err(MissingEvent(*source));
            };
            window.revise(*source, revised);
        }
        for source in &skeleton.told {
            let Body::InstructionsChanged(told) = body(*source)? else {
                return Err(MissingEvent(*source));
            };
            let located = Located {
                source: *source,
                value: told.clone(),
            };
            window.told.insert(told.path.clone(), located);
        }
        for source in &skeleton.commands {
            let Body::CommandOutput(command) = body(*source)? else {
                return Err(MissingEvent(*source));
            };
            window.command_ended(*source, command);
        }
        for source in &skeleton.mcp {
            let Body::McpListed(listed) = body(*source)? else {
                return Err(MissingEvent(*source));
            };
            window.keep_mcp(*source, listed);
        }
        if let Some(source) = skeleton.environment {
            let Body::Notice(told) = body(source)? else {
                return Err(MissingEvent(source));
            };
            window.told_environment(source, told);
        }
        if let Some(bone) = skeleton.plan {
            let Body::PlanSet(plan) = body(bone.source)? else {
                return Err(MissingEvent(bone.source));
            };
            window.plan = Some(KnownPlan {
                plan: Located {
                    source: bone.source,
                    value: plan.clone(),
                },
                shown_by: bone.shown_by,
            });
        }
        if let Some(source) = skeleton.instruction {
            let Body::Instruction(instruction) = body(source)? else {
                return Err(MissingEvent(source));
            };
            window.instruction = Some(Located {
                source,
                value: instruction.text.clone(),
            });
        }
        Ok(window)
    }
}

impl Skeleton {
    /// The events whose text is needed, in the order of the window.
    pub fn sources(&self) -> impl Iterator<Item = Position> {
        let items = self.items.iter().map(|bone| bone.source);
        let pending = self.pending.iter().map(|(_, source)| *source);
        let revised = self.revised.iter().copied();
        let rest = self.context.into_iter().chain(self.tools);
        let rest = rest.chain(self.instruction).chain(self.environment);
        let rest = rest.chain(self.plan.map(|bone| bone.source));
        let rest = rest.chain(self.told.iter().copied());
        let rest = rest.chain(self.commands.iter().copied());
        let rest = rest.chain(self.mcp.iter().copied());
        items.chain(pending).chain(revised).chain(rest)
    }
}

fn entry_of(body: &Body) -> Option<Entry> {
    match body {
        Body::Prompt(body) => Some(Entry::Prompt(body.blocks.clone())),
        Body::MessageAdded(body) => Some(Entry::Reply {
            status: body.status,
            blocks: body.blocks.clone(),
        }),
        Body::ResultAdded(body) => Some(Entry::Result(ToolResult {
            call: body.call.clone(),
            outcome: body.outcome,
            blocks: body.blocks.clone(),
        })),
        Body::Notice(body) => Some(Entry::Notice(body.text.clone())),
        Body::InstructionsChanged(body) => Some(Entry::Notice(body.text.clone())),
        Body::McpListed(body) => body.problem.clone().map(Entry::Notice),
        Body::CommandOutput(body) => Some(Entry::Notice(body.told())),
        Body::Summary(body) => Some(Entry::Summary(body.text.clone())),
        _ => None,
    }
}
