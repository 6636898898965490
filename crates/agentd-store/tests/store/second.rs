//! A second process with the same store open: this very program, started again.

use crate::author::said;
use crate::lab::{agent_id, run};
use agentd_core::time::Timestamp;
use agentd_store::{Ack, Append, Fence, Options, SqliteStore, Store as _};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const DIR: &str = "AGENTD_SECOND_PROCESS";

/// A second process: it carries out one command per line, until its input ends.
pub struct Second {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Second {
    pub fn start(dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["second::process", "--exact", "--nocapture"])
            .env(DIR, dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            orders,
            answers,
        }
    }

    /// One order, without waiting for what comes of it.
    pub fn tell(&mut self, order: &str) {
        let orders = self.orders.as_mut().unwrap();
        writeln!(orders, "{order}").unwrap();
        orders.flush().unwrap();
    }

    /// The next answer. The test runner in there talks as well.
    pub fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            let read = self.answers.read_line(&mut line).unwrap();
            assert!(read > 0, "the second process has gone");
            if let Some(answer) = line.trim_end().strip_prefix("> ") {
                return answer.to_owned();
            }
        }
    }

    /// Ends it on the spot, whatever it is doing.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn ask(&mut self, order: &str) -> String {
        self.tell(order);
        self.hear()
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        self.orders = None;
        drop(self.child.wait());
    }
}

/// Not a test: the second process. Without its variable there is nothing to do.
#[test]
fn process() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    run(async {
        let opened = SqliteStore::open(Options::new(dir));
        let store = match &opened {
            Ok(store) => {
                answer("open");
                store
            }
            Err(error) => return answer(&format!("{error:?}")),
        };
        let mut fence = Fence {
            agent: agent_id(1),
            epoch: 0,
        };
        for order in std::io::stdin().lines() {
            let order = order.unwrap();
            let done = match order.split_once(' ').unwrap_or((&order, "")) {
                ("claim", _) => match store.claim(agent_id(1), "second").await {
                    Ok(claim) => {
                        fence = claim.fence;
                        format!("{}", fence.epoch)
                    }
                    Err(error) => format!("{error:?}"),
                },
                ("append", text) => {
                    let append = Append::new(fence, vec![said(fence, text)]);
                    match store.append(append).await {
                        Ok(Ack::Committed { last, .. }) => format!("{last}"),
                        Ok(repeated) => format!("{repeated:?}"),
                        Err(error) => format!("{error:?}"),
                    }
                }
                ("purge", conversation) => {
                    let conversation = conversation.parse().unwrap();
                    let at = Timestamp::from_millis(1);
                    format!("{:?}", store.purge(fence, conversation, at).await)
                }
                ("wait_caught_up", _) => format!("{:?}", store.wait_caught_up().await),
                _ => panic!("`{order}`?"),
            };
            answer(&done);
        }
    });
}

fn answer(text: &str) {
    let mut out = std::io::stdout().lock();
    // Whole, on a line of its own, whatever the test runner has just said.
    write!(out, "\n> {text}\n").unwrap();
    out.flush().unwrap();
}
