//! The user's destinations: each reads the journals of all agents, in the order of their commits.

use super::again::Again;
use super::deliver::{Left, Message, Target, deliver};
use super::past::Past;
use super::position::{self, Position};
use super::{desktop, trouble};
use crate::clock;
use crate::daemon::Daemon;
use crate::ending::left;
use crate::error::Result;
use agentd_client::api::time::rfc3339;
use agentd_core::catalog::{Asked, DESKTOP};
use agentd_core::event::{Event, Kind};
use agentd_core::outbox::notice::{self, Notice};
use agentd_core::outbox::webhook::{notice_id, trouble_id};
use agentd_core::spec::{Notify, Topic};
use agentd_core::state::AgentState;
use agentd_core::time::Timestamp;
use agentd_failpoint as failpoint;
use agentd_store::Cursor;
use serde_json::json;
use std::io;
use std::sync::Arc;

const PAGE: usize = 200;
/// An older notification does not appear on the screen: the user has looked since, or the daemon was down.
const FRESH_MS: i64 = 10 * 60 * 1000;
/// How the names of the destinations begin among all destinations of messages.
pub const PREFIX: &str = "notify-";

/// A message for the webhook, and what appears on the screen instead.
struct Notification {
    message: Message,
    title: String,
    text: String,
    at: Timestamp,
}

/// Why the task of a destination stops until it is started again.
enum Stop {
    Left,
    Failed(String),
}

