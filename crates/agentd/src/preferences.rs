//! What becomes of an agent's preferences with its model: a parameter of requests, a sentence of the system prompt, or
//! nothing.

use agentd_core::catalog::Choice;
use agentd_core::message::Wire;
use agentd_core::spec::{AgentSpec, Verbosity};
use agentd_core::usage::Price;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preferences {
    /// The verbosity as a parameter.
    pub sent: Option<Verbosity>,
    /// The verbosity as a sentence, for models without such a parameter.
    pub told: Option<Verbosity>,
    /// Whether requests use the faster service. It is ignored if the model has none.
    pub is_fast: bool,
    /// The price of the model, with the faster service if that is used.
    pub price: Option<Price>,
}

impl Preferences {
    pub fn of(choice: &Choice, spec: &AgentSpec) -> Self {
        let known = choice.known.as_ref();
        let has_parameters = matches!(
            choice.provider.wire,
            Wire::OpenaiResponses | Wire::OpenaiChat
        );
        let takes_verbosity = has_parameters && known.is_some_and(|known| known.verbosity);
        let faster = known.and_then(|known| known.fast_permille);
        let faster = faster.filter(|_| has_parameters && spec.fast == Some(true));
        let price = known.and_then(|known| known.price);
        Self {
            sent: spec.verbosity.filter(|_| takes_verbosity),
            told: spec.verbosity.filter(|_| !takes_verbosity),
            is_fast: faster.is_some(),
            price: match faster {
                Some(permille) => price.map(|price| price.times(permille)),
                None => price,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::catalog::Catalog;
    use agentd_core::usage::MicroUsd;

    fn preferences(provider: &str, model: &str) -> Preferences {
        let choice = Catalog::built_in().resolve(Some(provider), Some(model));
        let spec = AgentSpec {
            verbosity: Some(Verbosity::Low),
            fast: Some(true),
            ..AgentSpec::default()
        };
        Preferences::of(&choice.unwrap(), &spec)
    }

    #[test]
    fn a_model_with_the_parameters_gets_them() {
        for provider in ["openai", "openai-chat"] {
            let found = preferences(provider, "gpt-5");
            assert_eq!((found.sent, found.told), (Some(Verbosity::Low), None));
            assert!(found.is_fast);
            let price = found.price.unwrap();
            assert_eq!(price.input, MicroUsd(2_500_000), "it costs twice as much");
        }
    }

    #[test]
    fn any_other_model_is_told_and_is_not_faster() {
        for (provider, model) in [
            ("anthropic", "claude-sonnet-5-5"),
            ("gemini", "gemini-2.5-flash"),
            ("openai", "some-model"),
            ("openrouter", "openai/gpt-5"),
        ] {
            let found = preferences(provider, model);
            assert_eq!((found.sent, found.told), (None, Some(Verbosity::Low)));
            assert!(!found.is_fast, "{provider}/{model}");
        }
        let found = preferences("openai", "gpt-4.1");
        assert_eq!((found.told, found.is_fast), (Some(Verbosity::Low), true));
    }
}
