//! One commit for all commands that are queued.

use super::append::Prepared;
use super::failure::Failure;
use super::{ENTRIES, Reply, Thread, append, begin, claim, commit, draft};
use crate::error::{Disk, Error, Result};
use crate::sqlite::readers::Databases;
use crate::sqlite::written::Written;
use crate::store::*;
use agentd_core::event::Kind;
use agentd_core::id::{AgentId, Seq};
use rusqlite::CachedStatement;
use std::collections::{HashMap, HashSet};

/// The commands that may share a commit.
pub(super) enum Grouped {
    Append {
        prepared: Prepared,
        /// The appended events go back with the answer, so that the sender frees them and not the writer.
        reply: Reply<(Ack, Prepared)>,
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

/// Sends the answer to a caller, or an error in its place.
type Say = Box<dyn FnOnce(Option<Error>)>;

/// An answer that is sent after the commit.
struct Answer {
    say: Say,
    /// Whether the answer is still true if the commit fails.
    worth: Worth,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Worth {
    /// No: it depends on this commit.
    Nothing,
    /// Yes: it reports what was on disk before.
    All,
    /// Unknown: it reports something that may have been on disk before, or may be part of this commit.
    Unknown,
}

/// What one group has done so far.
#[derive(Default)]
struct Work {
    answers: Vec<Answer>,
    /// The new heads of the agents that were written to.
    heads: HashMap<AgentId, Seq>,
    /// The agents whose state in memory differs from the state on disk.
    touched: HashSet<AgentId>,
    /// Of those, the ones that were claimed by a new owner.
    claimed: HashSet<AgentId>,
    written: Option<Written>,
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
        let failpoints = self.options.failpoints.map(|tell| (tell, names(&group)));
        let pass = |when| {
            if let Some((tell, names)) = &failpoints {
                names.iter().for_each(|name| tell(when, "commit", name));
            }
        };
        let mut work = Work::default();
        let mut group = group.into_iter();
        if let Err(disk) = self.carry_out_all(&databases, &mut group, &mut work) {
            self.roll_back(databases);
            for answer in work.answers {
                answer.fail(&disk);
            }
            return refuse_all(group.collect(), &disk);
        }
        let has_prompt = failpoints
            .as_ref()
            .is_some_and(|(_, names)| names.contains(&"prompt_queued"));
        if has_prompt && self.options.is_injected_bug("acknowledged_early") {
            early(std::mem::take(&mut work.answers));
        }
        if self.options.is_injected_bug("head_before_commit") {
            self.record_head();
        }
        pass("before");
        match commit(&databases) {
            Ok(()) => {
                pass("after");
                self.databases = Some(databases);
                self.record_head();
                self.notify.committed(work.heads);
                work.answers.into_iter().for_each(Answer::give);
            }
            Err(disk) => {
                drop(databases);
                self.resolve_after_failed_commit(work, &disk);
            }
        }
        if self.entries.len() > ENTRIES {
            self.entries.clear();
        }
    }

    /// Runs the commands until the disk fails. The caller of the command that failed has then been answered.
    fn carry_out_all(
        &mut self,
        databases: &Databases,
        group: &mut impl Iterator<Item = Grouped>,
        work: &mut Work,
    ) -> Result<(), Disk> {
        let mut statement = append::statement(&databases.journal).map_err(Disk::from_sqlite)?;
        for command in group {
            self.carry_out(databases, &mut statement, command, work)?;
        }
        Ok(())
    }

    /// Runs one command and keeps its answer. Returns an error if the disk failed; the caller of the
    /// command has then been answered.
    fn carry_out(
        &mut self,
        databases: &Databases,
        statement: &mut CachedStatement<'_>,
        command: Grouped,
        work: &mut Work,
    ) -> Result<(), Disk> {
        match command {
            Grouped::Append {
                mut prepared,
                reply,
            } => {
                let agent = prepared.fence.agent;
                let done = append::apply(self, databases, statement, &mut prepared);
                let (reply, done) = or_disk(reply, done)?;
                let done = done.map(|(ack, written)| {
                    work.written = written.or(work.written);
                    ack
                });
                let worth = work.worth(agent, &done, |ack| matches!(ack, Ack::Repeated { .. }));
                if let Ok(Ack::Committed { last, .. }) = done {
                    work.touched.insert(agent);
                    work.heads.insert(agent, last);
                }
                work.keep(reply, done.map(|ack| (ack, prepared)), worth);
            }
            Grouped::Draft {
                fence,
                chunk,
                reply,
            } => {
                let done = draft::write(self, databases, fence, &chunk);
                let (reply, done) = or_disk(reply, done)?;
                let worth = work.worth(fence.agent, &done, |(_, written)| written.is_none());
                let done = done.map(|(ack, written)| {
                    work.touched.extend(written.map(|_| fence.agent));
                    work.written = work.written.or(written);
                    ack
                });
                work.keep(reply, done, worth);
            }
            Grouped::Claim {
                agent,
                owner,
                reply,
            } => {
                let done = claim::claim(self, databases, agent, &owner);
                let (reply, done) = or_disk(reply, done)?;
                let worth = work.worth(agent, &done, |_| false);
                if let Ok(claim) = &done {
                    work.touched.insert(agent);
                    work.claimed.insert(agent);
                    work.written = work.written.or(Some(Written::Claim(claim.fence)));
                    let entry = self.entries.get(&agent);
                    work.heads
                        .extend(entry.map(|entry| (agent, entry.state.head)));
                }
                work.keep(reply, done, worth);
            }
        }
        Ok(())
    }

    /// After a failed commit: acknowledges what is on disk, refuses what is not, and answers
    /// `Uncertain` if the disk cannot be read.
    fn resolve_after_failed_commit(&mut self, work: Work, disk: &Disk) {
        let tips = std::mem::take(&mut self.tips);
        let there = match work.written {
            Some(written) => self.find_after_failure(written),
            // There was nothing to write.
            None => Some(true),
        };
        if there == Some(true) {
            self.head.record(tips);
            self.notify.committed(work.heads);
        }
        for answer in work.answers {
            match there {
                Some(true) => answer.give(),
                Some(false) => answer.fail(disk),
                None => answer.mark_stale(disk),
            }
        }
    }
}

/// An injected bug: all callers are answered, and act on it, before anything is on disk.
fn early(answers: Vec<Answer>) {
    answers.into_iter().for_each(Answer::give);
    // tidy: polls nothing; without the pause no caller would act on the early answer
    std::thread::sleep(std::time::Duration::from_millis(100));
}

/// The names of a group's events and other commands, for the failpoints.
fn names(group: &[Grouped]) -> Vec<&'static str> {
    let each = group.iter().flat_map(|command| match command {
        Grouped::Append { prepared, .. } => prepared.kinds().map(Kind::name).collect(),
        Grouped::Draft { .. } => vec!["draft"],
        Grouped::Claim { .. } => vec!["claim"],
    });
    each.collect()
}

fn refuse_all(group: Vec<Grouped>, disk: &Disk) {
    for command in group {
        let error = Error::NotCommitted(disk.clone());
        // The caller may be gone; then the answer is dropped.
        match command {
            Grouped::Append { reply, .. } => drop(reply.send(Err(error))),
            Grouped::Draft { reply, .. } => drop(reply.send(Err(error))),
            Grouped::Claim { reply, .. } => drop(reply.send(Err(error))),
        }
    }
}

/// Answers the caller at once if the disk failed: nothing of the group will be committed.
fn or_disk<A, T>(reply: Reply<A>, done: Result<T, Failure>) -> Result<(Reply<A>, Result<T>), Disk> {
    match done {
        Ok(done) => Ok((reply, Ok(done))),
        Err(Failure::Refused(error)) => Ok((reply, Err(error))),
        Err(Failure::Disk(disk)) => {
            let _gone = reply.send(Err(Error::NotCommitted(disk.clone())));
            Err(disk)
        }
    }
}

impl Work {
    fn keep<T: 'static>(&mut self, reply: Reply<T>, done: Result<T>, worth: Worth) {
        let say: Say = Box::new(move |instead| {
            let _gone = reply.send(match instead {
                Some(error) => Err(error),
                None => done,
            });
        });
        self.answers.push(Answer { say, worth });
    }

