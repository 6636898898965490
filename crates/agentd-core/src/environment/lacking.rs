//! What an agent's tools should have by its settings and lack, because no caller has brought it: told to the model once.

use std::collections::BTreeSet;

/// What the model is told when nothing is lacking any more.
pub const COMPLETE: &str = "All environment variables and services that your settings pass to your tools are available now.";

/// Variables of `pass_env` and services of `pass` that tools do not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacking {
    pub variables: BTreeSet<String>,
    /// By their names in `pass`.
    pub services: BTreeSet<String>,
}

impl Lacking {
    /// What the model is told; none if nothing is lacking.
    pub fn notice(&self) -> Option<String> {
        let list = |of: &BTreeSet<String>, what: &str| {
            let names: Vec<String> = of.iter().map(|name| format!("`{name}`")).collect();
            (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
        };
        let parts = [
            list(&self.variables, "the environment variables"),
            list(&self.services, "access to"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| {
            format!(
                "Your settings pass these to your tools, but they are not available now: {}. They become available \
                 when the user runs an agentd command for this agent in an environment that has them. If the task \
                 needs one of them, tell the user; do not look for it elsewhere.",
                parts.join("; ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_named() {
        assert_eq!(Lacking::default().notice(), None);
        let lacking = Lacking {
            variables: ["B", "A"].map(str::to_owned).into(),
            services: ["ssh-agent".to_owned()].into(),
        };
        let notice = lacking.notice().unwrap();
        assert!(
            notice.contains("variables `A`, `B`; access to `ssh-agent`. They"),
            "{notice}"
        );
    }
}
