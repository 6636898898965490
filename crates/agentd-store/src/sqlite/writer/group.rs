//! One commit for all that piled up.

use super::append::Prepared;
use super::{ENTRIES, Reply, Thread, append, begin, claim, commit};
use crate::chain::Hash;
use crate::error::{Disk, Error, Result};
use crate::sqlite::drafts;
use crate::sqlite::readers::Databases;
use crate::sqlite::row::sql_seq;
use crate::store::*;
use agentd_core::id::{AgentId, Seq};
use rusqlite::{OptionalExtension as _, params};
use std::collections::HashMap;

/// What may share a commit.
pub(super) enum Grouped {
    Append {
        prepared: Prepared,
        reply: Reply<Ack>,
    },
    Draft {
        fence: Fence,
        chunk: DraftChunk,
        reply: Reply<DraftAck>,
    },
    Claim {
        agent: AgentId,
        owner: String,
        reply: Reply<Claim>,
    },
}

/// Why a command did not go through.
pub(in crate::sqlite) enum Failure {
    /// Its own fault: the others go on.
    Refused(Error),
    /// The disk's: nobody in this group gets through.
    Disk(Disk),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Disk(Disk::from_sqlite(error))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Unavailable(disk) | Error::NotCommitted(disk) => Self::Disk(disk),
            refused => Self::Refused(refused),
        }
    }
}

/// The last event of an append, by which it can be found again.
#[derive(Clone, Copy)]
pub(super) struct Landed {
    pub num: i64,
    pub seq: Seq,
    pub chain: Hash,
}

/// An answer that is given once the commit is through.
enum Answer {
    Append(Reply<Ack>, Result<Ack>, Option<Landed>),
    Draft(Reply<DraftAck>, Result<DraftAck>),
    Claim(Reply<Claim>, Result<Claim>),
}

impl Thread {
    pub(super) fn commit_group(&mut self, group: Vec<Grouped>) {
        if group.is_empty() {
            return;
        }
        let databases = match self.take_databases() {
            Ok(databases) => databases,
            Err(disk) => return refuse_all(group, &disk),
        };
        let ready = begin(&databases).and_then(|()| self.notice_others(&databases));
        if let Err(disk) = ready {
            self.roll_back(databases);
            return refuse_all(group, &disk);
        }
        let mut answers = Vec::with_capacity(group.len());
        let mut heads = HashMap::new();
        let mut group = group.into_iter();
        while let Some(command) = group.next() {
            match self.carry_out(&databases, command, &mut heads) {
                Ok(answer) => answers.push(answer),
                Err((failed, disk)) => {
                    self.roll_back(databases);
                    failed.answer(&disk);
                    answers.into_iter().for_each(|answer| answer.fail(&disk));
                    return refuse_all(group.collect(), &disk);
                }
            }
        }
        match commit(&databases) {
            Ok(()) => {
                self.databases = Some(databases);
                self.notify.committed(heads);
                answers.into_iter().for_each(Answer::give);
            }
            Err(disk) => {
                drop(databases);
                self.tell_the_truth(answers, disk);
            }
        }
        if self.entries.len() > ENTRIES {
            self.entries.clear();
        }
    }

    /// The inner result is the caller's answer; the error is the disk's.
    fn carry_out(
        &mut self,
        databases: &Databases,
        command: Grouped,
        heads: &mut HashMap<AgentId, Seq>,
    ) -> Result<Answer, (Unanswered, Disk)> {
        match command {
            Grouped::Append { prepared, reply } => {
                let agent = prepared.fence.agent;
                match append::apply(self, databases, prepared) {
                    Ok((ack, landed)) => {
                        if let Ack::Committed { last, .. } = ack {
                            heads.insert(agent, last);
                        }
                        Ok(Answer::Append(reply, Ok(ack), landed))
                    }
                    Err(Failure::Refused(error)) => Ok(Answer::Append(reply, Err(error), None)),
                    Err(Failure::Disk(disk)) => Err((Unanswered::Append(reply), disk)),
                }
            }
            Grouped::Draft {
                fence,
                chunk,
                reply,
            } => match drafts::write(self, databases, fence, &chunk) {
                Ok(ack) => Ok(Answer::Draft(reply, Ok(ack))),
                Err(Failure::Refused(error)) => Ok(Answer::Draft(reply, Err(error))),
                Err(Failure::Disk(disk)) => Err((Unanswered::Draft(reply), disk)),
            },
            Grouped::Claim {
                agent,
                owner,
                reply,
            } => match claim::claim(self, databases, agent, &owner) {
                Ok(claim) => Ok(Answer::Claim(reply, Ok(claim))),
                Err(Failure::Refused(error)) => Ok(Answer::Claim(reply, Err(error))),
                Err(Failure::Disk(disk)) => Err((Unanswered::Claim(reply), disk)),
            },
        }
    }