    /// Must be called before the agent is marked as touched by this command. `is_old` tells whether an answer
    /// reports something that existed before.
    fn worth<T>(&self, agent: AgentId, done: &Result<T>, is_old: impl Fn(&T) -> bool) -> Worth {
        let touched = match done {
            Err(Error::StaleFence { .. }) => self.claimed.contains(&agent),
            // Any command of the group may have taken the name; everything else concerns the agent itself.
            Err(Error::NameTaken { .. }) => !self.touched.is_empty(),
            _ => self.touched.contains(&agent),
        };
        match done {
            Ok(done) if !is_old(done) => Worth::Nothing,
            _ if !touched => Worth::All,
            Ok(_) => Worth::Unknown,
            Err(_) => Worth::Nothing,
        }
    }
}

impl Answer {
    fn give(self) {
        (self.say)(None);
    }

    /// The commit is not on disk.
    fn fail(self, disk: &Disk) {
        (self.say)(match self.worth {
            Worth::All => None,
            Worth::Nothing => Some(Error::NotCommitted(disk.clone())),
            Worth::Unknown => Some(Error::Uncertain(disk.clone())),
        });
    }

    /// It is unknown whether the commit is on disk.
    fn mark_stale(self, disk: &Disk) {
        (self.say)(match self.worth {
            Worth::All => None,
            Worth::Nothing | Worth::Unknown => Some(Error::Uncertain(disk.clone())),
        });
    }
}
