//! The caller's variables that tools get by the user's choice: `pass_env`, and those that come with `pass`.

use super::AgentSpec;
use super::path::Path;
use super::problem::Problem;
use crate::environment::{MOST_NAMES, refuses};
use std::collections::{BTreeMap, BTreeSet};

impl AgentSpec {
    /// The caller's variables that tools get by the user's choice.
    pub fn passed_env(&self) -> BTreeSet<String> {
        let of_services = self.pass.iter().flat_map(|pass| pass.variables());
        let of_services = of_services.map(|name| (*name).to_owned());
        // An imported spec has not been checked.
        let named = self.pass_env.iter().filter(|name| refuses(name).is_none());
        let referred = self.env.values().flat_map(|value| references(value));
        let referred = referred.filter(|name| self.is_outer() && refuses(name).is_none());
        named.cloned().chain(of_services).chain(referred).collect()
    }

    /// The variables of an outer agent's program: `${NAME}` in a value of `env` is replaced by the caller's variable.
    /// Only the reference is stored. Returns the names that are missing.
    pub fn resolve_env(
        &mut self,
        callers: &BTreeMap<String, String>,
    ) -> Result<(), BTreeSet<String>> {
        let mut missing = BTreeSet::new();
        for value in self.env.values_mut() {
            for name in references(value) {
                match callers.get(&name).filter(|known| !known.is_empty()) {
                    Some(known) => *value = value.replace(&format!("${{{name}}}"), known),
                    None => {
                        missing.insert(name);
                    }
                }
            }
        }
        match missing.is_empty() {
            true => Ok(()),
            false => Err(missing),
        }
    }
}

/// The names in `${NAME}`, in order.
fn references(value: &str) -> Vec<String> {
    let parts = value.split("${").skip(1);
    let names = parts.filter_map(|part| Some(part.split_once('}')?.0));
    let is_name = |name: &&str| {
        let letters = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        !name.is_empty() && name.chars().all(letters)
    };
    names.filter(is_name).map(str::to_owned).collect()
}

pub(super) fn check(spec: &AgentSpec) -> Result<(), Problem> {
    let path = || Path::key("pass_env");
    for (index, name) in spec.pass_env.iter().enumerate() {
        if let Some(reason) = refuses(name) {
            return Err(Problem::new(path().at(index), reason));
        }
    }
    if spec.pass_env.len() > MOST_NAMES {
        return Err(Problem::new(path(), "more than 64 names; remove some"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Pass;

    #[test]
    fn the_variables_of_a_spec_are_those_of_both_lists() {
        let spec = AgentSpec {
            pass_env: ["DATABASE_URL", "LD_PRELOAD"].map(str::to_owned).into(),
            pass: vec![Pass::SshAgent],
            ..AgentSpec::default()
        };
        let names = ["DATABASE_URL", "SSH_AUTH_SOCK"].map(str::to_owned);
        assert_eq!(spec.passed_env(), names.into());
    }

    #[test]
    fn a_program_gets_the_callers_variables_that_its_env_refers_to() {
        let mut spec = AgentSpec {
            runtime: crate::spec::Runtime::Command,
            env: [("KEY", "${MY_KEY}"), ("URL", "http://x/${A}?${MISSING}")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..AgentSpec::default()
        };
        let names = ["A", "MISSING", "MY_KEY"].map(str::to_owned);
        assert_eq!(spec.passed_env(), names.into());
        let callers = [("MY_KEY", "k1"), ("A", "b")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let missing = spec.resolve_env(&callers).unwrap_err();
        assert_eq!(missing, ["MISSING".to_owned()].into());
        assert_eq!(spec.env["KEY"], "k1");
        let native = AgentSpec {
            runtime: crate::spec::Runtime::Native,
            ..spec
        };
        assert!(native.passed_env().is_empty());
    }

    #[test]
    fn a_bad_name_and_an_unknown_service_are_errors_with_their_lines() {
        for (text, line, why) in [
            ("pass_env: [A, LD_PRELOAD]", 2, "load code"),
            ("pass_env:\n  - A\n  - AGENTD_HOME", 4, "its own"),
            ("pass_env: [\"A=1\"]", 2, "not its value"),
            ("pass: [ssh-agent, ssh]", 2, "gpg-agent"),
            ("pass_env: A", 2, ""),
        ] {
            let error = crate::spec::parse(&format!("---\n{text}\n---\n")).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(&format!("line {line}")), "{error}");
            assert!(error.contains(why), "{error}");
        }
        let many: Vec<String> = (0..65).map(|n| format!("A{n}")).collect();
        let spec = AgentSpec {
            pass_env: many,
            ..AgentSpec::default()
        };
        assert!(spec.validate().unwrap_err().reason().contains("64"));
    }
}
