//! `agent`: starts a subagent, in the foreground or in the background.
//!
//! The daemon records a subagent under the call that started it. A call that was cut off is therefore simply made
//! again, and finds the subagent that it started.

use super::arguments;
use super::blocking::Cancelled;
use super::context::{CallOf, ToolContext};
use super::escalate::Escalation;
use super::failure::{Failure, said};
use super::tool::{AnyTool, Work};
use super::traits::Traits;
use agentd_core::approval::Ruling;
use agentd_core::event::{SubagentOutcome, ToolStarted};
use agentd_core::id::CallId;
use agentd_core::link::{Answer, Question};
use agentd_core::message::{Block, CallOutcome, ToolCall};
use agentd_core::permission::Subject;
use agentd_core::recover::CallFact;
use agentd_core::subagents::{self, Report};
use agentd_core::turn::{Consent, Finished, Prepared};
use agentd_core::usage::Spent;
use agentd_core::window::SeenFiles;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const TRAITS: Traits = Traits {
    parallel: true,
    idempotent: false,
    approval: false,
};

/// How long to wait for a cancelled subagent to end. The cancellation is in the journal, so the subagent ends even if
/// this time is over.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// The kinds of subagents that the agent may start, with their descriptions.
#[derive(Clone, Debug, Default)]
pub struct Kinds(pub Vec<(String, Option<String>)>);

pub(super) struct Agent(pub Kinds);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    prompt: String,
    kind: Option<String>,
    run_in_background: Option<bool>,
    /// Shown to the user only.
    #[serde(rename = "description")]
    _description: Option<String>,
}

impl Agent {
    fn parameters(&self) -> Value {
        let mut properties = json!({
            "prompt": {
                "type": "string",
                "description": "The task, and all the context that the subagent needs. It does not see \
                                this conversation."
            },
            "run_in_background": {
                "type": "boolean",
                "description": "Do not wait; the answer arrives later as a message. Default: false."
            },
            "description": {
                "type": "string",
                "description": "A few words about the purpose, shown to the user."
            }
        });
        let mut required = vec!["prompt"];
        if !self.0.0.is_empty() {
            let names: Vec<&str> = self.0.0.iter().map(|(name, _)| name.as_str()).collect();
            let about = self.0.0.iter().map(|(name, about)| match about {
                Some(about) => format!("{name}: {about}"),
                None => name.clone(),
            });
            let about = about.collect::<Vec<_>>().join("\n");
            properties["kind"] = json!({
                "type": "string",
                "enum": names,
                "description": format!("The kind of agent to start.\n{about}"),
            });
            required.push("kind");
        }
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false
        })
    }

    fn read(&self, call: &ToolCall) -> Result<Arguments, Failure> {
        arguments::read(subagents::TOOL, &self.parameters(), &call.arguments)
    }

    fn check(&self, context: &ToolContext, call: &ToolCall) -> Result<Ruling, Failure> {
        let arguments = self.read(call)?;
        if arguments.prompt.trim().is_empty() {
            return Err(Failure::new("`prompt` is empty; describe the task."));
        }
        if context.asking.is_none() {
            return Err(Failure::new(
                "Subagents need the agentd daemon; this agent runs without one.",
            ));
        }
        let subject = Subject::name(arguments.kind.unwrap_or_default());
        Ok(context.rule(&CallOf {
            tool: subagents::TOOL,
            traits: TRAITS,
            subjects: &[subject],
            escalation: &Escalation::None,
            may_be_covered: false,
        }))
    }
}

