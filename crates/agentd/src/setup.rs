//! Builds what a driver needs from a spec: a provider, tools and a policy.

pub mod outer;
pub mod project_rules;
mod services;
mod surroundings;

pub use surroundings::Surroundings;

use crate::error::{Error, Exit};
use crate::preferences::Preferences;
use crate::render::time;
use agentd_core::budget;
use agentd_core::catalog::{Catalog, Choice, ModelEntry, ReasoningForm};
use agentd_core::event::{Context, Effort, KeptPart};
use agentd_core::id::BootId;
use agentd_core::mcp;
use agentd_core::skill::Skill;
use agentd_core::spec::{AgentSpec, Reasoning, ServerTool};
use agentd_core::subagents;
use agentd_core::system_prompt;
use agentd_core::turn::{Hooks, Policy};
use agentd_daemon::confine;
use agentd_daemon::layout::Layout;
use agentd_daemon::project::{
    self,
    skills::{self, Skills},
};
use agentd_daemon::tool_env::{self, Owner};
use agentd_failpoint as failpoint;
use agentd_process::task::{Limits, ShimProgram};
use agentd_runtime::instructions::{self, InstructionFiles};
use agentd_runtime::link::Asking;
use agentd_runtime::provider::{self, Demo, Overrides, Provider};
use agentd_runtime::tools::{Kinds, Secrets, Toolbox, ToolboxOptions};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uuid::Uuid;

/// Number of consecutive failed requests after which the turn fails.
const MAX_FAILURES: u32 = 6;

/// The longest answer of a model whose own limit is unknown, in tokens: most models accept it.
const UNKNOWN_MAX_OUTPUT: u64 = 8192;

/// Makes this process non-dumpable: it holds keys, and other processes of the same user, above all tools, must not read
/// its memory.
pub fn close_to_others() -> Result<(), Error> {
    if failpoint::injected_bug("processes_open") {
        return Ok(());
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|errno| {
        let what = "this process cannot be protected from other processes";
        Error::new(Exit::Unavailable, what).because(errno)
    })
}

/// Bounds the memory of this process. The programs that it starts are not bounded.
pub fn limit_memory() -> Result<(), Error> {
    agentd_process::limit_own_memory(agentd_process::RUNTIME_BYTES).map_err(|error| {
        let what = "the memory of this process cannot be limited";
        Error::new(Exit::Unavailable, what).because(error)
    })
}

pub struct Ready {
    pub provider: Provider,
    pub tools: Arc<Toolbox>,
    pub policy: Policy,
}

/// The identity of the agent, for its tools: `agentd` in a tool's command finds the same home and the same agent.
pub struct Whose {
    pub home: Option<PathBuf>,
    pub name: String,
    /// The id of the current boot, as the agent's home records it.
    pub boot: BootId,
    /// The socket through which tools in a sandbox reach the daemon; none without a daemon.
    pub socket: Option<PathBuf>,
}

impl Whose {
    /// An agent without a daemon: it has its own directory and uses the caller's home.
    pub fn alone(name: &str) -> Result<Self, Error> {
        Ok(Self {
            home: crate::home::dir().ok(),
            name: name.to_owned(),
            boot: boot()?,
            socket: None,
        })
    }

    fn owner(&self) -> Owner<'_> {
        Owner {
            home: self.home.as_deref(),
            name: &self.name,
            socket: self.socket.as_deref(),
        }
    }
}

