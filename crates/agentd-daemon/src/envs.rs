//! The environment variables of agents, in memory only. An agent has the variables that clients sent for it; if no
//! client has sent any, it has the daemon's own. The user's stored secrets are merged into both.

use agentd_client::api::Env;
use agentd_core::id::AgentId;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Merged environments that are cached. When there are more, the cache is cleared.
const MERGED: usize = 256;

/// The longest variable, in bytes. Linux does not pass a longer one to a process, and a runtime sends all variables in
/// its hello.
const LONGEST: usize = 128 * 1024;

/// The most that an agent's variables may have together, in bytes of JSON: a runtime sends them in its hello, together
/// with the stored secrets.
const MOST: usize = 512 * 1024;

pub struct Envs {
    /// The variables that the daemon was started with.
    own: Arc<Env>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The variables that clients sent, for as long as the daemon lives.
    brought: HashMap<AgentId, Arc<Env>>,
    secrets: Env,
    /// A cache of environments, each without and with the secrets. Agents that were created from one shell share an
    /// entry.
    merged: Vec<(Arc<Env>, Arc<Env>)>,
}

impl Envs {
    pub fn new(own: Env, secrets: Env) -> Self {
        let inner = Inner {
            secrets,
            ..Inner::default()
        };
        Self {
            own: Arc::new(bounded(own)),
            inner: Mutex::new(inner),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the variables that a client sent to those from earlier requests.
    pub fn merge(&self, agent: AgentId, brought: &Env) {
        if brought.is_empty() {
            return;
        }
        let mut inner = self.inner();
        let known = inner.brought.get(&agent);
        let mut all = known.map_or_else(Env::new, |known| (**known).clone());
        let short = brought.iter().filter(|(name, value)| {
            let is_short = name.len() + value.len() <= LONGEST;
            if !is_short {
                tracing::warn!(%agent, name, limit = LONGEST, "environment variable ignored: too long");
            }
            is_short
        });
        all.extend(short.map(|(name, value)| (name.clone(), value.clone())));
        let all = bounded(all);
        if known.is_some_and(|known| **known == all) {
            return;
        }
        let same = inner.brought.values().find(|env| ***env == all).cloned();
        let all = same.unwrap_or_else(|| Arc::new(all));
        inner.brought.insert(agent, all);
    }

    pub fn has_brought(&self, agent: AgentId) -> bool {
        self.inner().brought.contains_key(&agent)
    }

    /// An agent's variables without the stored secrets, for a subagent or fork that gets the same.
    pub fn brought(&self, agent: AgentId) -> Arc<Env> {
        let inner = self.inner();
        inner.brought.get(&agent).unwrap_or(&self.own).clone()
    }

    /// All variables of an agent.
    pub fn of(&self, agent: AgentId) -> Arc<Env> {
        let mut inner = self.inner();
        let (base, is_own) = match inner.brought.get(&agent) {
            Some(brought) => (Arc::clone(brought), false),
            None => (Arc::clone(&self.own), true),
        };
        inner.with_secrets(&base, is_own)
    }

    /// The variables for work that belongs to no agent.
    pub fn own(&self) -> Arc<Env> {
        self.inner().with_secrets(&self.own, true)
    }

    /// The names of an agent's variables that come from the stored secrets.
    pub fn stored(&self, agent: AgentId) -> BTreeSet<String> {
        let inner = self.inner();
        let brought = inner.brought.get(&agent);
        let is_stored = |name: &&String| brought.is_none_or(|env| !env.contains_key(*name));
        inner.secrets.keys().filter(is_stored).cloned().collect()
    }

    pub fn secret_values(&self) -> Vec<String> {
        self.inner().secrets.values().cloned().collect()
    }

    pub fn set_secrets(&self, secrets: Env) {
        let mut inner = self.inner();
        inner.secrets = secrets;
        inner.merged.clear();
    }
}

/// The environment without its largest variables, if it is too large.
fn bounded(mut env: Env) -> Env {
    let sizes = env.iter().map(|(name, value)| {
        let size = json_bytes(name) + json_bytes(value);
        (size, name.clone())
    });
    let mut sizes: Vec<(usize, String)> = sizes.collect();
    let mut total: usize = sizes.iter().map(|(size, _)| size).sum();
    if total <= MOST {
        return env;
    }
    sizes.sort_unstable();
    while let Some((size, name)) = sizes.pop().filter(|_| total > MOST) {
        let limit = MOST;
        tracing::warn!(
            name,
            size,
            limit,
            "environment variable ignored: the environment is too large"
        );
        env.remove(&name);
        total -= size;
    }
    env
}

/// The length of a string in JSON, with its quotes and a separator.
fn json_bytes(text: &str) -> usize {
    let escaped = text.bytes().map(|byte| match byte {
        b'"' | b'\\' => 2,
        0..0x20 => 6,
        _ => 1,
    });
    escaped.sum::<usize>() + 3
}

impl Inner {
    /// A client's variables take precedence over stored secrets, and those over the daemon's own variables.
    fn with_secrets(&mut self, base: &Arc<Env>, is_own: bool) -> Arc<Env> {
        if self.secrets.is_empty() {
            return Arc::clone(base);
        }
        let known = self.merged.iter().find(|(of, _)| Arc::ptr_eq(of, base));
        if let Some((_, merged)) = known {
            return Arc::clone(merged);
        }
        let (mut merged, over) = match is_own {
            true => ((**base).clone(), &self.secrets),
            false => (self.secrets.clone(), &**base),
        };
        merged.extend(over.clone());
        let merged = Arc::new(merged);
        if self.merged.len() >= MERGED {
            self.merged.clear();
        }
        self.merged.push((Arc::clone(base), Arc::clone(&merged)));
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_caller_wins_over_secrets_and_secrets_over_the_daemon() {
        let agent = AgentId::from_bytes([1; 16]);
        let envs = Envs::new(env(&[("K", "own"), ("P", "own")]), Env::new());
        assert_eq!(*envs.of(agent), env(&[("K", "own"), ("P", "own")]));
        envs.set_secrets(env(&[("K", "stored"), ("L", "stored")]));
        let own = env(&[("K", "stored"), ("L", "stored"), ("P", "own")]);
        assert_eq!((&*envs.of(agent), &*envs.own()), (&own, &own));
        envs.merge(agent, &env(&[("K", "brought")]));
        assert_eq!(
            *envs.of(agent),
            env(&[("K", "brought"), ("L", "stored")]),
            "what the daemon has is not mixed with what a caller brought"
        );
        assert_eq!(envs.stored(agent), ["L".to_owned()].into());
        assert_eq!(*envs.brought(agent), env(&[("K", "brought")]));
        envs.set_secrets(Env::new());
        assert_eq!(*envs.of(agent), env(&[("K", "brought")]));
    }

    #[test]
    fn agents_of_one_shell_share_their_variables() {
        let [one, two] = [1, 2].map(|n| AgentId::from_bytes([n; 16]));
        let envs = Envs::new(Env::new(), env(&[("K", "stored")]));
        for agent in [one, two] {
            envs.merge(agent, &env(&[("P", "/bin")]));
        }
        assert!(Arc::ptr_eq(&envs.of(one), &envs.of(two)));
    }

    #[test]
    fn an_environment_that_is_too_large_for_a_hello_loses_its_largest_variables() {
        let agent = AgentId::from_bytes([1; 16]);
        let large = "x".repeat(LONGEST - 8);
        let escaped = "\u{1}".repeat(LONGEST / 2);
        let names = ["A", "B", "C", "D", "E"];
        let mut all = env(&names.map(|name| (name, large.as_str())));
        all.insert("ESCAPED".to_owned(), escaped);
        all.insert("KEY".to_owned(), "short".to_owned());
        let size = |env: &Env| serde_json::to_vec(env).unwrap().len();
        assert!(size(&all) > 1024 * 1024);
        let envs = Envs::new(all.clone(), Env::new());
        envs.merge(agent, &all);
        for kept in [envs.of(agent), envs.own()] {
            assert!(size(&kept) <= MOST, "{}", size(&kept));
            assert_eq!(kept.get("KEY").map(String::as_str), Some("short"));
            assert!(kept.contains_key("A") && !kept.contains_key("ESCAPED"));
        }
        let again = envs.of(agent);
        envs.merge(agent, &again);
        assert!(Arc::ptr_eq(&again, &envs.of(agent)));
    }
}
