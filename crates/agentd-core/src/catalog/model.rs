//! Windows and list prices of models: those of the table that ships with the program, `models.toml`.

use super::error::Fault;
use super::file;
use crate::usage::Price;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// What is known of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelEntry {
    pub name: String,
    /// Whose model it is, and whose price. None: it is the user's entry, good for any provider.
    pub provider: Option<String>,
    /// Tokens that fit into a request and its reply.
    pub window: Option<u64>,
    /// The most tokens of one reply.
    pub max_output: Option<u64>,
    pub thinking: ThinkingForm,
    pub price: Option<Price>,
    /// The price is the user's word, good for any provider.
    pub priced_by_user: bool,
}

/// How a model is told how much to think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingForm {
    /// By a number of tokens; none is no thinking.
    #[default]
    Budget,
    /// By an effort. It takes no budget, no temperature, and no word that thinking is to be off.
    Adaptive,
}

impl ModelEntry {
    /// One that its vendor's table has.
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
            thinking: ThinkingForm::default(),
            price: None,
            priced_by_user: false,
        }
    }

    /// Whether what this provider charges is the price given here.
    pub(super) fn is_priced_at(&self, provider: &str) -> bool {
        match self.provider.as_deref() {
            None => true,
            Some(_) if self.priced_by_user => true,
            Some(owner) => {
                owner == provider
                    || (owner == "openai" && provider == "openai-chat")
                    // It passes list prices on.
                    || provider == "openrouter"
            }
        }
    }
}

/// By the name itself; without its date; without the vendor that a router puts before it. Vendors
/// are named as the router names them, and spelling of versions differs (`4.5` and `4-5`).
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

/// A name without `-20250929`, `-2024-08-06` or `-latest` behind it.
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

/// The table that ships with the program.
const SHIPPED: &str = include_str!("../../models.toml");

/// The table is read once for each process. A test holds it to being readable, so that nothing is lost
/// here.
pub(super) fn built_in() -> &'static [ModelEntry] {
    static MODELS: OnceLock<Vec<ModelEntry>> = OnceLock::new();
    MODELS.get_or_init(|| shipped().unwrap_or_default())
}

pub(super) fn shipped() -> Result<Vec<ModelEntry>, Fault> {
    file::models(SHIPPED)
}
