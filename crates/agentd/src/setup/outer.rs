//! Builds what a driver needs for an agent whose program runs its turns.

use super::{MAX_FAILURES, Surroundings, Whose, not_confined};
use crate::error::{Error, Exit};
use agentd_core::catalog::Catalog;
use agentd_core::event::Context;
use agentd_core::id::ConversationId;
use agentd_core::message::Wire;
use agentd_core::spec::{AgentSpec, Command, Contract, Runtime, Sandbox};
use agentd_core::turn::{Hooks, Policy};
use agentd_daemon::confine;
use agentd_daemon::tool_env;
use agentd_failpoint as failpoint;
use agentd_process::task::{Confined, Limits, ShimProgram};
use agentd_runtime::driver::{Tools, outer_tools};
use agentd_runtime::link::Asking;
use agentd_runtime::outer::command::{self, Form, SESSION, TurnArgs};
use agentd_runtime::outer::{Bounds, ChildOptions, Outer};
use agentd_runtime::provider::Provider;
use agentd_runtime::tools::Secrets;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct Ready {
    pub provider: Provider,
    pub tools: Arc<dyn Tools>,
    pub policy: Policy,
}

/// The conversation that the program runs for, and the directory of what it keeps.
pub struct Of<'a> {
    pub conversation: ConversationId,
    pub dir: &'a Path,
}

/// The name of the checkpoint directory in the program's home.
const CHECKPOINT: &str = "checkpoint";

pub fn ready(
    catalog: &Catalog,
    spec: &AgentSpec,
    of: &Of<'_>,
    surroundings: &Surroundings,
    whose: &Whose,
    asking: Option<Asking>,
) -> Result<Ready, Error> {
    let refused = |what: &str| Error::new(Exit::Refused, what);
    let Some(program) = spec.command.clone() else {
        return Err(refused("the agent has no program").next("add `command` to its settings"));
    };
    let cwd = PathBuf::from(spec.cwd.clone().unwrap_or_default());
    // Before the references in `env` are replaced: they are what the user's settings name.
    let servers = match spec.runtime {
        Runtime::Acp => super::servers(catalog, spec, whose, &cwd, surroundings),
        _ => Vec::new(),
    };
    let mut spec = spec.clone();
    let missing_key = spec.resolve_env(&surroundings.env).err().map(missing);
    let secrets = surroundings
        .secrets(catalog)
        .and(agentd_core::mcp::secrets(&servers));
    if let Some(asking) = &asking {
        asking.tell_keys(secrets.values());
    }
    if !cwd.is_dir() {
        return Err(
            Error::new(Exit::Usage, "the agent's working directory does not exist")
                .because(format_args!("{} is not a directory", cwd.display()))
                .next("create it, or change `cwd`"),
        );
    }
    make(of.dir)?;
    let dirs = confine::AgentDirs {
        cwd: &cwd,
        dir: of.dir,
        state: whose.home.as_deref(),
        env: &surroundings.env,
        default_level: std::env::var(confine::VARIABLE).ok(),
        socket_dir: whose.socket.as_deref().and_then(Path::parent),
    };
    let confined = confine::confined(&spec, &dirs).map_err(|error| not_confined(&error))?;
    let (callers, of_hooks) = (&surroundings.env, &surroundings.of_hooks);
    let owner = whose.owner();
    let mut env = tool_env::tool_env(&spec, of_hooks, callers, &owner, confined.as_ref());
    env.insert(
        "AGENTD_CONVERSATION".to_owned(),
        of.conversation.to_string(),
    );
    if program.contract == Some(Contract::Agent) && confined.is_some() {
        tell_boundary(&mut env);
    }
    let form = match spec.runtime {
        Runtime::Acp => None,
        _ => Some(form(&program, &spec, of, confined.as_ref())?),
    };
    let options = ChildOptions {
        program: program.program.clone(),
        args: program.args.clone(),
        env,
        cwd,
        dir: of.dir.to_owned(),
        confined,
        limits: Limits {
            open_files: spec.limits.task_open_files,
            memory_bytes: spec.limits.task_memory_bytes,
            processes: spec.limits.task_processes,
        },
        bounds: Bounds::of(&spec.limits),
        shim: ShimProgram::default(),
        lab: failpoint::dir().map(Path::to_owned),
        secrets: match failpoint::injected_bug("keys_unredacted") {
            true => Secrets::default(),
            false => secrets,
        },
    };
    let approval = spec.approval.unwrap_or_default();
    let rules = &spec.permissions;
    let outer = match form {
        Some(form) => Outer::command(options, form, rules, approval),
        None => Outer::acp(options, env!("CARGO_PKG_VERSION"), servers, rules, approval),
    };
    Ok(Ready {
        tools: outer_tools(&outer),
        provider: Provider::outer(outer),
        policy: Policy {
            context: context(&spec, &program),
            model_window: None,
            price: None,
            parallel: BTreeSet::new(),
            max_failures: MAX_FAILURES,
            missing_key,
            mcp: Vec::new(),
            lacking: agentd_daemon::services::lacking(&spec, &surroundings.env),
            hooks: Hooks::None,
        },
    })
}

