//! The layers of the defence, each with the injected bug that removes it. The bugs work in a lab home only.

pub struct Layer {
    /// The injected bug, by its name in the product.
    pub bug: &'static str,
    /// What the layer does.
    pub about: &'static str,
}

const fn layer(bug: &'static str, about: &'static str) -> Layer {
    Layer { bug, about }
}

pub const ALL: [Layer; 31] = [
    layer("commands_unconfined", "commands and hooks run in a sandbox"),
    layer("files_unconfined", "file tools work in a sandbox"),
    layer("files_unread", "file tools change only what was read"),
    layer("escalation_unasked", "leaving the sandbox needs approval"),
    layer("needs_unchecked", "an approved call gets what it named"),
    layer("callers_trusted", "a tool cannot pass as the user"),
    layer("link_unproven", "a runtime proves its secret"),
    layer(
        "kinds_unchecked",
        "a runtime writes only its own kinds of events",
    ),
    layer(
        "processes_open",
        "daemon, runtimes and shims cannot be dumped",
    ),
    layer("env_handed_on", "tools get a short list of variables"),
    layer(
        "tool_env_trusted",
        "files of tools do not choose the provider",
    ),
    layer("keys_unredacted", "keys are redacted in tool output"),
    layer(
        "errors_unredacted",
        "keys are redacted in a provider's errors",
    ),
    layer(
        "provider_redirects",
        "a request with a key follows no redirect",
    ),
    layer("hook_redirects", "HTTP hooks follow no redirect"),
    layer("fetch_anywhere", "fetch_url reaches public addresses only"),
    layer(
        "redirects_unruled",
        "the rules apply to a redirect's target",
    ),
    layer(
        "hosts_unlisted",
        "a list of hosts is the only way out of a network namespace",
    ),
    layer("rules_as_text", "shell rules match parsed commands"),
    layer("hooks_untrusted", "a project's hooks need trust"),
    layer("project_approves", "a project's hooks cannot approve"),
    layer("settings_untrusted", "a project's settings need trust"),
    layer("settings_widen", "a project's settings only narrow"),
    layer("links_followed", "project files are regular, bounded files"),
    layer("setuid_allowed", "tools make no setuid files"),
    layer("terminal_raw", "control sequences are removed"),
    layer("import_unchecked", "an import is checked and limited"),
    layer("imports_released", "an imported agent is held"),
    layer("owner_unchecked", "state and daemon must be the user's own"),
    layer("state_open", "state and sockets are closed to other users"),
    layer("strangers_served", "sockets serve their own user only"),
];

/// Which injected bugs are active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// None: the product as it is.
    Defended,
    /// All of them.
    Control,
    /// All except this one, so that its layer stands alone.
    Alone(&'static str),
}

impl Mode {
    pub fn bugs(self) -> Vec<String> {
        let all = ALL.iter().map(|layer| layer.bug.to_owned());
        match self {
            Self::Defended => Vec::new(),
            Self::Control => all.collect(),
            Self::Alone(left) => all.filter(|bug| bug != left).collect(),
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "defended" => Some(Self::Defended),
            "control" => Some(Self::Control),
            bug => {
                let layer = ALL.iter().find(|layer| layer.bug == bug)?;
                Some(Self::Alone(layer.bug))
            }
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Defended => "defended",
            Self::Control => "control",
            Self::Alone(bug) => bug,
        }
    }
}
