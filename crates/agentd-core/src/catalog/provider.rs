//! Providers of models. Their addresses and variables are those of the vendors' own SDKs.

use crate::message::Wire;

/// A provider, as far as it is known without a request to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderEntry {
    pub name: String,
    pub wire: Wire,
    /// As the vendor's SDK expects it. `None` for the built-in provider, which sends no requests.
    pub base_url: Option<String>,
    /// The variable that overrides the address.
    pub base_url_env: Option<String>,
    /// Variables that may hold the key; the first that is set wins.
    pub key_env: Vec<String>,
    /// A file that holds only the key: an absolute path, or one that begins with `~/`.
    pub key_file: Option<String>,
    /// A command for `sh` that prints the key.
    pub key_command: Option<String>,
    pub needs_key: bool,
    pub default_model: Option<String>,
}

impl ProviderEntry {
    pub(super) fn new(name: &str, wire: Wire) -> Self {
        Self {
            name: name.to_owned(),
            wire,
            base_url: None,
            base_url_env: None,
            key_env: Vec::new(),
            key_file: None,
            key_command: None,
            needs_key: false,
            default_model: None,
        }
    }

    fn at(mut self, base_url: &str, variable: Option<&str>) -> Self {
        self.base_url = Some(base_url.to_owned());
        self.base_url_env = variable.map(str::to_owned);
        self
    }

    fn key(mut self, variables: &[&str]) -> Self {
        self.key_env = variables.iter().map(|&name| name.to_owned()).collect();
        self.needs_key = true;
        self
    }

    fn model(mut self, name: &str) -> Self {
        self.default_model = Some(name.to_owned());
        self
    }

    /// Whether it is built in and sends no requests.
    pub const fn is_built_in(&self) -> bool {
        self.base_url.is_none()
    }

    /// Its address, given the value of its variable.
    pub fn address(&self, from_env: Option<&str>) -> Option<String> {
        let base_url = self.base_url.as_ref()?;
        let from_env = from_env.map(str::trim).filter(|value| !value.is_empty());
        Some(match from_env {
            None => base_url.clone(),
            Some(host) if self.base_url_env.as_deref() == Some(OLLAMA_HOST) => ollama(host),
            Some(address) => address.to_owned(),
        })
    }
}

const OLLAMA_HOST: &str = "OLLAMA_HOST";
const OLLAMA_PORT: &str = "11434";

/// The variable holds a host, optionally with a scheme, a port or a path. The format that agentd uses is below `/v1`.
fn ollama(host: &str) -> String {
    let host = host.trim_end_matches('/');
    let host = host.strip_suffix("/v1").unwrap_or(host);
    if host.contains("://") {
        return format!("{host}/v1");
    }
    let (authority, path) = match host.find('/') {
        Some(at) => host.split_at(at),
        None => (host, ""),
    };
    let (name, port) = match authority.rsplit_once(':') {
        // An IPv6 address has its colons inside brackets.
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (authority, OLLAMA_PORT),
    };
    let name = if name.is_empty() { "127.0.0.1" } else { name };
    format!("http://{name}:{port}{path}/v1")
}

pub(super) fn built_in() -> Vec<ProviderEntry> {
    let entry = ProviderEntry::new;
    vec![
        entry("anthropic", Wire::AnthropicMessages)
            .at("https://api.anthropic.com", Some("ANTHROPIC_BASE_URL"))
            .key(&["ANTHROPIC_API_KEY"])
            .model("claude-sonnet-5-5"),
        entry("openai", Wire::OpenaiResponses)
            .at("https://api.openai.com/v1", Some("OPENAI_BASE_URL"))
            .key(&["OPENAI_API_KEY"])
            .model("gpt-5"),
        entry("openai-chat", Wire::OpenaiChat)
            .at("https://api.openai.com/v1", Some("OPENAI_BASE_URL"))
            .key(&["OPENAI_API_KEY"])
            .model("gpt-5"),
        entry("gemini", Wire::Gemini)
            .at(
                "https://generativelanguage.googleapis.com",
                Some("GOOGLE_GEMINI_BASE_URL"),
            )
            .key(&["GEMINI_API_KEY", "GOOGLE_API_KEY"])
            .model("gemini-2.5-flash"),
        entry("ollama", Wire::OpenaiChat).at("http://127.0.0.1:11434/v1", Some(OLLAMA_HOST)),
        entry("openrouter", Wire::OpenaiChat)
            .at("https://openrouter.ai/api/v1", None)
            .key(&["OPENROUTER_API_KEY"]),
        // Its requests are never sent. They are built in the strictest format.
        entry(super::DEMO, Wire::AnthropicMessages).model(super::DEMO),
    ]
}
