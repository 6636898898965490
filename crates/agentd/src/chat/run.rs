//! Runs the chat: owns the terminal and the connection, and carries out what the chat asks for.

use super::app::{App, Begin};
use super::command_files;
use super::draw::Look;
use super::effect::{Answer, Effect, Input};
use super::keyboard::Keyboard;
use super::requests::{Requests, Target, older};
use super::screen::Screen;
use super::style::Colours;
use super::unsent::{Unsent, UnsentFile};
use crate::connect::Connection;
use crate::error::Error;
use crate::follow::Follow;
use crate::keys::Follower;
use crate::live::{Options, Scope};
use crate::output::Output;
use crate::render::Detail;
use crate::{editor, keys, providers, terminal};
use agentd_client::Client;
use agentd_client::api::{Agent, EventQuery};
use agentd_core::id::Seq;
use agentd_core::time::Timestamp;
use agentd_daemon::clock;
use futures_util::StreamExt as _;
use ratatui::crossterm::event::Event;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep_until, timeout};

const TICK: Duration = Duration::from_millis(100);
/// The time between two frames, unless a key was pressed.
const FRAME: Duration = Duration::from_millis(33);
/// How long the chat waits at its end for prompts that are being sent.
const LAST_PROMPTS: Duration = Duration::from_secs(5);

/// Shows the agent until the user leaves. The agent continues.
pub async fn run(connection: &mut Connection, agent: Agent, out: &mut Output) -> Result<(), Error> {
    let client = connection.client.clone();
    let id = agent.id.to_string();
    keys::merge_env(&client, &id).await?;
    let (begin, after) = begin(&client, agent).await?;
    let target = Target {
        client,
        id: id.clone(),
        cwd: begin.agent.cwd.as_ref().map(PathBuf::from),
    };
    let mut unsent_file = UnsentFile::of(begin.agent.id);
    let mut app = App::new(begin, clock::now());
    if let Some(left) = unsent_file.as_mut().and_then(UnsentFile::take) {
        app.restore(left);
    }
    let query = EventQuery {
        after: after.0,
        ..EventQuery::default()
    };
    let supplied = Follower::new(connection.client.clone(), id.as_str());
    let follow = Follow::new(id, query).reporting_breaks();
    let (ended, unsent_file) = {
        let mut driver = Driver::new(target, unsent_file)?;
        let ended = driver.run(&mut app, follow, &supplied, connection).await;
        (ended, driver.unsent_file)
        // The terminal is restored here, before anything is printed.
    };
    keep_unsent(&app.unsent(), unsent_file, &ended, out)?;
    ended?;
    let name = app.name();
    out.line(format_args!("{name} continues: agentd chat {name}"))
}

/// Keeps what was typed and not sent for the next chat. If the chat has failed, the text is printed too.
fn keep_unsent(
    unsent: &Unsent,
    file: Option<UnsentFile>,
    ended: &Result<(), Error>,
    out: &mut Output,
) -> Result<(), Error> {
    let is_kept = file.is_some_and(|mut file| file.keep(unsent));
    if unsent.is_blank() {
        return Ok(());
    }
    if ended.is_err() || !is_kept {
        let text = &unsent.text;
        out.aside(format_args!("your prompt was not sent:\n{text}"))?;
    }
    match is_kept {
        true => out.aside("what you typed is kept: the next chat of this agent begins with it"),
        false => Ok(()),
    }
}

/// What the chat begins with, and the last event in it.
async fn begin(client: &Client, agent: Agent) -> Result<(Begin, Seq), Error> {
    let id = agent.id.to_string();
    let newest = older(client, &id, agent.head.next()).await?;
    let after = newest.events.last().map_or(agent.head, |event| event.seq);
    let conversations = client.conversations(&id).await?.conversations;
    let numbers = conversations.iter().map(|it| (it.id, it.ordinal));
    let home = providers::variable("HOME").map(PathBuf::from);
    let cwd = agent.cwd.as_ref().map(PathBuf::from);
    let agent = providers::with_model(agent);
    let begin = Begin {
        options: Options {
            scope: Scope::Agent,
            detail: Detail::Brief,
            window: providers::window(&agent),
        },
        numbers: numbers.collect(),
        newest,
        own: command_files::read(home.as_deref(), cwd.as_deref()),
        agent,
    };
    Ok((begin, after))
}

struct Driver {
    screen: Screen,
    keyboard: Keyboard,
    requests: Requests,
    unsent_file: Option<UnsentFile>,
    /// When the last frame was drawn.
    drawn: Instant,
    is_over: bool,
}

