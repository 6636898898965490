//! The environment of an agent's tools, and of commands that the user runs in their sandbox.

use crate::confine;
use crate::layout::Layout;
use crate::project::skills::Skills;
use crate::services;
use agentd_client::api::Env;
use agentd_core::environment::{is_handed_on, variables};
use agentd_core::id::{AgentId, ConversationId};
use agentd_core::spec::AgentSpec;
use agentd_failpoint as failpoint;
use agentd_files::foreign::{self, Links};
use agentd_files::own;
use agentd_process::task::Confined;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// How much is read of a file of variables that a hook in a sandbox wrote.
const LONGEST_ENV: u64 = 64 * 1024;

/// The agent of the tools: `agentd` in a tool's command finds the same home and the same agent.
pub struct Owner<'a> {
    pub home: Option<&'a Path>,
    pub name: &'a str,
    /// The socket through which tools in a sandbox reach the daemon; none without a daemon.
    pub socket: Option<&'a Path>,
}

impl Owner<'_> {
    fn env(&self, is_confined: bool) -> impl Iterator<Item = (String, String)> {
        let text = |path: &Path| path.to_str().map(str::to_owned);
        let home = self.home.and_then(text);
        let socket = self.socket.filter(|_| is_confined).and_then(text);
        let home = home.map(|home| ("AGENTD_HOME".to_owned(), home));
        let socket = socket.map(|socket| ("AGENTD_SOCKET".to_owned(), socket));
        home.into_iter()
            .chain(socket)
            .chain([("AGENTD_AGENT".to_owned(), self.name.to_owned())])
    }
}

/// The whole environment of tools. `callers` are the agent's variables, `of_hooks` those that hooks have set: they are
/// taken as they are, and pass on no variable of the caller.
pub fn tool_env(
    spec: &AgentSpec,
    of_hooks: &Env,
    callers: &Env,
    owner: &Owner<'_>,
    confined: Option<&Confined>,
) -> BTreeMap<String, String> {
    let passed = spec.passed_env();
    let mut set = spec.env.clone();
    set.extend(of_hooks.clone());
    let mut env = allowed_env(callers, &passed, &set);
    if let Some(confined) = confined {
        let is_named = |name: &str| passed.contains(name) || set.contains_key(name);
        let unusable = confine::unusable(&env, is_named, confined);
        env.retain(|name, _| !unusable.contains(name));
        for (name, value) in &mut env {
            let real = confine::certificates::real_value(name, callers);
            if let Some(real) = real.filter(|_| !set.contains_key(name)) {
                *value = real;
            }
        }
    }
    for (_, service) in services::find(spec, callers) {
        if let Some((name, value)) = service.variable {
            env.entry(name.to_owned()).or_insert(value);
        }
    }
    env.extend(owner.env(confined.is_some()));
    env.extend(confined.map(|_| confine::tmp(&set)));
    env
}

/// The caller's variables that may be passed on, those that the user has chosen (`passed`), and the variables that the
/// spec adds or replaces.
fn allowed_env(own: &Env, passed: &BTreeSet<String>, spec: &Env) -> BTreeMap<String, String> {
    let is_allowed = |name: &String| {
        is_handed_on(name) || passed.contains(name) || failpoint::injected_bug("env_handed_on")
    };
    let allowed = own.iter().filter(|(name, _)| is_allowed(name));
    let allowed = allowed.map(|(name, value)| (name.clone(), value.clone()));
    let mut all: BTreeMap<String, String> = allowed.collect();
    all.extend(spec.clone());
    all
}

/// The variables that hooks have set for the tools of a conversation. A command in the agent's sandbox can set them too:
/// they are no settings of the user.
pub fn hook_variables(layout: &Layout, agent: AgentId, conversation: ConversationId) -> Env {
    let left = own::read_to_string(layout.env_file(agent, conversation));
    let mut set: Env = variables(&left.unwrap_or_default()).into_iter().collect();
    let left = read_from_sandbox(&layout.sandboxed_env_file(agent, conversation));
    set.extend(variables(&left.unwrap_or_default()));
    set
}

/// Makes the directories of skills readable.
pub fn add_skills(spec: &mut AgentSpec, skills: &Skills) {
    let readable = skills.readable.iter();
    spec.readable
        .extend(readable.filter_map(|dir| dir.to_str().map(str::to_owned)));
}

/// The shell for commands. Most models write for bash.
pub fn shell() -> PathBuf {
    let bash = Path::new("/bin/bash");
    match bash.exists() {
        true => bash.to_owned(),
        false => PathBuf::from("/bin/sh"),
    }
}

/// Reads what a hook in the agent's sandbox wrote. A tool can replace the file: a symlink is not followed, a pipe does
/// not block, and only the beginning of a large file is read.
fn read_from_sandbox(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = foreign::open(path, Links::NotLast)?;
    file.take(LONGEST_ENV).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{Owner, allowed_env, tool_env};
    use agentd_core::spec::{AgentSpec, Runtime};
    use std::collections::{BTreeMap, BTreeSet};

    fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    /// A command in the sandbox could ask for any variable of the user.
    #[test]
    fn a_reference_in_a_variable_of_a_hook_stays_a_text() {
        let spec = AgentSpec {
            runtime: Runtime::Command,
            env: env(&[("OWN", "${NAMED}")]),
            ..AgentSpec::default()
        };
        let callers = env(&[("NAMED", "n"), ("OTHER", "o")]);
        let owner = Owner {
            home: None,
            name: "coder",
            socket: None,
        };
        let of_hooks = env(&[("X", "${OTHER}")]);
        let given = tool_env(&spec, &of_hooks, &callers, &owner, None);
        assert_eq!(given["X"], "${OTHER}");
        assert_eq!(given["NAMED"], "n");
        assert!(!given.contains_key("OTHER"), "{given:?}");
    }

    #[test]
    fn only_what_is_on_the_list_or_chosen_is_handed_on() {
        let own = env(&[
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("ANTHROPIC_API_KEY", "sk-1"),
            ("DATABASE_URL", "db"),
            ("HOME", "/home/a"),
            ("LD_PRELOAD", "x.so"),
            ("PATHS", "/x"),
        ]);
        let spec = env(&[("HOME", "/tmp"), ("LD_LIBRARY_PATH", "/lib")]);
        let passed: BTreeSet<String> = ["DATABASE_URL", "MISSING"].map(str::to_owned).into();
        let expected = env(&[
            ("DATABASE_URL", "db"),
            ("HOME", "/tmp"),
            ("LC_ALL", "C"),
            ("LD_LIBRARY_PATH", "/lib"),
            ("PATH", "/bin"),
        ]);
        assert_eq!(allowed_env(&own, &passed, &spec), expected);
    }
}