pub fn ready(
    catalog: &Catalog,
    spec: &AgentSpec,
    base_url: Option<String>,
    dir: &Path,
    surroundings: &Surroundings,
    whose: &Whose,
    asking: Option<Asking>,
) -> Result<Ready, Error> {
    let refused = |what: &str| Error::new(Exit::Refused, what);
    let choice = catalog
        .resolve(spec.provider.as_deref(), spec.model.as_deref())
        .map_err(|error| {
            Error::new(Exit::Usage, "no model was chosen")
                .because(error)
                .next("pass --provider and --model; `--provider demo` works without a key")
        })?;
    let preferences = Preferences::of(&choice, spec);
    let price = preferences.price;
    budget::check_price(&spec.limits, price)
        .map_err(|error| refused("the limits cannot be enforced").because(error))?;
    ServerTool::check(
        &spec.server_tools,
        choice.provider.wire,
        spec.tools.as_deref(),
    )
    .map_err(|error| refused("the provider lacks a tool").because(error))?;
    let overrides = Overrides {
        base_url,
        ..Overrides::default()
    };
    let variable = |name: &str| match failpoint::injected_bug("tool_env_trusted") {
        true => {
            let set = surroundings.of_hooks.get(name);
            let set = set.or_else(|| spec.env.get(name)).cloned();
            set.or_else(|| surroundings.get(name))
        }
        false => surroundings.get(name),
    };
    let (provider, key, missing_key) = match provider::connect(&choice, &variable, overrides) {
        Ok((provider, key)) => (provider, key, None),
        // No request is sent before the key is available: the turn waits, so this provider is never called.
        Err(error) if error.is_missing_key() => {
            let placeholder = Provider::demo(Demo::default());
            (placeholder, None, Some(error.to_string()))
        }
        Err(error) => return Err(refused("the provider cannot be used").because(error)),
    };
    let cwd = PathBuf::from(spec.cwd.clone().unwrap_or_default());
    let servers = servers(catalog, spec, whose, &cwd, surroundings);
    let secrets = surroundings
        .secrets(catalog)
        .and(key.map(|key| key.expose().to_owned()))
        .and(mcp::secrets(&servers));
    if let Some(asking) = &asking {
        asking.tell_keys(secrets.values());
    }
    let kept_from_tools = match failpoint::injected_bug("keys_unredacted") {
        true => Secrets::default(),
        false => secrets.clone(),
    };
    if !cwd.is_dir() {
        return Err(
            Error::new(Exit::Usage, "the agent's working directory does not exist")
                .because(format_args!("{} is not a directory", cwd.display()))
                .next(match &whose.socket {
                    Some(_) => format!(
                        "create it, or change it with `agentd set {} cwd=DIRECTORY`; then `agentd start {}`",
                        whose.name, whose.name
                    ),
                    None => "pass --cwd with an existing directory".to_owned(),
                }),
        );
    }
    let dirs = confine::AgentDirs {
        cwd: &cwd,
        dir,
        state: whose.home.as_deref(),
        env: &surroundings.env,
        default_level: std::env::var(confine::VARIABLE).ok(),
        socket_dir: whose.socket.as_deref().and_then(Path::parent),
    };
    let sandbox = confine::level(spec, dirs.default_level.as_deref());
    let sandbox = sandbox.map_err(|error| not_confined(&error))?;
    let skills = match (&whose.home, spec.instructions) {
        (Some(state), true) => skills::of(&Layout::new(state), &cwd, dirs.home().as_deref()),
        _ => Skills::default(),
    };
    let mut spec = spec.clone();
    tool_env::add_skills(&mut spec, &skills);
    let spec = &spec;
    let confined = confine::confined(spec, &dirs).map_err(|error| not_confined(&error))?;
    let escalated = confined.as_ref().map(confine::escalated);
    let (callers, of_hooks) = (&surroundings.env, &surroundings.of_hooks);
    let env = tool_env::tool_env(spec, of_hooks, callers, &whose.owner(), confined.as_ref());
    let instructions = spec.instructions.then(|| {
        let (state, home) = (dirs.state.map(Path::to_owned), dirs.home());
        let of_home = state.clone().map(Layout::new);
        let dir = cwd.clone();
        let files = InstructionFiles::new(cwd.clone(), state, home);
        Arc::new(files.with_skills(move |known| match &of_home {
            Some(layout) => skills::unusable(layout, &dir, known),
            None => Vec::new(),
        }))
    });
    let tools = Toolbox::new(ToolboxOptions {
        cwd: cwd.clone(),
        state: dir.to_owned(),
        env,
        confined,
        rules: spec.permissions.clone(),
        approval: spec.approval.unwrap_or_default(),
        escalated,
        services: services::all(&surroundings.env),
        tools: spec.tools.clone(),
        forms: choice
            .known
            .as_ref()
            .map(ModelEntry::tool_forms)
            .unwrap_or_default(),
        may_reset: spec.auto_reset.by_tool,
        output_bytes: usize::try_from(spec.limits.tool_output_bytes).unwrap_or(usize::MAX),
        kept_bytes: spec.limits.task_output_bytes,
        kept_quota: spec.limits.kept_output_bytes(),
        file_history_bytes: spec.limits.file_history_bytes(),
        max_tasks: spec.limits.max_tasks as usize,
        task_limits: Limits {
            open_files: spec.limits.task_open_files,
            memory_bytes: spec.limits.task_memory_bytes,
            processes: spec.limits.task_processes,
        },
        secrets: kept_from_tools,
        shim: ShimProgram::default(),
        lab: failpoint::dir().map(Path::to_owned),
        boot: whose.boot,
        subagents: (spec.limits.max_depth > 0).then(|| kinds(spec, whose, &cwd)),
        asking,
        instructions: instructions.clone(),
        mcp: servers,
    })
    .map_err(|error| refused("the tools cannot be set up").because(error))?;
    let verbosity = preferences.told;
    let role = system_prompt::role(spec, sandbox, verbosity);
    let system = system(role, &cwd, &skills.skills, instructions.as_deref());
    let policy = Policy {
        context: context(&choice, spec, &preferences, &tools, system),
        model_window: choice.known.as_ref().and_then(|known| known.window),
        price,
        parallel: tools.parallel(),
        mcp: tools.mcp(),
        max_failures: MAX_FAILURES,
        missing_key,
        lacking: agentd_daemon::services::lacking(spec, &surroundings.env),
        hooks: Hooks::None,
    };
    Ok(Ready {
        provider: provider.redacting(&secrets),
        tools: Arc::new(tools),
        policy,
    })
}

