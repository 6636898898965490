//! Approval requests and their answers.

use super::{AgentRef, time};
use agentd_core::id::ApprovalId;
use agentd_core::mcp::Question;
use agentd_core::outer;
use agentd_core::patch::{self, Change, Patch};
use agentd_core::shell_words;
use agentd_core::spec::{Decision, MCP_PREFIX, Network, Rule, Sandbox, TOOLS};
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A call that waits for the user's approval, with everything needed to decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub id: ApprovalId,
    pub call: String,
    #[serde(with = "time")]
    pub asked_at: Timestamp,
    /// The subagent whose call it is; none if it is the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRef>,
    /// Why the user is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What would run; none if it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<Call>,
    /// The call runs, and its MCP server asks the user this. `approve` accepts without input, `answer` with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
}

/// A tool call with everything that decides what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub tool: String,
    pub input: serde_json::Value,
    /// The working directory.
    pub cwd: Option<String>,
    pub sandbox: Sandbox,
    pub network: Network,
    /// What it gets beyond its sandbox if it is approved: this and nothing else. Empty for a call that stays in the
    /// sandbox, and for one that was made when calls did not say yet what they need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// A digest of the fields above. An answer that names it counts for this call only.
    pub hash: String,
}

/// One thing that a call gets beyond its sandbox if it is approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// With a whole path, as a rule names it: `write:/home/me/notes`.
    pub need: String,
    /// What the call may do, for the user. It contains text of the model: a program that shows it escapes it.
    pub words: String,
    /// Why the user should look at it twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub danger: Option<String>,
}

/// Why no rule can allow a call from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnceOnly {
    /// It leaves the sandbox altogether, or does not say what it needs.
    LeavesSandbox,
    /// It keeps what it needs beyond its sandbox after its call has ended.
    InBackground,
    /// A `*` or `?` of the call would be read as a pattern.
    Wildcard,
    /// It is the call of an agent that is another program, and not only a command line. A rule could only name its kind, which
    /// may be anything that the program does.
    OfProgram,
}

impl Call {
    pub fn leaves_sandbox(&self) -> bool {
        self.input.get("escalate").is_some()
    }

    /// Whether it goes on after its call has ended.
    pub fn is_in_background(&self) -> bool {
        let asked = self.input.get("run_in_background");
        asked.and_then(serde_json::Value::as_bool) == Some(true)
    }

    /// Why this call can only be approved once; none if a rule can express it.
    pub fn once_only(&self) -> Option<OnceOnly> {
        let is_everything = |need: &Need| need.need == agentd_core::needs::EVERYTHING;
        let is_named = !self.needs.is_empty() && !self.needs.iter().any(is_everything);
        if self.leaves_sandbox() && !is_named {
            return Some(OnceOnly::LeavesSandbox);
        }
        if is_named && self.is_in_background() {
            return Some(OnceOnly::InBackground);
        }
        if self.is_of_program() && self.command().is_none() {
            return Some(OnceOnly::OfProgram);
        }
        let rules = self.rules();
        let mut patterns = rules.iter().filter_map(|rule| rule.pattern.as_ref());
        let has_wildcard = patterns.any(|pattern| pattern.contains(['*', '?']));
        has_wildcard.then_some(OnceOnly::Wildcard)
    }

    /// The tool that a rule for this call would allow as a whole, with any arguments: no pattern is about the arguments of its
    /// calls. None if the rule is about this call only.
    pub fn whole_tool(&self) -> Option<&str> {
        let rules = self.rules();
        let has_pattern = rules.iter().all(|rule| rule.pattern.is_some());
        (!has_pattern).then_some(self.tool.as_str())
    }

    /// Whether it is a call of an agent that is another program, with a name of its own.
    fn is_of_program(&self) -> bool {
        !TOOLS.contains(&self.tool.as_str()) && !self.tool.starts_with(MCP_PREFIX)
    }

    /// The command line, if a pattern can be about it: the call of a shell, or of another program that consists of a command
    /// line only.
    pub fn command(&self) -> Option<String> {
        let arguments = self.input.as_object()?;
        match self.tool.as_str() {
            shell_words::TOOL => shell_words::line_of(arguments),
            tool if self.is_of_program() => outer::only_command(tool, arguments),
            _ => None,
        }
    }

    /// The rules that together allow the call and nothing else; a tool without a pattern is allowed as a whole. A patch
    /// that updates a file is allowed as an edit of it, so that the rule does not allow to delete the file.
    pub fn rules(&self) -> Vec<Rule> {
        let rule = |tool: &str, pattern: Option<String>| Rule {
            tool: tool.to_owned(),
            pattern,
            decision: Decision::Allow,
            needs: self.needs.iter().map(|need| need.need.clone()).collect(),
        };
        if self.tool != patch::TOOL {
            return vec![rule(&self.tool, self.pattern())];
        }
        let patch = self.patch();
        let rules = patch.changes().map(|(path, change)| {
            let tool = match change {
                Change::Update => "edit_file",
                Change::Write => "write_file",
                Change::Remove => patch::TOOL,
            };
            rule(tool, Some(path.to_owned()))
        });
        rules.collect()
    }