impl From<Left> for Stop {
    fn from(_: Left) -> Self {
        Self::Left
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<crate::error::Error> for Stop {
    fn from(error: crate::error::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<agentd_store::Error> for Stop {
    fn from(error: agentd_store::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

fn file_of(destination: &str) -> String {
    format!("{PREFIX}{destination}")
}

/// Removes the positions of destinations that the user removed: if they are added again, they begin with the present.
pub fn forget_others(daemon: &Daemon, destinations: &[String]) {
    let Ok(files) = std::fs::read_dir(daemon.layout.outbox()) else {
        return;
    };
    for file in files.flatten() {
        let name = file.file_name();
        let name = name.to_str().and_then(|name| name.strip_suffix(".json"));
        let Some(destination) = name.and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        if !destinations.iter().any(|known| known == destination) {
            position::forget(daemon, &file_of(destination));
        }
    }
}

/// Stores the position of a new destination: it is told of everything that happens from now on.
pub async fn prepare(daemon: &Daemon, destination: &str) {
    let prepared = async {
        let file = file_of(destination);
        if Position::<Cursor>::read(daemon, &file)?.is_some() {
            return Ok(());
        }
        let end = daemon.store.end().await?;
        let mut new = Position::new(daemon, &file, end, trouble::last(daemon));
        new.save(daemon).await?;
        Ok::<_, Stop>(())
    };
    if let Err(Stop::Failed(error)) = prepared.await {
        tracing::error!(destination, error, "position of notifications not stored");
    }
}

pub async fn follow(daemon: Arc<Daemon>, destination: String) {
    let mut ending = daemon.ending();
    let mut again = Again::new(file_of(&destination));
    loop {
        again.begin();
        let delay = match follow_once(&daemon, &destination).await {
            Ok(()) | Err(Stop::Left) => return,
            Err(Stop::Failed(error)) => again.failed(&daemon, error),
        };
        tokio::select! {
            // tidy: polls after an error of the disk
            () = tokio::time::sleep(delay) => {}
            () = left(&mut ending) => return,
        }
    }
}

async fn follow_once(daemon: &Arc<Daemon>, destination: &str) -> Result<(), Stop> {
    let position = Position::<Cursor>::read(daemon, &file_of(destination))?;
    let Some(mut position) = position else {
        prepare(daemon, destination).await;
        return Err(Stop::Failed("its position was deleted".to_owned()));
    };
    let mut ending = daemon.ending();
    let mut troubles = daemon.deliveries.troubles.subscribe();
    let mut past = Past::default();
    // How many troubles of this daemon were looked at.
    let mut told = None;
    loop {
        // Before the list and the journal are read, so that no trouble and no commit is missed.
        let count = *troubles.borrow_and_update();
        let mut commits = daemon.store.commits();
        if told != Some(count) {
            tell_troubles(daemon, destination, &mut position).await?;
            told = Some(count);
        }
        let page = daemon
            .store
            .read_all(position.after().clone(), PAGE)
            .await?;
        daemon.deliveries.works(&file_of(destination));
        let is_end = page.events.is_empty();
        for (cursor, event) in page.events {
            match of_event(daemon, destination, (&mut position, &mut past), &event).await? {
                Some(notification) => {
                    if failpoint::injected_bug("notice_position_before_send") {
                        position.delivered(daemon, cursor.clone()).await?;
                    }
                    failpoint::hit("before", "notice.send");
                    show(daemon, destination, &notification).await?;
                    position.delivered(daemon, cursor).await?;
                    failpoint::hit("after", "outbox.position");
                }
                None => position.pass(daemon, cursor).await?,
            }
        }
        if !is_end {
            continue;
        }
        tokio::select! {
            more = commits.next() => if !more { return Ok(()) },
            changed = troubles.changed() => if changed.is_err() { return Ok(()) },
            () = left(&mut ending) => return Err(Stop::Left),
        }
    }
}

/// Tells a destination what happened to the daemon itself since the last time.
async fn tell_troubles(
    daemon: &Daemon,
    destination: &str,
    position: &mut Position<Cursor>,
) -> Result<(), Stop> {
    for trouble in trouble::after(daemon, position.trouble()) {
        let settings = &daemon.notify;
        if settings.tells(destination, Topic::Trouble, &Notify::default(), Asked::No) {
            show(daemon, destination, &of_trouble(daemon, &trouble)).await?;
        }
        position.trouble_delivered(daemon, trouble.number).await?;
    }
    Ok(())
}

/// Folds one event, and returns the notification that this destination gets of it.
async fn of_event(
    daemon: &Arc<Daemon>,
    destination: &str,
    (position, past): (&mut Position<Cursor>, &mut Past),
    event: &Event,
) -> Result<Option<Notification>, Stop> {
    // The events of an imported agent happened elsewhere, and nothing that they ask for is done here.
    let is_own = |state: &AgentState| event.seq > state.foreign_through;
    let mut reached = Vec::new();
    if matches!(event.kind(), Kind::RequestEnded | Kind::PromptRouted) {
        let Some(handle) = daemon.existing(event.agent).await? else {
            return Ok(None);
        };
        if !is_own(&handle.lock().await.state) {
            return Ok(None);
        }
        if event.kind() == Kind::RequestEnded {
            reached = past.reached_by(&handle, event.seq).await?;
        }
    }
    let Some(notice) = notice::of_event(position.routed(), event, &reached) else {
        return Ok(None);
    };
    let Some(handle) = daemon.existing(event.agent).await? else {
        return Ok(None);
    };
    let (own, is_subagent) = {
        let guard = handle.lock().await;
        let state = &guard.state;
        if !is_own(state) {
            return Ok(None);
        }
        (state.spec.notify.clone(), state.parent_link.is_some())
    };
    let is_users = !is_subagent || notice::concerns_user(notice.topic);
    let settings = &daemon.notify;
    if !is_users || !settings.tells(destination, notice.topic, &own, notice.asked) {
        return Ok(None);
    }
    let name = past.name_at(&handle, event.seq).await?;
    Ok(Some(notification(daemon, event, &notice, &name)))
}

fn notification(daemon: &Daemon, event: &Event, notice: &Notice, name: &str) -> Notification {
    let topic = notice.topic.name();
    let body = json!({
        "type": format!("agent.{topic}"),
        "timestamp": rfc3339(event.at),
        "data": {
            "agent": { "id": event.agent, "name": name },
            "conversation": event.conversation,
            "turn": event.turn,
            "seq": event.seq,
            "detail": notice.detail,
        },
    });
    Notification {
        message: Message {
            id: notice_id(daemon.home.identity.of_copy(), event.agent, event.seq),
            body: body.to_string(),
        },
        title: format!("{name}: {topic}"),
        text: words(notice.topic).to_owned(),
        at: event.at,
    }
}

const fn words(topic: Topic) -> &'static str {
    match topic {
        Topic::Completed => "The turn is completed.",
        Topic::Failed => "The turn failed, or the agent or a schedule of it cannot run.",
        Topic::Limited => "The turn reached a limit.",
        Topic::Lost => "The turn was given up after several crashes.",
        Topic::Interrupted => "The turn was interrupted.",
        Topic::Approval => "It waits for you.",
        Topic::Budget => "80 % of a budget is used.",
        Topic::Trouble => "Its journal was damaged.",
    }
}

fn of_trouble(daemon: &Daemon, trouble: &trouble::Trouble) -> Notification {
    let text = trouble.what.text();
    let body = json!({
        "type": "daemon.trouble",
        "timestamp": rfc3339(trouble.at),
        "data": { "what": trouble.what, "text": text },
    });
    let home = daemon.home.identity.id.to_string();
    Notification {
        message: Message {
            id: trouble_id(&home, trouble.number),
            body: body.to_string(),
        },
        title: "agentd".to_owned(),
        text: text.to_owned(),
        at: trouble.at,
    }
}

async fn show(daemon: &Daemon, destination: &str, notification: &Notification) -> Result<(), Stop> {
    if destination == DESKTOP {
        let age_ms = clock::now().as_millis() - notification.at.as_millis();
        if age_ms < FRESH_MS {
            let shown = desktop::show(daemon, &notification.title, &notification.text).await;
            if let Err(why) = shown {
                tracing::warn!(why, "notification not shown on the screen");
            }
        }
        return Ok(());
    }
    let Some(webhook) = daemon.notify.webhooks.get(destination) else {
        return Ok(());
    };
    let target = Target {
        destination: file_of(destination),
        url: webhook.url.clone(),
        secret: webhook.secret.clone(),
    };
    deliver(daemon, &target, &notification.message).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawn::spawn;
    use crate::supervisor::tests::bed;
    use std::fs;

    /// Regression: it was tried each second with a warning, and neither `doctor` nor `bindings` showed it.
    #[tokio::test]
    async fn a_destination_whose_position_cannot_be_read_is_shown_as_failing() {
        let bed = bed();
        let daemon = &bed.daemon;
        let position = daemon.layout.outbox().join("notify-team.json");
        fs::create_dir_all(daemon.layout.outbox()).unwrap();
        fs::write(&position, "{").unwrap();
        let following = spawn("test", follow(Arc::clone(daemon), "team".to_owned()));
        let failing = loop {
            tokio::task::yield_now().await;
            if let Some(failing) = daemon.deliveries.failing("notify-team") {
                break failing;
            }
        };
        assert_eq!(failing.attempts, 1);
        assert!(failing.why.contains("notify-team.json"), "{failing:?}");
        // It works again when the file is gone.
        fs::remove_file(&position).unwrap();
        while daemon.deliveries.failing("notify-team").is_some() {
            tokio::task::yield_now().await;
        }
        following.abort();
    }
}
