//! Tools that run at the provider, by the user's choice.

use crate::message::Wire;
use serde::{Deserialize, Serialize};

/// A tool that the provider runs itself. Its results come within the model's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerTool {
    WebSearch,
}

/// Why an agent cannot have a server tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoServerTool {
    #[error(
        "`server_tools`: the provider's format (Chat Completions) has no {0}; remove it, or use the provider anthropic, \
         openai or gemini"
    )]
    NotInFormat(ServerTool),
    #[error(
        "`server_tools`: Gemini accepts no {0} together with other tools; set `tools: []`, or remove it"
    )]
    WithTools(ServerTool),
}

impl ServerTool {
    /// As it is written in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WebSearch => "web_search",
        }
    }

    /// Whether a provider with this format accepts the tools.
    pub fn check(
        tools: &[Self],
        wire: Wire,
        own_tools: Option<&[String]>,
    ) -> Result<(), NoServerTool> {
        let Some(first) = tools.first() else {
            return Ok(());
        };
        let has_own_tools = own_tools.is_none_or(|names| !names.is_empty());
        match wire {
            Wire::OpenaiChat => Err(NoServerTool::NotInFormat(*first)),
            Wire::Gemini if has_own_tools => Err(NoServerTool::WithTools(*first)),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Display for ServerTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_its_rule() {
        let tools = [ServerTool::WebSearch];
        let own = ["shell".to_owned()];
        for (wire, all, none, one) in [
            (Wire::AnthropicMessages, true, true, true),
            (Wire::OpenaiResponses, true, true, true),
            (Wire::OpenaiChat, false, false, false),
            (Wire::Gemini, false, true, false),
        ] {
            let fits = |own: Option<&[String]>| ServerTool::check(&tools, wire, own).is_ok();
            assert_eq!(fits(None), all, "{wire:?}");
            assert_eq!(fits(Some(&[])), none, "{wire:?}");
            assert_eq!(fits(Some(&own)), one, "{wire:?}");
            assert_eq!(ServerTool::check(&[], wire, None), Ok(()));
        }
        let name = serde_json::to_value(ServerTool::WebSearch).unwrap();
        assert_eq!(name, ServerTool::WebSearch.name());
    }
}