    /// After a failed commit: what is there after all is acknowledged, what is not is refused, and
    /// where the disk does not even say which, that is what callers hear.
    fn tell_the_truth(&mut self, answers: Vec<Answer>, disk: Disk) {
        let verdict = self.after_failed_commit(disk.clone());
        let certain = matches!(verdict, Error::NotCommitted(_));
        for answer in answers {
            match answer {
                Answer::Append(reply, Ok(ack), Some(landed)) if certain => {
                    let there = self.databases.as_ref().map(|db| is_there(db, landed));
                    let _gone = reply.send(match there {
                        Some(Ok(true)) => Ok(ack),
                        Some(Ok(false)) => Err(Error::NotCommitted(disk.clone())),
                        _ => Err(Error::Uncertain(disk.clone())),
                    });
                }
                answer if certain => answer.fail(&disk),
                answer => answer.doubt(&disk),
            }
        }
    }
}

fn is_there(databases: &Databases, landed: Landed) -> Result<bool> {
    let chain: Option<Hash> = databases
        .journal
        .query_row(
            "SELECT chain FROM event WHERE agent = ?1 AND seq = ?2",
            params![landed.num, sql_seq(landed.seq)],
            |row| row.get(0),
        )
        .optional()?;
    Ok(chain == Some(landed.chain))
}

fn refuse_all(group: Vec<Grouped>, disk: &Disk) {
    for command in group {
        match command {
            Grouped::Append { reply, .. } => Unanswered::Append(reply),
            Grouped::Draft { reply, .. } => Unanswered::Draft(reply),
            Grouped::Claim { reply, .. } => Unanswered::Claim(reply),
        }
        .answer(disk);
    }
}

/// Somebody who still waits.
enum Unanswered {
    Append(Reply<Ack>),
    Draft(Reply<DraftAck>),
    Claim(Reply<Claim>),
}

impl Unanswered {
    /// Whoever asked may have gone; then nobody wants the answer.
    fn answer(self, disk: &Disk) {
        self.say(Error::NotCommitted(disk.clone()));
    }

    fn say(self, error: Error) {
        match self {
            Self::Append(reply) => drop(reply.send(Err(error))),
            Self::Draft(reply) => drop(reply.send(Err(error))),
            Self::Claim(reply) => drop(reply.send(Err(error))),
        }
    }
}

impl Answer {
    fn give(self) {
        match self {
            Self::Append(reply, answer, _) => drop(reply.send(answer)),
            Self::Draft(reply, answer) => drop(reply.send(answer)),
            Self::Claim(reply, answer) => drop(reply.send(answer)),
        }
    }

    /// A refusal stays what it is; a success was none.
    fn fail(self, disk: &Disk) {
        self.replace(Error::NotCommitted(disk.clone()));
    }

    fn doubt(self, disk: &Disk) {
        self.replace(Error::Uncertain(disk.clone()));
    }

    fn replace(self, error: Error) {
        match self {
            Self::Append(reply, Ok(_), _) => Unanswered::Append(reply).say(error),
            Self::Draft(reply, Ok(_)) => Unanswered::Draft(reply).say(error),
            Self::Claim(reply, Ok(_)) => Unanswered::Claim(reply).say(error),
            refused => refused.give(),
        }
    }
}