#[async_trait]
impl AnyTool for Agent {
    fn name(&self) -> &'static str {
        subagents::TOOL
    }

    fn traits(&self) -> Traits {
        TRAITS
    }

    fn declaration(&self) -> agentd_core::event::Tool {
        agentd_core::event::Tool {
            name: subagents::TOOL.to_owned(),
            description: "Starts a subagent that works on a task in the same working directory, with its own \
                          conversation, and returns its final answer; you see nothing else of its work. Use it \
                          for a task that takes many steps of which you need only the result, and for tasks \
                          that do not depend on each other: several calls in one reply run in parallel. Do not \
                          let two subagents change the same files."
                .to_owned(),
            parameters: self.parameters(),
        }
    }

    async fn prepare(
        &self,
        context: &Arc<ToolContext>,
        call: &ToolCall,
        consent: Consent,
        _seen: &SeenFiles,
    ) -> Prepared {
        match (self.check(context, call), consent) {
            (Ok(Ruling::Refuse(text)), _) => Prepared::Refuse {
                outcome: CallOutcome::Denied,
                blocks: vec![Block::text(text)],
            },
            (Ok(Ruling::Ask(why)), Consent::NotAsked) => Prepared::Ask(why),
            (Ok(_), _) => Prepared::Run(
                ToolStarted::new(call.id.clone(), subagents::TOOL.to_owned()),
                Vec::new(),
            ),
            (Err(failure), _) => failure.into(),
        }
    }

    async fn run(&self, work: Work, mut cancelled: Cancelled) -> Finished {
        let arguments = match self.read(&work.call) {
            Ok(arguments) => arguments,
            Err(failure) => return failure.into(),
        };
        let ask = Ask {
            context: &work.context,
            call: &work.call.id,
        };
        if cancelled.now() {
            return ask.cancel().await;
        }
        tokio::select! {
            biased;
            finished = ask.work(arguments) => finished,
            () = cancelled.wait() => ask.cancel().await,
        }
    }

    /// Making the call again finds the subagent and its outcome, so every call counts as running.
    async fn find(&self, work: Work) -> CallFact {
        match work.context.asking {
            Some(_) => CallFact::Running,
            None => CallFact::Unknown,
        }
    }

    async fn resume(&self, work: Work, cancelled: Cancelled) -> Finished {
        self.run(work, cancelled).await
    }
}

/// The questions to the daemon about one call.
struct Ask<'a> {
    context: &'a ToolContext,
    call: &'a CallId,
}

impl Ask<'_> {
    async fn ask(&self, question: Question) -> Option<Answer> {
        self.context.asking.as_ref()?.ask(question).await
    }

    async fn work(&self, arguments: Arguments) -> Finished {
        let background = arguments.run_in_background.unwrap_or_default();
        let call = self.call.clone();
        let spawn = Question::Spawn {
            call: call.clone(),
            kind: arguments.kind,
            prompt: arguments.prompt,
            background,
        };
        match self.ask(spawn).await {
            Some(Answer::Spawned { name }) if background => said(
                CallOutcome::Ok,
                format!(
                    "Started the subagent {name} in the background. Its answer arrives as a message when \
                     it ends."
                ),
            ),
            Some(Answer::Spawned { .. }) => match self.ask(Question::Await { call }).await {
                Some(answer) => ended(answer),
                None => unknown(),
            },
            Some(Answer::Refused { why }) => said(
                CallOutcome::Error,
                format!("No subagent was started: {why}."),
            ),
            Some(answer) => ended(answer),
            None => unknown(),
        }
    }

    async fn cancel(&self) -> Finished {
        let call = self.call.clone();
        let asked = self.ask(Question::Cancel { call });
        let answer = tokio::time::timeout(CANCEL_TIMEOUT, asked).await;
        let text = match answer {
            Ok(Some(Answer::Ended { name, text, .. })) => match text.trim() {
                "" => format!("interrupted: the subagent {name} was stopped"),
                text => format!("{text}\ninterrupted: the subagent {name} was stopped"),
            },
            Ok(Some(Answer::NotThere)) => "interrupted: no subagent was started".to_owned(),
            _ => "interrupted: the subagent is being stopped".to_owned(),
        };
        said(CallOutcome::Interrupted, text)
    }
}

fn ended(answer: Answer) -> Finished {
    let (name, report) = match answer {
        Answer::Ended {
            name,
            outcome,
            text,
            error,
        } => {
            let spent = Spent::default();
            let report = Report {
                outcome,
                spent,
                text,
                error,
            };
            (name, report)
        }
        Answer::NotThere => {
            let text = "interrupted: no subagent was started";
            return said(CallOutcome::Interrupted, text);
        }
        Answer::Refused { why } => return said(CallOutcome::Error, why),
        Answer::Spawned { .. } => return unknown(),
    };
    match report.outcome {
        SubagentOutcome::Completed if !report.text.trim().is_empty() => {
            said(CallOutcome::Ok, report.text)
        }
        SubagentOutcome::Completed => said(CallOutcome::Ok, "The subagent returned no answer."),
        _ => {
            let how = subagents::how(&report);
            said(CallOutcome::Error, format!("The subagent {name} {how}"))
        }
    }
}

fn unknown() -> Finished {
    said(
        CallOutcome::Unknown,
        "The daemon is gone; the outcome of the subagent is unknown.",
    )
}
