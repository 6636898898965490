//! The environment variables of tool processes.

use agentd_core::environment::is_handed_on;
use agentd_failpoint as failpoint;
use std::collections::{BTreeMap, BTreeSet};

/// The whole environment of tools: the caller's variables that may be passed on, those that the user has chosen
/// (`passed`), and the variables that the spec adds or replaces.
pub fn allowed_env(
    own: &BTreeMap<String, String>,
    passed: &BTreeSet<String>,
    spec: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let is_allowed = |name: &String| {
        is_handed_on(name) || passed.contains(name) || failpoint::injected_bug("env_handed_on")
    };
    let allowed = own.iter().filter(|(name, _)| is_allowed(name));
    let allowed = allowed.map(|(name, value)| (name.clone(), value.clone()));
    let mut all: BTreeMap<String, String> = allowed.collect();
    all.extend(spec.clone());
    all
}

#[cfg(test)]
mod tests {
    use super::allowed_env;
    use std::collections::{BTreeMap, BTreeSet};

    fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
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
