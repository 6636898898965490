//! The prompts of the editor, from their arrival to the end of their turns.

use super::{Done, Session, log};
use crate::acp::connection::Responder;
use crate::acp::stop::{self, Cancel, End};
use crate::acp::translate::{answer, waits_for};
use crate::acp::{commands, content, problem};
use crate::chat::commands::{Meaning, parse};
use crate::error::{Error, Exit};
use crate::keys;
use agent_client_protocol::v1::schema::{ContentBlock, PromptResponse, StopReason};
use agentd_client::api::{Answer, RemovePrompts, Send, Sent};
use agentd_client::{Error as ClientError, Kind};
use agentd_core::event::{PauseReason, PromptMode, TurnEnded};
use agentd_core::id::{OpId, PromptId, TurnId};
use agentd_core::state::Phase;
use std::time::Duration;
use tokio::sync::oneshot;
use uuid::Uuid;

/// A prompt that has no answer yet.
pub struct Pending {
    /// Its idempotency key, which the journal repeats: it is known before the prompt has an id.
    key: String,
    prompt: Option<PromptId>,
    turn: Option<TurnId>,
    cancel: Cancel,
    is_sent: bool,
    responder: Responder<PromptResponse>,
    /// Dropped with the prompt: the editor can no longer cancel its request.
    _ended: oneshot::Sender<()>,
}

impl Pending {
    pub const fn is_being_sent(&self) -> bool {
        !self.is_sent
    }

    pub fn is(&self, prompt: PromptId) -> bool {
        self.prompt == Some(prompt)
    }
}

/// Tells the editor that a prompt has ended.
fn stop(responder: Responder<PromptResponse>, reason: StopReason) {
    // An editor that is gone needs no answer.
    let _gone = responder.respond(PromptResponse::new(reason));
}

pub fn fail(responder: Responder<PromptResponse>, error: Error) {
    let _gone = responder.respond_with_error(problem::of(error));
}

/// The answer to a prompt whose turn failed.
pub fn explain(responder: Responder<PromptResponse>, answer: Result<Answer, Error>) {
    let error = match answer {
        Ok(answer) => {
            let why = answer
                .error
                .unwrap_or_else(|| "the reason is not known".to_owned());
            Error::new(Exit::Failed, "the turn failed")
                .because(why)
                .next("send the prompt again; `agentd logs` has the details")
        }
        Err(error) => error,
    };
    fail(responder, error);
}

impl Session {
    pub(super) fn prompt(
        &mut self,
        blocks: Vec<ContentBlock>,
        responder: Responder<PromptResponse>,
    ) {
        let given = match content::read(blocks) {
            Ok(given) => given,
            Err(error) => return fail(responder, error),
        };
        match parse(&given.text, &self.own) {
            Meaning::Unknown(name) => {
                let text = format!("There is no command /{name}.");
                self.update([answer(&Uuid::now_v7().to_string(), &text)]);
                stop(responder, StopReason::EndTurn);
            }
            Meaning::Command(verb, arguments) => {
                let op = OpId::new(Uuid::now_v7());
                if commands::moves(verb) {
                    self.own_moves.insert(op);
                }
                let target = self.target.clone();
                self.start(async move {
                    let ran = commands::run(&target, verb, arguments, op).await;
                    Done::Ran(responder, op, ran)
                });
            }
            Meaning::Prompt { text, .. } => {
                let key = Uuid::now_v7().to_string();
                let ended = self.heed_cancellation(&key, &responder);
                self.pending.push(Pending {
                    key: key.clone(),
                    prompt: None,
                    turn: None,
                    cancel: Cancel::No,
                    is_sent: false,
                    responder,
                    _ended: ended,
                });
                let mut send = Send {
                    text,
                    attachments: given.attachments,
                    key: Some(key.clone()),
                    mode: PromptMode::Queue,
                    ..Send::default()
                };
                let (client, name) = (self.shared.client.clone(), self.target.id.clone());
                self.start(async move {
                    let sent = async {
                        send.env = keys::env_of(&client, &name).await?;
                        Ok(client.send(&name, &send).await?)
                    };
                    Done::Sent(key, sent.await)
                });
            }
        }
    }

    /// A slash command has been carried out.
    pub(super) fn ran(
        &mut self,
        responder: Responder<PromptResponse>,
        op: OpId,
        ran: Result<String, Error>,
    ) {
        match ran {
            Ok(text) => {
                self.update([answer(&Uuid::now_v7().to_string(), &text)]);
                stop(responder, StopReason::EndTurn);
            }
            Err(error) => {
                self.own_moves.remove(&op);
                fail(responder, error);
            }
        }
    }

    pub(super) fn sent(&mut self, key: &str, sent: Result<Sent, Error>) {
        let Some(at) = self.pending.iter().position(|it| it.key == key) else {
            return;
        };
        match sent {
            Err(error) => fail(self.pending.swap_remove(at).responder, error),
            Ok(sent) if matches!(sent.phase, Phase::Stopped | Phase::Failed) => {
                let error = Error::new(Exit::Waiting, "the agent is stopped or has failed")
                    .because("the prompt is queued and is answered when the agent runs")
                    .next("send /start");
                fail(self.pending.swap_remove(at).responder, error);
            }
            Ok(sent) => {
                let pending = &mut self.pending[at];
                pending.is_sent = true;
                let is_new = pending.prompt.replace(sent.prompt).is_none();
                if is_new && pending.cancel == Cancel::Asked {
                    self.cancel_one(key);
                }
            }
        }
    }

