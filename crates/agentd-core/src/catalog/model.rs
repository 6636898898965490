//! What is known about models: context windows and list prices.

use crate::usage::Price;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What is known about a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelEntry {
    pub name: String,
    /// The vendor of the model, who charges this price. `None` for an entry of the user, which applies to any provider.
    pub provider: Option<String>,
    /// How many tokens a request and its reply may have together.
    pub window: Option<u64>,
    /// The longest reply, in tokens.
    pub max_output: Option<u64>,
    pub reasoning: ReasoningForm,
    pub edits: EditForm,
    pub shell: ShellForm,
    /// Whether requests for it have a parameter for the verbosity.
    pub verbosity: bool,
    /// What its faster service costs, in thousandths of the price. `None` if it has none.
    pub fast_permille: Option<u64>,
    /// Whether the user set one of these two. Otherwise they apply only if the vendor serves the model: other servers
    /// may refuse the parameters.
    pub parameters_by_user: bool,
    /// Whether the model accepts images; `None` if it is unknown.
    pub images: Option<bool>,
    /// Whether it accepts PDFs.
    pub pdf: Option<bool>,
    pub price: Option<Price>,
    /// Whether the user set the price. Such a price applies to any provider.
    pub priced_by_user: bool,
}

/// How a request specifies how much the model should think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningForm {
    /// By a number of tokens; without one, the model does not think.
    #[default]
    Budget,
    /// By an effort. Such a model accepts no token budget, no temperature, and no setting that turns reasoning off.
    Adaptive,
}

/// How the model was trained to change files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditForm {
    /// `edit_file` and `write_file`: text that is replaced exactly.
    #[default]
    Exact,
    /// `apply_patch`: a patch of several files.
    Patch,
}

/// How the model was trained to run commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellForm {
    /// A line for the shell.
    #[default]
    Line,
    /// A program and its arguments, as a list.
    Words,
}

/// The forms of tools that a model was trained on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolForms {
    pub edits: EditForm,
    pub shell: ShellForm,
}

impl ModelEntry {
    pub const fn tool_forms(&self) -> ToolForms {
        ToolForms {
            edits: self.edits,
            shell: self.shell,
        }
    }

    /// An entry of the vendor's table.
    pub(super) fn of_vendor(provider: &str, name: &str) -> Self {
        Self {
            provider: Some(provider.to_owned()),
            ..Self::of_user(name)
        }
    }

    pub(super) fn of_user(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            provider: None,
            window: None,
            max_output: None,
            reasoning: ReasoningForm::default(),
            edits: EditForm::default(),
            shell: ShellForm::default(),
            verbosity: false,
            fast_permille: None,
            parameters_by_user: false,
            images: None,
            pdf: None,
            price: None,
            priced_by_user: false,
        }
    }

    /// Whether this provider accepts the parameters given here.
    pub(super) fn has_parameters_at(&self, provider: &str) -> bool {
        match self.provider.as_deref() {
            None => true,
            Some(_) if self.parameters_by_user => true,
            Some(owner) => owner == provider || (owner == "openai" && provider == "openai-chat"),
        }
    }

    /// Whether this provider charges the price given here.
    pub(super) fn is_priced_at(&self, provider: &str) -> bool {
        match self.provider.as_deref() {
            None => true,
            Some(_) if self.priced_by_user => true,
            Some(owner) => {
                owner == provider
                    || (owner == "openai" && provider == "openai-chat")
                    // OpenRouter charges the vendors' list prices.
                    || provider == "openrouter"
            }
        }
    }
}

/// Looks for the exact name, then for the name without its date, then for the name without a router's vendor prefix
/// (`google/…`). Routers have their own names for vendors, and may spell versions differently (`4.5` for `4-5`).
pub(super) fn find<'a>(
    models: &'a BTreeMap<String, ModelEntry>,
    name: &str,
) -> Option<&'a ModelEntry> {
    let plain = |name: &str| models.get(name).or_else(|| models.get(undated(name)));
    plain(name).or_else(|| {
        let (vendor, name) = name.split_once('/')?;
        let owner = match vendor {
            "google" => "gemini",
            vendor => vendor,
        };
        plain(name)
            .or_else(|| plain(&name.replace('.', "-")))
            .filter(|entry| entry.provider.as_deref() == Some(owner))
    })
}

/// A name without its suffix `-20250929`, `-2024-08-06` or `-latest`.
pub(super) fn undated(name: &str) -> &str {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(name) = name.strip_suffix("-latest") {
        return name;
    }
    if let Some((rest, date)) = name.rsplit_once('-')
        && date.len() == 8
        && digits(date)
    {
        return rest;
    }
    let mut parts = name.rsplitn(4, '-');
    if let (Some(day), Some(month), Some(year), Some(rest)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
        && (day.len(), month.len(), year.len()) == (2, 2, 4)
        && [day, month, year].into_iter().all(digits)
    {
        return rest;
    }
    name
}
