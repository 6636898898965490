//! `--mode`, an option of every verb that names an existing agent: a script that sets it never acts on an agent of the
//! other mode. [`Named`] adds it to a verb; it is checked before the verb runs.

use crate::connect;
use crate::error::{Error, Exit};
use crate::render::word;
use agentd_client::Kind;
use agentd_core::event::Mode;
use clap::builder::EnumValueParser;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use std::ops::Deref;

const ID: &str = "mode";

/// The arguments that hold an existing agent's name. `which` of `tasks stop` may be a task's id instead.
const NAMES: [&str; 3] = ["name", "agent", "which"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Which {
    Auto,
    Oneshot,
    Persistent,
}

/// Agents that must be of this mode.
pub struct Asked {
    names: Vec<String>,
    mode: Mode,
}

/// The arguments of a verb that names an existing agent.
#[derive(Debug)]
pub struct Named<T>(T);

impl<T> Deref for Named<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for Named<T> {
    fn augment_args(command: Command) -> Command {
        add(T::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        add(T::augment_args_for_update(command))
    }
}

impl<T: FromArgMatches> FromArgMatches for Named<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Adds the option to a verb that names an agent, and to its subcommands that do.
fn add(command: Command) -> Command {
    let is_name = |arg: &Arg| NAMES.contains(&arg.get_id().as_str());
    let names_one = command.get_arguments().any(is_name);
    let command = command.mut_subcommands(add);
    if !names_one {
        return command;
    }
    command.arg(
        Arg::new(ID)
            .long(ID)
            .value_parser(EnumValueParser::<Which>::new())
            .default_value("auto")
            .help("Fail unless the agent has this mode"),
    )
}

/// The mode that the command line requires; none if any mode is accepted.
pub fn asked(matches: &ArgMatches) -> Option<Asked> {
    let (_, verb) = matches.subcommand()?;
    if let Some(below) = asked(verb) {
        return Some(below);
    }
    let mode = match verb.try_get_one::<Which>(ID).ok()?? {
        Which::Auto => return None,
        Which::Oneshot => Mode::Oneshot,
        Which::Persistent => Mode::Persistent,
    };
    let mut ids = NAMES.iter();
    let names = ids.find_map(|id| verb.try_get_many::<String>(id).ok()?)?;
    let names = names.cloned().collect();
    Some(Asked { names, mode })
}

impl Asked {
    /// Refuses an agent of the other mode. An agent that does not exist is reported by the verb itself.
    pub async fn check(&self) -> Result<(), Error> {
        for name in &self.names {
            self.check_one(name).await?;
        }
        Ok(())
    }

    async fn check_one(&self, name: &str) -> Result<(), Error> {
        let found = match connect::client().await?.agent(name).await {
            Ok(agent) => agent,
            Err(agentd_client::Error::Problem(problem)) if problem.kind == Kind::NotFound => {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        if found.mode == self.mode {
            return Ok(());
        }
        let (name, is, wanted) = (&found.name, word(found.mode), word(self.mode));
        let what = format!("{name} is {is}, not {wanted}");
        Err(Error::new(Exit::Refused, what).next("pass --mode auto, or another agent"))
    }
}
