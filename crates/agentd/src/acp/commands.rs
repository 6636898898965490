//! Slash commands in an editor: those of the chat that need no screen, the user's own, and the agent's skills.

use crate::chat::commands::{COMMANDS, Own, Verb};
use crate::chat::effect::{Change, Effect, Page};
use crate::chat::requests::{self, Target};
use crate::error::{Error, Exit};
use crate::keys;
use crate::terminal::uncoloured;
use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate,
    UnstructuredCommandInput,
};
use agentd_client::api::{Reset, Rewind};
use agentd_core::event::Direction;
use agentd_core::id::OpId;

/// Time that a running turn gets to end before a reset.
const GRACE_MS: u64 = 15_000;

/// Whether the editor has it. The others are about the screen of the chat, or editors have their own way.
const fn is_offered(verb: Verb) -> bool {
    match verb {
        Verb::Reset
        | Verb::Undo
        | Verb::Redo
        | Verb::Rewind
        | Verb::Diff
        | Verb::Fork
        | Verb::Compact
        | Verb::Context
        | Verb::Usage
        | Verb::Search
        | Verb::Permissions
        | Verb::Continue
        | Verb::Start => true,
        Verb::Clear
        | Verb::Attach
        | Verb::Conversations
        | Verb::Model
        | Verb::Tasks
        | Verb::Copy
        | Verb::Queue
        | Verb::Editor
        | Verb::Help
        | Verb::Quit => false,
    }
}

pub fn available(own: &[Own]) -> SessionUpdate {
    let built_in = COMMANDS.iter().filter(|it| is_offered(it.verb));
    let built_in = built_in.map(|it| {
        let hint = (!it.arguments.is_empty()).then_some(it.arguments);
        command(it.name, it.help, hint)
    });
    let own = own
        .iter()
        .map(|it| command(&it.name, &it.help, Some("[ARGUMENTS]")));
    let all = built_in.chain(own).collect();
    SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(all))
}

fn command(name: &str, help: &str, hint: Option<&str>) -> AvailableCommand {
    let input = hint.map(|hint| {
        AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint.to_owned()))
    });
    AvailableCommand::new(name, help).input(input)
}

/// Whether a command moves the agent to another conversation, which the session then shows.
pub const fn moves(verb: Verb) -> bool {
    matches!(verb, Verb::Reset | Verb::Undo | Verb::Redo | Verb::Rewind)
}

/// Carries out a command, and returns what the user is told. `op` is the op of a change that moves the agent.
pub async fn run(
    target: &Target,
    verb: Verb,
    arguments: String,
    op: OpId,
) -> Result<String, Error> {
    let given = Some(arguments).filter(|it| !it.is_empty());
    let effect = match verb {
        Verb::Reset => Effect::Reset(how(None, op)),
        Verb::Undo => Effect::Reset(how(Some(Direction::Undo), op)),
        Verb::Redo => Effect::Reset(how(Some(Direction::Redo), op)),
        Verb::Rewind => {
            let at = needed(given, "/rewind needs a turn or a label")?;
            return rewind(target, at, op).await;
        }
        Verb::Fork => {
            let given = needed(given, "/fork needs the name of the new agent")?;
            let mut words = given.split_whitespace().map(str::to_owned);
            let name = words.next().unwrap_or_default();
            let at = words.next();
            Effect::Fork { name, at }
        }
        Verb::Compact => Effect::Compact {
            instructions: given,
        },
        Verb::Continue => Effect::Continue,
        Verb::Start => Effect::Start,
        Verb::Diff => return page(target, Page::Diff(given)).await,
        Verb::Context => return page(target, Page::Context).await,
        Verb::Usage => return page(target, Page::Usage).await,
        Verb::Search => {
            let words = needed(given, "/search needs words")?;
            return page(target, Page::Search(words)).await;
        }
        Verb::Permissions => return page(target, Page::Permissions).await,
        _ => {
            let what = "this command is for the chat of a terminal";
            return Err(Error::new(Exit::Usage, what).next("`agentd chat` has it"));
        }
    };
    let message = match target.change(effect).await? {
        Change::Done(message)
        | Change::Cleared(message)
        | Change::Stepped(message)
        | Change::Model { message, .. } => message,
        // Only the chat asks for a plan first.
        Change::Planned(plan) => plan.lines.join("\n"),
    };
    Ok(match message.is_empty() {
        true => "done".to_owned(),
        false => message,
    })
}

fn how(step: Option<Direction>, op: OpId) -> Reset {
    Reset {
        step,
        grace_ms: Some(GRACE_MS),
        op: Some(op),
        ..Reset::default()
    }
}

/// Only the conversation: `agentd rewind` has the files too.
async fn rewind(target: &Target, at: String, op: OpId) -> Result<String, Error> {
    keys::merge_env(&target.client, &target.id).await?;
    let rewind = Rewind::new(at.clone(), None, how(None, op));
    target.client.rewind(&target.id, &rewind).await?;
    Ok(format!("back at {at}; /undo returns"))
}

fn needed(given: Option<String>, what: &str) -> Result<String, Error> {
    given.ok_or_else(|| Error::new(Exit::Usage, what).next("write it after the command"))
}

/// A page of the chat, as a code block.
async fn page(target: &Target, page: Page) -> Result<String, Error> {
    let (title, lines) = requests::page(&target.client, &target.id, page).await?;
    let text = uncoloured(&lines.join("\n")).replace("```", "'''");
    Ok(format!("{title}\n\n```\n{text}\n```"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_editor_gets_commands_skills_and_files() {
        let own = [Own::skill("release", "/skills/release/SKILL.md")];
        let SessionUpdate::AvailableCommandsUpdate(update) = available(&own) else {
            panic!("no commands");
        };
        let commands = update.available_commands;
        let named = |name: &str| commands.iter().find(|command| command.name == name);
        for name in ["reset", "undo", "compact", "release"] {
            assert!(named(name).is_some(), "{name}");
        }
        assert!(named("quit").is_none());
        assert!(named("reset").unwrap().input.is_none());
        assert!(named("compact").unwrap().input.is_some());
    }
}
