//! Tokens and money.

use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// What one request used. Input tokens exclude tokens that were read from or written to the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    #[serde(default)]
    pub input_tokens: u64,
    #[serde(default)]
    pub output_tokens: u64,
    #[serde(default)]
    pub cache_read_tokens: u64,
    #[serde(default)]
    pub cache_write_tokens: u64,
}

impl Usage {
    /// The tokens that the model read, from its cache or not.
    pub const fn prompt_tokens(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.cache_read_tokens)
            .saturating_add(self.cache_write_tokens)
    }

    pub const fn total(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.output_tokens)
            .saturating_add(self.cache_read_tokens)
            .saturating_add(self.cache_write_tokens)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = self
            .cache_read_tokens
            .saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self
            .cache_write_tokens
            .saturating_add(other.cache_write_tokens);
    }
}

/// Money in millionths of a US dollar, so that sums are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

impl MicroUsd {
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// What a model charges per million tokens. A model that is in no table has no price, and its cost is *unknown*,
/// which is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    pub input: MicroUsd,
    pub output: MicroUsd,
    pub cache_read: MicroUsd,
    pub cache_write: MicroUsd,
    /// The higher price of a request that exceeds some number of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_context: Option<LongContext>,
}

/// A step in a price: if the input is longer than `above` tokens, the whole request costs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongContext {
    /// Tokens of input, including those of the cache.
    pub above: u64,
    /// The factor for the price of input and cache, in thousandths.
    pub input_permille: u64,
    /// The factor for the price of output.
    pub output_permille: u64,
}

/// Rounded up: a budget must never be exceeded by a remainder.
fn times(price: MicroUsd, permille: u64) -> MicroUsd {
    let price = u128::from(price.0) * u128::from(permille);
    MicroUsd(u64::try_from(price.div_ceil(1_000)).unwrap_or(u64::MAX))
}

impl Price {
    /// The price for a request with this many tokens of input, with the step applied.
    pub fn at(&self, prompt_tokens: u64) -> Self {
        let flat = Self {
            long_context: None,
            ..*self
        };
        let Some(long) = self.long_context.filter(|long| prompt_tokens > long.above) else {
            return flat;
        };
        Self {
            input: times(flat.input, long.input_permille),
            output: times(flat.output, long.output_permille),
            cache_read: times(flat.cache_read, long.input_permille),
            cache_write: times(flat.cache_write, long.input_permille),
            long_context: None,
        }
    }

    /// The price of a service that costs so many thousandths as much.
    pub fn times(&self, permille: u64) -> Self {
        Self {
            input: times(self.input, permille),
            output: times(self.output, permille),
            cache_read: times(self.cache_read, permille),
            cache_write: times(self.cache_write, permille),
            long_context: self.long_context,
        }
    }

    pub fn of(&self, usage: &Usage) -> MicroUsd {
        self.at(usage.prompt_tokens()).of_flat(usage)
    }

    fn of_flat(&self, usage: &Usage) -> MicroUsd {
        let part = |tokens: u64, per_million: MicroUsd| {
            u128::from(tokens).saturating_mul(u128::from(per_million.0))
        };
        let total = part(usage.input_tokens, self.input)
            .saturating_add(part(usage.output_tokens, self.output))
            .saturating_add(part(usage.cache_read_tokens, self.cache_read))
            .saturating_add(part(usage.cache_write_tokens, self.cache_write));
        // Rounded up: a budget must never be exceeded by a remainder.
        MicroUsd(u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }
}

/// A sum of requests. `unpriced` counts the requests whose cost is unknown, so that a partial sum is never taken for
/// the full cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    pub usage: Usage,
    pub cost: MicroUsd,
    pub requests: u64,
    pub unpriced: u64,
    /// How long turns have taken.
    pub busy_ms: u64,
}

impl Spent {
    pub fn add(&mut self, usage: Usage, cost: Option<MicroUsd>) {
        self.usage += usage;
        self.requests = self.requests.saturating_add(1);
        match cost {
            Some(cost) => self.cost = self.cost.saturating_add(cost),
            None => self.unpriced = self.unpriced.saturating_add(1),
        }
    }

    /// Adds another sum to this one.
    pub fn merge(&mut self, other: &Self) {
        self.usage += other.usage;
        self.cost = self.cost.saturating_add(other.cost);
        self.requests = self.requests.saturating_add(other.requests);
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
        self.work(other.busy_ms);
    }

    pub fn work(&mut self, busy_ms: u64) {
        self.busy_ms = self.busy_ms.saturating_add(busy_ms);
    }
}
