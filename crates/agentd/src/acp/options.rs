//! The settings of an agent that an editor can change: the approval mode, the sandbox, the model and the reasoning.

use super::catalog::Models;
use crate::chat::modes;
use crate::error::{Error, Exit};
use agent_client_protocol::v1::schema::{
    SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelect,
    SessionConfigSelectOption, SessionMode, SessionModeState,
};
use agentd_core::spec::{AgentSpec, ApprovalMode, Reasoning, Runtime, Sandbox};

const MODES: [ApprovalMode; 3] = [
    ApprovalMode::OnRequest,
    ApprovalMode::Always,
    ApprovalMode::Never,
];
const LEVELS: [(Sandbox, &str); 3] = [
    (
        Sandbox::ReadOnly,
        "tools can write only their own temporary files",
    ),
    (
        Sandbox::WorkspaceWrite,
        "tools can write the working directory",
    ),
    (
        Sandbox::FullAccess,
        "tools can do everything that you may do",
    ),
];
const REASONING: [(&str, Option<Reasoning>); 5] = [
    ("default", None),
    ("off", Some(Reasoning::Off)),
    ("low", Some(Reasoning::Low)),
    ("medium", Some(Reasoning::Medium)),
    ("high", Some(Reasoning::High)),
];

/// The approval modes, for editors that know modes and no other settings.
pub fn modes(spec: &AgentSpec) -> SessionModeState {
    let mode = |mode: ApprovalMode| {
        SessionMode::new(mode.name(), named(mode)).description(modes::meaning(mode).to_owned())
    };
    let current = spec.approval.unwrap_or_default();
    SessionModeState::new(current.name(), MODES.map(mode).to_vec())
}

const fn named(mode: ApprovalMode) -> &'static str {
    match mode {
        ApprovalMode::OnRequest => "Ask to leave the sandbox",
        ApprovalMode::Always => "Ask before changes",
        ApprovalMode::Never => "Never ask",
    }
}

/// All settings. `default` is the sandbox of agents that name none.
pub fn options(spec: &AgentSpec, models: &Models, default: Sandbox) -> Vec<SessionConfigOption> {
    let approval = MODES.map(|mode| {
        SessionConfigSelectOption::new(mode.name(), named(mode))
            .description(modes::meaning(mode).to_owned())
    });
    let current = spec.approval.unwrap_or_default().name();
    let mut options = vec![
        select("approval", "Approval", current, approval.to_vec())
            .category(SessionConfigOptionCategory::Mode),
    ];
    let levels = LEVELS.map(|(level, about)| {
        SessionConfigSelectOption::new(level.name(), level.name()).description(about.to_owned())
    });
    let level = spec.sandbox.unwrap_or(default).name();
    options.push(
        select("sandbox", "Sandbox", level, levels.to_vec()).category(
            SessionConfigOptionCategory::Other("_agentd_sandbox".to_owned()),
        ),
    );
    if spec.runtime != Runtime::Native {
        return options;
    }
    if let Some(current) = models.current(spec) {
        let all = models.all(&current).into_iter();
        let all = all.map(|name| SessionConfigSelectOption::new(name.clone(), name));
        options.push(
            select("model", "Model", &current, all.collect())
                .category(SessionConfigOptionCategory::Model),
        );
    }
    let levels = REASONING.map(|(name, _)| SessionConfigSelectOption::new(name, name));
    let is_set = |(_, level): &&(&str, Option<Reasoning>)| *level == spec.reasoning;
    let current = REASONING.iter().find(is_set).map_or("default", |it| it.0);
    options.push(
        select("reasoning", "Reasoning", current, levels.to_vec())
            .category(SessionConfigOptionCategory::ThoughtLevel),
    );
    options
}

fn select(
    id: &'static str,
    name: &str,
    current: &str,
    options: Vec<SessionConfigSelectOption>,
) -> SessionConfigOption {
    let select = SessionConfigSelect::new(current.to_owned(), options);
    SessionConfigOption::new(id, name, SessionConfigKind::Select(select))
}