/// A sandbox in a sandbox cannot be built: the kernel lets no process create its namespaces there. The one around the program
/// confines its tools too, so an `agentd agent` in it is told not to build its own. What the user's settings say counts.
fn tell_boundary(env: &mut BTreeMap<String, String>) {
    let level = Sandbox::FullAccess.name().to_owned();
    env.entry(confine::VARIABLE.to_owned()).or_insert(level);
}

fn missing(names: BTreeSet<String>) -> String {
    let names: Vec<String> = names.into_iter().collect();
    let names = names.join(", ");
    format!(
        "the agent's program needs {names}; set it in the shell and run `agentd start`, or store it with \
         `agentd secret set`"
    )
}

fn form(
    program: &Command,
    spec: &AgentSpec,
    of: &Of<'_>,
    confined: Option<&Confined>,
) -> Result<Form, Error> {
    if program.contract != Some(Contract::Agent) {
        return Ok(match program.per_turn {
            true => Form::PerTurn(TurnArgs {
                first: program.first_args.clone(),
                later: program.later_args.clone(),
            }),
            false => Form::Lasting,
        });
    }
    let own = of.dir.join("home").join(CHECKPOINT);
    make(&own)?;
    // In a sandbox the program's home is where the user's home is.
    let checkpoint = confined.map(|confined| confined.policy.home.join(CHECKPOINT));
    let mut flags = vec!["--run-id".to_owned(), of.conversation.to_string()];
    for (flag, value) in [("--provider", &spec.provider), ("--model", &spec.model)] {
        flags.extend(
            value
                .iter()
                .flat_map(|value| [flag.to_owned(), value.clone()]),
        );
    }
    flags.extend(program.extra_args.iter().cloned());
    Ok(Form::Agent(command::Contract {
        flags,
        session: own.join(SESSION),
        checkpoint: checkpoint.unwrap_or(own),
    }))
}

fn make(dir: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| {
        let what = "the directory of the agent's program cannot be created";
        Error::new(Exit::Unavailable, what).because(error)
    })
}

/// What the journal records as the context of an outer agent's requests: only the program knows more.
fn context(spec: &AgentSpec, program: &Command) -> Context {
    Context {
        provider: match spec.runtime {
            Runtime::Acp => "acp".to_owned(),
            _ => "command".to_owned(),
        },
        wire: Wire::AnthropicMessages,
        model: program.program.clone(),
        system: spec.system.clone(),
        kept: None,
        tools: Vec::new(),
        server_tools: Vec::new(),
        max_output_tokens: 64,
        temperature: None,
        thinking_tokens: None,
        effort: None,
        verbosity: None,
        fast: false,
        omits: Vec::new(),
    }
}