/// The MCP servers of an agent. Those of a project count for an agent with all tools: a list of tools is a restriction.
/// `spec` is the user's own, without what programs of the agent could have added.
fn servers(
    catalog: &Catalog,
    spec: &AgentSpec,
    whose: &Whose,
    cwd: &Path,
    surroundings: &Surroundings,
) -> Vec<mcp::Server> {
    let of_project = match (&whose.home, &spec.tools) {
        (Some(state), None) => project::mcp::servers(&Layout::new(state), cwd).servers,
        _ => BTreeMap::new(),
    };
    let mut secrets = catalog.key_names();
    secrets.extend(surroundings.stored.iter().cloned());
    let withheld = mcp::withheld(spec, secrets);
    let value_of = |name: &str| surroundings.get(name);
    mcp::resolve(
        &spec.mcp,
        &surroundings.lent,
        &of_project,
        &withheld,
        &value_of,
    )
}

fn not_confined(error: &confine::Error) -> Error {
    match error {
        confine::Error::NoSuchLevel(_) => Error::new(Exit::Usage, error.to_string())
            .next("set read-only, workspace-write or full-access"),
        confine::Error::Link { real, .. } => {
            Error::new(Exit::Refused, error.to_string()).next(format!(
                "if that is what you want, set `cwd` (or `writable`, or `readable`) to {}",
                real.display()
            ))
        }
        confine::Error::OwnDirs(source) => {
            Error::new(Exit::Unavailable, error.to_string()).because(source)
        }
    }
}

/// Those of a project are for agents under a daemon, which starts them.
fn kinds(spec: &AgentSpec, whose: &Whose, cwd: &Path) -> Kinds {
    let of_project = match (&whose.home, &whose.socket) {
        (Some(state), Some(_)) => project::claude::agents(&Layout::new(state), cwd),
        _ => BTreeMap::new(),
    };
    let kinds = subagents::kinds(spec, of_project).into_iter();
    Kinds(kinds.map(|(name, kind)| (name, kind.description)).collect())
}

fn context(
    choice: &Choice,
    spec: &AgentSpec,
    preferences: &Preferences,
    tools: &Toolbox,
    (system, kept): (String, KeptPart),
) -> Context {
    let form = choice.known.as_ref().map(|known| known.reasoning);
    let is_adaptive = form == Some(ReasoningForm::Adaptive);
    let room = spec.reasoning.and_then(reasoning_tokens);
    let longest = choice.known.as_ref().and_then(|known| known.max_output);
    // Reasoning counts towards the length of the answer.
    let with_reasoning = |answer: u64| answer.saturating_add(room.unwrap_or(0));
    let wanted = match (spec.limits.max_output_tokens, longest) {
        (Some(limit), _) => with_reasoning(limit),
        (None, Some(longest)) => longest,
        (None, None) => with_reasoning(UNKNOWN_MAX_OUTPUT),
    };
    Context {
        provider: choice.provider.name.clone(),
        wire: choice.provider.wire,
        model: choice.model.clone(),
        system,
        kept: Some(kept),
        tools: tools.declarations(),
        server_tools: spec.server_tools.clone(),
        max_output_tokens: wanted.min(longest.unwrap_or(u64::MAX)),
        temperature: spec.temperature.filter(|_| !is_adaptive),
        thinking_tokens: room.filter(|_| !is_adaptive),
        effort: spec.reasoning.map(effort).filter(|_| is_adaptive),
        verbosity: preferences.sent,
        fast: preferences.is_fast,
        omits: choice.omits(),
    }
}

/// Reasoning cannot be switched off for such a model: `low` is the minimum.
const fn effort(reasoning: Reasoning) -> Effort {
    match reasoning {
        Reasoning::Off | Reasoning::Low => Effort::Low,
        Reasoning::Medium => Effort::Medium,
        Reasoning::High => Effort::High,
    }
}

const fn reasoning_tokens(reasoning: Reasoning) -> Option<u64> {
    match reasoning {
        Reasoning::Off => None,
        Reasoning::Low => Some(2048),
        Reasoning::Medium => Some(8192),
        Reasoning::High => Some(24_576),
    }
}

/// The system prompt of a new conversation. A conversation that has begun keeps its own last part.
fn system(
    role: String,
    cwd: &Path,
    skills: &[Skill],
    files: Option<&InstructionFiles>,
) -> (String, KeptPart) {
    let platform = format!("{}, {}", std::env::consts::OS, std::env::consts::ARCH);
    let date = time::date(agentd_daemon::clock::now());
    let workplace = instructions::workplace(cwd, platform, date);
    let files = files.map(InstructionFiles::read).unwrap_or_default();
    system_prompt::with_kept_part(role, &workplace, skills, &files)
}

fn boot() -> Result<BootId, Error> {
    let cannot = || {
        Error::new(
            Exit::Unavailable,
            "the boot id of the system cannot be read",
        )
    };
    let boot = agentd_process::boot_id().map_err(|error| cannot().because(error))?;
    let boot = Uuid::parse_str(boot.trim()).map_err(|error| cannot().because(error))?;
    Ok(BootId::new(boot))
}