    /// Cancels the prompt if the editor cancels its request (`$/cancel_request`), until what is returned is dropped.
    fn heed_cancellation(
        &self,
        key: &str,
        responder: &Responder<PromptResponse>,
    ) -> oneshot::Sender<()> {
        let (key, cancellation) = (key.to_owned(), responder.cancellation());
        let (ended, is_over) = oneshot::channel();
        self.start(async move {
            tokio::select! {
                () = cancellation.cancelled() => Done::Cancelled(key),
                _ = is_over => Done::Nothing,
            }
        });
        ended
    }

    /// Cancels the prompts of the editor; without one, the turn that runs.
    pub(super) fn cancel(&mut self) {
        match self.pending.is_empty() {
            true => self.interrupt(),
            false => self.cancel_where(|_| true),
        }
    }

    /// Cancels the prompt whose request the editor has cancelled.
    pub(super) fn cancel_one(&mut self, key: &str) {
        self.cancel_where(|pending| pending.key == key);
    }

    fn cancel_where(&mut self, is_meant: impl Fn(&Pending) -> bool) {
        let mut interrupts = false;
        let mut queued = Vec::new();
        for pending in self.pending.iter_mut().filter(|it| is_meant(it)) {
            pending.cancel = Cancel::Asked;
            match (pending.turn, pending.prompt) {
                (Some(_), _) => interrupts = true,
                (None, Some(prompt)) => queued.push(prompt),
                // It is cancelled when it has an id.
                (None, None) => {}
            }
        }
        if interrupts {
            self.interrupt();
        }
        for prompt in queued {
            self.remove(prompt);
        }
    }

    fn interrupt(&self) {
        let (client, name) = (self.shared.client.clone(), self.target.id.clone());
        self.start(async move {
            match client.interrupt(&name).await {
                // The turn has ended meanwhile.
                Err(ClientError::Problem(problem)) if problem.kind == Kind::Conflict => {}
                Err(error) => log(&error.into()),
                Ok(_) => {}
            }
            Done::Nothing
        });
    }

    fn remove(&self, prompt: PromptId) {
        let (client, name) = (self.shared.client.clone(), self.target.id.clone());
        self.start(async move {
            let remove = RemovePrompts {
                prompts: vec![prompt.to_string()],
            };
            let removed = client.remove_prompts(&name, &remove).await;
            Done::Removed(prompt, removed.map(drop).map_err(Error::from))
        });
    }

    /// A prompt that could not be removed has been taken by a turn meanwhile: its event says so.
    pub(super) fn removed(&mut self, prompt: PromptId, removed: Result<(), Error>) {
        let pending = self.pending.iter().find(|it| it.is(prompt));
        if let (Err(_), Some(Pending { turn: Some(_), .. })) = (removed, pending) {
            self.interrupt();
        }
    }

    pub(super) fn queued(&mut self, key: Option<&str>, prompt: PromptId) {
        let mut all = self.pending.iter_mut();
        let pending = all.find(|it| Some(it.key.as_str()) == key);
        if let Some(pending) = pending
            && pending.prompt.replace(prompt).is_none()
            && pending.cancel == Cancel::Asked
        {
            self.remove(prompt);
        }
    }

    pub(super) fn taken(&mut self, prompts: &[PromptId], turn: Option<TurnId>) {
        let mut is_cancelled = false;
        for pending in &mut self.pending {
            if pending.prompt.is_some_and(|it| prompts.contains(&it)) {
                pending.turn = turn;
                is_cancelled |= pending.cancel == Cancel::Asked;
            }
        }
        if is_cancelled {
            self.interrupt();
        }
    }

    /// The prompts will not be answered.
    pub(super) fn gone(&mut self, prompts: &[PromptId]) {
        let is_gone = |pending: &Pending| {
            pending
                .prompt
                .is_some_and(|prompt| prompts.contains(&prompt))
        };
        for pending in self.pending.extract_if(.., |it| is_gone(it)) {
            stop(pending.responder, StopReason::Cancelled);
        }
    }

    pub(super) fn turn_ended(&mut self, turn: Option<TurnId>, ended: &TurnEnded) {
        let reply = self.translator.stop();
        let mut failed = Vec::new();
        let of_turn = |it: &mut Pending| it.turn.is_some() && it.turn == turn;
        for pending in self.pending.extract_if(.., of_turn) {
            match stop::of_turn(ended, reply, pending.cancel) {
                End::Stopped(reason) => stop(pending.responder, reason),
                End::Failed => failed.push(pending),
            }
        }
        for Pending {
            prompt, responder, ..
        } in failed
        {
            let (client, name) = (self.shared.client.clone(), self.target.id.clone());
            self.start(async move {
                let Some(prompt) = prompt else {
                    return Done::Nothing;
                };
                let answer = client.answer(&name, prompt, Duration::ZERO).await;
                Done::Explained(responder, answer.map_err(Error::from))
            });
        }
    }

    /// The turn waits for the user.
    pub(super) fn paused(&mut self, turn: Option<TurnId>, reason: PauseReason) {
        let next = match reason {
            PauseReason::MissingKey => {
                "give the provider's key to the editor's environment or to `agentd secret`, then send /continue"
            }
            PauseReason::Crash => "send /continue",
        };
        let of_turn = |it: &mut Pending| it.turn.is_some() && it.turn == turn;
        for pending in self.pending.extract_if(.., of_turn) {
            let error = Error::new(Exit::Waiting, "the turn waits for you")
                .because(waits_for(reason))
                .next(next);
            fail(pending.responder, error);
        }
    }

    /// No prompt can be answered now.
    pub(super) fn fail_all(&mut self, error: impl Fn() -> Error) {
        for pending in self.pending.drain(..) {
            fail(pending.responder, error());
        }
    }

    /// The session is closed: the prompts continue without it.
    pub(super) fn close_all(&mut self) {
        for pending in self.pending.drain(..) {
            stop(pending.responder, StopReason::Cancelled);
        }
    }
}