    /// The patch that it applies; without files if it cannot be read.
    pub fn patch(&self) -> Patch {
        let patch = Patch::parse(self.text("input").unwrap_or_default());
        patch.unwrap_or(Patch { files: Vec::new() })
    }

    /// What a rule about this tool is compared with.
    pub fn pattern(&self) -> Option<String> {
        match self.tool.as_str() {
            "fetch_url" => self.text("url").map(str::to_owned),
            "write_file" | "edit_file" | "read_file" => self.text("file_path").map(str::to_owned),
            _ => self.command(),
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.input.get(key).and_then(|text| text.as_str())
    }
}

/// `POST /v1/agents/{name}/approvals/{id}/approve`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approve {
    /// The `hash` of the call that the user saw. The answer is refused if the call differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Also allow the same call from now on, by a rule in the agent's settings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub always: bool,
}

/// `POST /v1/agents/{name}/approvals/{id}/deny`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deny {
    /// As in [`Approve`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The reason, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `POST /v1/agents/{name}/approvals/{id}/answer`: the answer to a question of an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerQuestion {
    /// The fields of the form, by name.
    #[serde(default)]
    pub content: serde_json::Map<String, serde_json::Value>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(tool: &str, input: serde_json::Value) -> Call {
        Call {
            tool: tool.to_owned(),
            input,
            cwd: None,
            sandbox: Sandbox::WorkspaceWrite,
            network: Network::On,
            needs: Vec::new(),
            hash: String::new(),
        }
    }

    #[test]
    fn a_call_that_no_rule_can_express_is_approved_once_only() {
        let ls = call("shell", json!({"command": "ls src"}));
        assert_eq!(ls.once_only(), None);
        let star = call("shell", json!({"command": "wc -l src/*.rs"}));
        assert_eq!(star.once_only(), Some(OnceOnly::Wildcard));
        let write = call("write_file", json!({"file_path": "a?", "content": ""}));
        assert_eq!(write.once_only(), Some(OnceOnly::Wildcard));
        let leaves = call("shell", json!({"command": "ls", "escalate": "why"}));
        assert_eq!(leaves.once_only(), Some(OnceOnly::LeavesSandbox));
        let with = |need: &str| Call {
            needs: vec![Need {
                need: need.to_owned(),
                words: String::new(),
                danger: None,
            }],
            ..leaves.clone()
        };
        assert_eq!(
            with("everything").once_only(),
            Some(OnceOnly::LeavesSandbox)
        );
        let named = with("write:/srv/data");
        assert_eq!(named.once_only(), None);
        assert_eq!(named.rules()[0].needs, ["write:/srv/data"]);
        let mut background = named;
        background.input["run_in_background"] = json!(true);
        assert_eq!(background.once_only(), Some(OnceOnly::InBackground));
        let other = call("mcp__web__add", json!({"a": "*"}));
        assert_eq!(other.once_only(), None);
        // The kind of a call of another program: a rule would also allow `rm`.
        let execute = call("execute", json!({"command": "ls", "stdin": "x"}));
        assert_eq!(execute.once_only(), Some(OnceOnly::OfProgram));
        let star = call("execute", json!({"command": "ls *"}));
        assert_eq!(star.once_only(), Some(OnceOnly::Wildcard));
    }

    #[test]
    fn a_rule_for_a_command_line_of_another_program_is_about_that_line() {
        let list = call("execute", json!({"command": ["ls", "-l"], "title": "List"}));
        assert_eq!(list.once_only(), None);
        let with_place = call("execute", json!({"command": "ls -l", "cwd": "/srv"}));
        assert_eq!(with_place.once_only(), None);
        assert_eq!(with_place.rules(), list.rules());
        assert_eq!(list.whole_tool(), None);
        let rules = list.rules();
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].tool, "execute");
        assert_eq!(rules[0].pattern.as_deref(), Some("ls -l"));
    }

    /// The user must know that other arguments are allowed, too.
    #[test]
    fn a_rule_without_a_pattern_names_the_tool_that_it_allows() {
        let push = call("mcp__git__push", json!({"branch": "x"}));
        assert_eq!(push.once_only(), None);
        assert_eq!(push.whole_tool(), Some("mcp__git__push"));
        let list = call("shell", json!({"command": "ls"}));
        assert_eq!(list.whole_tool(), None);
    }
}
