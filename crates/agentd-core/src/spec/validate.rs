//! Checks that the types cannot express: ranges, and fields that require or exclude each other.

use super::path::Path;
use super::problem::Problem;
use super::{AgentSpec, Command, Network, Runtime, Sandbox, mcp_server, notify, passed, tools};

impl AgentSpec {
    /// Performs the checks of [`super::parse`] beyond the types. A spec that was read from JSON has not been checked.
    pub fn validate(&self) -> Result<(), Problem> {
        runtime(self.runtime, self.command.as_ref())?;
        mcp_server::check(&self.mcp)?;
        tools::check(self)?;
        sandbox(self)?;
        passed::check(self)?;
        notify::check(&self.notify)?;
        if !(self.hooks.is_null() || self.hooks.is_object()) {
            let reason = "expected a mapping from an event to its hooks";
            return Err(Problem::new(Path::key("hooks"), reason));
        }
        // Written so that NaN is rejected too.
        if let Some(value) = self.temperature
            && !(0.0..=2.0).contains(&value)
        {
            let reason = "expected a number from 0 to 2";
            return Err(Problem::new(Path::key("temperature"), reason));
        }
        if !(0.1..=1.0).contains(&self.compact_at) {
            let reason = "expected a number from 0.1 to 1.0";
            return Err(Problem::new(Path::key("compact_at"), reason));
        }
        for (key, is_zero) in [
            ("idle_ms", self.auto_reset.idle_ms == Some(0)),
            ("over_tokens", self.auto_reset.over_tokens == Some(0)),
        ] {
            if is_zero {
                let path = Path::key("auto_reset").then(key);
                return Err(Problem::new(
                    path,
                    "expected more than 0; remove the key for never",
                ));
            }
        }
        Ok(())
    }
}

const ONLY_PER_TURN: &str =
    "only a program that is started for each turn has them; add `per_turn: true`, or use `args`";

fn runtime(runtime: Runtime, command: Option<&Command>) -> Result<(), Problem> {
    let path = || Path::key("command");
    match (runtime, command) {
        (Runtime::Native, None) => Ok(()),
        (Runtime::Native, Some(_)) => Err(Problem::new(
            path(),
            "the native runtime starts no program; remove it, or set `runtime` to acp or command",
        )),
        (_, None) => Err(Problem::new(
            Path::key("runtime"),
            "this runtime needs a program; add `command: {program: …}`",
        )),
        (Runtime::Acp, Some(command)) if command.per_turn => Err(Problem::new(
            path().then("per_turn"),
            "an ACP agent runs for all its turns; remove it",
        )),
        (_, Some(command)) if command.per_turn && command.contract.is_some() => Err(Problem::new(
            path().then("per_turn"),
            "a program with a contract runs for all its turns; remove one of the two",
        )),
        (Runtime::Acp, Some(command)) if command.contract.is_some() => Err(Problem::new(
            path().then("contract"),
            "only `runtime: command` has contracts; remove it",
        )),
        (_, Some(command)) if !command.per_turn && !command.first_args.is_empty() => {
            Err(Problem::new(path().then("first_args"), ONLY_PER_TURN))
        }
        (_, Some(command)) if !command.per_turn && !command.later_args.is_empty() => {
            Err(Problem::new(path().then("later_args"), ONLY_PER_TURN))
        }
        (_, Some(command)) if command.contract.is_none() && !command.extra_args.is_empty() => {
            Err(Problem::new(
                path().then("extra_args"),
                "they require a contract; use `args`, or add `contract: agent`",
            ))
        }
        (_, Some(command)) if command.program.is_empty() && command.contract.is_none() => {
            Err(Problem::new(
                path().then("program"),
                "it is missing or empty: expected a path, or a name to look for in PATH",
            ))
        }
        (_, Some(_)) => Ok(()),
    }
}

fn sandbox(spec: &AgentSpec) -> Result<(), Problem> {
    for (key, paths) in [("writable", &spec.writable), ("readable", &spec.readable)] {
        for (index, path) in paths.iter().enumerate() {
            let is_whole = path.starts_with('/') || path == "~" || path.starts_with("~/");
            if !is_whole || path.contains('\0') {
                let reason = "give an absolute path, or one that begins with `~/`";
                return Err(Problem::new(Path::key(key).at(index), reason));
            }
            // The sandbox shows a path under its own name, and `..` is no name.
            if path.split('/').any(|part| part == "..") {
                let reason = "it contains `..`: give the path without it, as `realpath` prints it";
                return Err(Problem::new(Path::key(key).at(index), reason));
            }
        }
    }
    if spec.sandbox == Some(Sandbox::ReadOnly) && !spec.writable.is_empty() {
        let reason = "a `read-only` sandbox cannot write; remove it, or use `workspace-write`";
        return Err(Problem::new(Path::key("writable"), reason));
    }
    let is_limited = !matches!(spec.network, None | Some(Network::On));
    if spec.sandbox == Some(Sandbox::FullAccess) && is_limited {
        let reason =
            "`full-access` has no sandbox, so the network cannot be off or limited to hosts";
        return Err(Problem::new(Path::key("network"), reason));
    }
    Ok(())
}