/// Changes a setting. A model must be one of those that were offered.
pub fn set(spec: &mut AgentSpec, models: &Models, id: &str, value: &str) -> Result<(), Error> {
    let unknown = |known: &str| {
        Error::new(Exit::Usage, format!("`{value}` is no value of `{id}`"))
            .next(format!("use one of: {known}"))
    };
    match id {
        "approval" => {
            let mode = MODES.into_iter().find(|mode| mode.name() == value);
            let mode = mode.ok_or_else(|| unknown("on-request, always, never"))?;
            spec.approval = Some(mode);
        }
        "sandbox" => {
            let level = LEVELS.iter().find(|(level, _)| level.name() == value);
            let level = level.ok_or_else(|| unknown("read-only, workspace-write, full-access"))?;
            spec.sandbox = Some(level.0);
        }
        "model" => match value.split_once('/') {
            Some((provider, model)) if offers(models, spec, value) => {
                spec.provider = Some(provider.to_owned());
                spec.model = Some(model.to_owned());
            }
            _ => {
                return Err(unknown(
                    "the models of the option `model`, as PROVIDER/MODEL",
                ));
            }
        },
        "reasoning" => {
            let level = REASONING.iter().find(|(name, _)| *name == value);
            let level = level.ok_or_else(|| unknown("default, off, low, medium, high"))?;
            spec.reasoning = level.1;
        }
        _ => {
            let what = format!("there is no setting `{id}`");
            return Err(Error::new(Exit::Usage, what)
                .next("use one of: approval, sandbox, model, reasoning"));
        }
    }
    Ok(())
}

fn offers(models: &Models, spec: &AgentSpec, value: &str) -> bool {
    let current = models.current(spec).unwrap_or_default();
    models.all(&current).contains(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_shown() {
        let models = Models::of(&agentd_core::catalog::Catalog::built_in(), &["anthropic"]);
        let mut spec = AgentSpec {
            provider: Some("anthropic".to_owned()),
            model: Some("claude/x".to_owned()),
            ..AgentSpec::default()
        };
        for (id, value) in [
            ("approval", "always"),
            ("sandbox", "read-only"),
            ("model", "anthropic/claude/x"),
            ("reasoning", "high"),
        ] {
            set(&mut spec, &models, id, value).unwrap();
        }
        assert_eq!(spec.provider.as_deref(), Some("anthropic"));
        assert_eq!(spec.model.as_deref(), Some("claude/x"));
        let shown = options(&spec, &models, Sandbox::default());
        let shown = serde_json::to_value(shown).unwrap();
        let current: Vec<&str> = shown
            .as_array()
            .unwrap()
            .iter()
            .map(|option| option["currentValue"].as_str().unwrap())
            .collect();
        assert_eq!(
            current,
            ["always", "read-only", "anthropic/claude/x", "high"]
        );
        // The current value is among the options even if agentd does not know the model.
        let models = shown[2]["options"].as_array().unwrap();
        assert!(models.iter().any(|it| it["value"] == "anthropic/claude/x"));
        assert!(models.len() > 1);
        assert_eq!(modes(&spec).current_mode_id.0.as_ref(), "always");
    }

    /// Regression: any `PROVIDER/MODEL` was accepted, and the agent could not run.
    #[test]
    fn a_model_that_was_not_offered_is_refused() {
        let models = Models::of(&agentd_core::catalog::Catalog::built_in(), &["anthropic"]);
        let mut spec = AgentSpec::default();
        set(&mut spec, &models, "model", "anthropic/claude-sonnet-5-5").unwrap();
        let before = spec.clone();
        for model in ["nope/x", "anthropic/nope", "openai/gpt-5"] {
            assert!(set(&mut spec, &models, "model", model).is_err(), "{model}");
        }
        assert_eq!(spec, before);
    }

    #[test]
    fn a_wrong_value_names_the_right_ones() {
        let models = Models::default();
        let mut spec = AgentSpec::default();
        for (id, value) in [
            ("approval", "sometimes"),
            ("sandbox", "none"),
            ("model", "x"),
            ("reasoning", "max"),
            ("colour", "blue"),
        ] {
            let error = set(&mut spec, &models, id, value).unwrap_err();
            assert!(
                error.advice().unwrap().contains(':') || id == "model",
                "{error}"
            );
        }
        assert_eq!(spec, AgentSpec::default());
    }
}
