//! The connection: connecting, keeping it, reconnecting.

use super::{Ask, Heard, Options};
use agentd_core::hook::Verdict;
use agentd_core::id::InvocationId;
use agentd_core::link::{Answer, Did, Down, MAX_FRAME, Runtime, Up};
use agentd_failpoint as failpoint;
use futures_util::{SinkExt as _, StreamExt as _};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio_util::codec::{AnyDelimiterCodec, Framed};

/// The pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(50);

type Connection = Framed<UnixStream, AnyDelimiterCodec>;

/// Why a connection was closed.
enum Over {
    /// It broke, or the daemon sent an invalid message.
    Broken,
    /// The journal was dropped: nothing needs the link any more.
    Done,
}

struct Wire {
    link: Runtime,
    heard: mpsc::UnboundedSender<Heard>,
    /// The callers that wait for answers.
    asking: BTreeMap<u64, oneshot::Sender<Answer>>,
    /// The callers that wait for results of hooks.
    invoked: HashMap<InvocationId, Vec<oneshot::Sender<Verdict>>>,
}

pub async fn run(
    options: Options,
    mut asked: mpsc::UnboundedReceiver<Ask>,
    heard: mpsc::UnboundedSender<Heard>,
) {
    let (secret, build) = (options.secret.clone(), options.build.clone());
    let link = Runtime::new(options.agent, options.runtime, secret, build);
    let (asking, invoked) = (BTreeMap::new(), HashMap::new());
    let mut wire = Wire {
        link,
        heard,
        asking,
        invoked,
    };
    let mut alone_since = Instant::now();
    loop {
        if let Ok(stream) = UnixStream::connect(&options.socket).await {
            let codec = AnyDelimiterCodec::new_with_max_length(vec![0], vec![0], MAX_FRAME);
            let mut connection = Framed::new(stream, codec);
            let over = wire.converse(&mut connection, &mut asked).await;
            wire.link.disconnected();
            if matches!(over, Over::Done) {
                return;
            }
            alone_since = Instant::now();
        }
        let home = options.socket.parent();
        let why = if home.is_some_and(|home| !home.is_dir()) {
            "the state directory is gone"
        } else if alone_since.elapsed() > options.orphan {
            "no daemon appeared within the time limit"
        } else {
            ""
        };
        if !why.is_empty() {
            let _closed = wire.heard.send(Heard::Gone(why.to_owned()));
            return;
        }
        // tidy: polls for a daemon
        tokio::time::sleep(PAUSE).await;
        if wire.heard.is_closed() {
            return;
        }
    }
}

impl Wire {
    /// A question whose caller is gone is not sent again.
    fn forget_who_left(&mut self) {
        let left = self.asking.iter().filter(|(_, reply)| reply.is_closed());
        let left: Vec<u64> = left.map(|(n, _)| *n).collect();
        for n in left {
            self.asking.remove(&n);
            self.link.forget(n);
        }
    }

    async fn converse(
        &mut self,
        connection: &mut Connection,
        asked: &mut mpsc::UnboundedReceiver<Ask>,
    ) -> Over {
        let did = self.link.connected();
        if let Some(over) = self.carry_out(connection, did).await {
            return over;
        }
        loop {
            let did = tokio::select! {
                frame = connection.next() => {
                    let Some(Ok(frame)) = frame else { return Over::Broken };
                    let Ok(down) = Down::read(&frame) else {
                        return Over::Broken;
                    };
                    failpoint::hit_of("on", "receive", down.name());
                    self.link.received(down)
                }
                ask = asked.recv() => match ask {
                    Some(Ask::Append(events, ends)) => self.link.append(events, ends),
                    Some(Ask::Draft(draft)) => self.link.draft(draft),
                    Some(Ask::Question(question, reply)) => {
                        self.forget_who_left();
                        let (n, did) = self.link.ask(question);
                        self.asking.insert(n, reply);
                        did
                    }
                    Some(Ask::InvokeHooks(invocation, tell)) => {
                        self.invoked.entry(invocation.id).or_default().push(tell);
                        self.link.invoke(*invocation)
                    }
                    Some(Ask::Keys(keys)) => self.link.keys(keys),
                    Some(Ask::Progress(progress)) => self.link.progress(progress),
                    None => return Over::Done,
                },
            };
            if let Some(over) = self.carry_out(connection, did).await {
                return over;
            }
        }
    }

    async fn carry_out(&mut self, connection: &mut Connection, did: Vec<Did>) -> Option<Over> {
        for did in did {
            let heard = match did {
                Did::Send(up) => {
                    if send(connection, &up).await.is_err() {
                        return Some(Over::Broken);
                    }
                    continue;
                }
                Did::Woken(welcome) => Heard::Woken(welcome),
                Did::Arrived(events) => Heard::Arrived(events),
                Did::Appended => Heard::Appended,
                Did::Drafted(refused) => Heard::Drafted(refused),
                Did::HooksAnswered(id, verdict) => {
                    for tell in self.invoked.remove(&id).unwrap_or_default() {
                        let _dropped = tell.send(verdict.clone());
                    }
                    continue;
                }
                Did::Told(order, turn) => Heard::Told(order, turn),
                Did::Answered(n, answer) => {
                    if let Some(reply) = self.asking.remove(&n) {
                        let _dropped = reply.send(answer);
                    }
                    continue;
                }
                Did::Refused(why) => {
                    let _closed = self.heard.send(Heard::Refused(why));
                    return Some(Over::Done);
                }
                Did::Reconnect => return Some(Over::Broken),
            };
            if self.heard.send(heard).is_err() {
                return Some(Over::Done);
            }
        }
        None
    }
}

async fn send(connection: &mut Connection, up: &Up) -> Result<(), ()> {
    // JSON text contains no NUL.
    let text = serde_json::to_string(up).map_err(drop)?;
    failpoint::hit_of("before", "send", up.name());
    connection.send(text).await.map_err(drop)?;
    failpoint::hit_of("after", "send", up.name());
    Ok(())
}