/// What comes next, and whether it must be seen at once.
enum Next {
    Key(Event),
    Input(Input),
    Frame,
    Ended,
}

impl Driver {
    fn new(target: Target, unsent_file: Option<UnsentFile>) -> Result<Self, Error> {
        let look = Look {
            colours: match terminal::has_colours() {
                true => Colours::Shown,
                false => Colours::None,
            },
            home: providers::variable("HOME"),
        };
        Ok(Self {
            screen: Screen::enter(look)?,
            keyboard: Keyboard::start(),
            requests: Requests::new(target),
            unsent_file,
            drawn: Instant::now(),
            is_over: false,
        })
    }

    async fn run(
        &mut self,
        app: &mut App,
        follow: Follow,
        keys: &Follower,
        connection: &mut Connection,
    ) -> Result<(), Error> {
        let mut supplying = pin!(keys.run());
        let mut events = pin!(follow.stream(connection));
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        // Ctrl-C is a key here. A Ctrl-C in the editor must not end the chat.
        let _interrupts = signal(SignalKind::interrupt()).map_err(Error::no_runtime)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(Error::no_runtime)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(Error::no_runtime)?;
        let mut is_stale = true;
        self.draw(app, clock::now())?;
        while !self.is_over {
            let due = tokio::time::Instant::from_std(self.drawn + FRAME);
            let next = tokio::select! {
                biased;
                key = self.keyboard.next() => key.map_or(Next::Ended, Next::Key),
                _ = terminate.recv() => Next::Ended,
                _ = hangup.recv() => Next::Ended,
                () = sleep_until(due), if is_stale => Next::Frame,
                answer = self.requests.next() => Next::Input(Input::Answer(answer)),
                Some(seen) = events.next() => {
                    let seen = seen?;
                    keys.seen(&seen);
                    Next::Input(Input::Seen(seen))
                }
                never = &mut supplying => match never {},
                _ = ticks.tick() => Next::Input(Input::Tick),
            };
            match next {
                Next::Key(key) => {
                    self.take_key(app, key)?;
                    while let Some(key) = self.keyboard.ready() {
                        self.take_key(app, key)?;
                    }
                    self.draw(app, clock::now())?;
                    is_stale = false;
                }
                Next::Input(input) => {
                    self.take(app, input)?;
                    is_stale = true;
                }
                Next::Frame => {
                    self.draw(app, clock::now())?;
                    is_stale = false;
                }
                Next::Ended => self.is_over = true,
            }
        }
        self.finish().await;
        Ok(())
    }

    fn draw(&mut self, app: &mut App, now: Timestamp) -> Result<(), Error> {
        self.drawn = Instant::now();
        self.screen.draw(app, now)
    }

    fn take_key(&mut self, app: &mut App, event: Event) -> Result<(), Error> {
        match event {
            Event::Key(key) => self.take(app, Input::Key(key))?,
            Event::Paste(text) => self.take(app, Input::Paste(text))?,
            // The size is read before each frame.
            _ => {}
        }
        if let Some(file) = &mut self.unsent_file
            && app.has_no_text()
        {
            // At once: a prompt that was sent must not come back if the chat is killed.
            file.forget();
        }
        Ok(())
    }

    fn take(&mut self, app: &mut App, input: Input) -> Result<(), Error> {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for effect in app.update(input, clock::now()) {
                match effect {
                    Effect::Quit => self.is_over = true,
                    Effect::Redraw => self.screen.redraw()?,
                    Effect::Copy(text) => self.screen.copy(&text)?,
                    Effect::Edit(text) => {
                        let edited = self.edit(&text)?;
                        inputs.push_back(Input::Answer(Answer::Edited(edited)));
                    }
                    effect => self.requests.push(effect),
                }
            }
        }
        Ok(())
    }

    /// The text as the user left it in the editor, which has the terminal meanwhile.
    fn edit(&mut self, text: &str) -> Result<Result<String, Error>, Error> {
        let held = self.keyboard.hold();
        self.screen.suspend();
        let edited = editor::edit(text).map(|(text, _)| text);
        self.screen.resume()?;
        drop(held);
        Ok(edited)
    }

    /// Prompts that were given before the user left are still sent.
    async fn finish(&mut self) {
        let sent = async {
            while !self.requests.is_idle() {
                self.requests.next().await;
            }
        };
        let _too_slow = timeout(LAST_PROMPTS, sent).await;
    }
}
