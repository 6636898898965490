//! A limit on tokens, money and time, and amounts of dollars as users write them.

use crate::usage::MicroUsd;
use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::{self, Formatter};

/// A limit on usage. An absent field means no limit; zero means that nothing may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Tokens, input and output. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Dollars, with up to six decimals: `2.50`. Default: no limit.
    #[serde(with = "dollars", skip_serializing_if = "Option::is_none")]
    pub usd: Option<MicroUsd>,
    /// Milliseconds of wall-clock time. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
}

impl Budget {
    /// Whether there is no limit.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// The amount in the form that a file has.
    pub(super) fn dollars(&self) -> Option<impl Serialize + use<>> {
        self.usd.map(Dollars)
    }
}

const MICROS: u64 = 1_000_000;
const DECIMALS: usize = 6;
/// Below this amount an `f64` holds six decimals exactly: 15 digits in total.
const EXACT_AS_FLOAT: u64 = 1_000_000_000;

/// [`MicroUsd`] as a number of dollars. An amount that a float cannot hold exactly is a decimal string.
#[derive(Clone, Copy)]
struct Dollars(MicroUsd);

/// For `serde(with)`: an optional amount of dollars.
pub(crate) mod dollars {
    use super::{Deserialize, Deserializer, Dollars, MicroUsd, Serialize, Serializer};

    pub fn serialize<S: Serializer>(usd: &Option<MicroUsd>, to: S) -> Result<S::Ok, S::Error> {
        usd.map(Dollars).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<MicroUsd>, D::Error> {
        let usd = Option::<Dollars>::deserialize(from)?;
        Ok(usd.map(|Dollars(amount)| amount))
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let MicroUsd(micros) = self.0;
        let (whole, rest) = (micros / MICROS, micros % MICROS);
        if rest == 0 {
            to.serialize_u64(whole)
        } else if whole < EXACT_AS_FLOAT {
            to.serialize_f64(micros as f64 / MICROS as f64)
        } else {
            to.collect_str(&format_args!("{whole}.{rest:0DECIMALS$}"))
        }
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(DollarsVisitor)
    }
}

struct DollarsVisitor;

impl Visitor<'_> for DollarsVisitor {
    type Value = Dollars;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("an amount of dollars, 0 or more, with at most 6 decimals, such as 2.50")
    }

    fn visit_u64<E: de::Error>(self, whole: u64) -> Result<Dollars, E> {
        let micros = whole.checked_mul(MICROS);
        micros
            .map(|micros| Dollars(MicroUsd(micros)))
            .ok_or_else(|| E::custom("the amount is too large"))
    }

    fn visit_f64<E: de::Error>(self, amount: f64) -> Result<Dollars, E> {
        if amount >= EXACT_AS_FLOAT as f64 {
            return Err(E::custom(format_args!(
                "{EXACT_AS_FLOAT} dollars and more must be quoted, to be exact"
            )));
        }
        // Rust prints the shortest digits that identify this float, and never an exponent.
        match from_decimal(&amount.to_string()) {
            Some(micros) => Ok(Dollars(micros)),
            None => Err(E::invalid_value(Unexpected::Float(amount), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Dollars, E> {
        match from_decimal(text) {
            Some(micros) => Ok(Dollars(micros)),
            None => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

/// Reads digits, optionally followed by a point and up to six more.
fn from_decimal(text: &str) -> Option<MicroUsd> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > DECIMALS {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let rest: u64 = format!("{decimals:0<DECIMALS$}").parse().ok()?;
    whole.checked_mul(MICROS)?.checked_add(rest).map(MicroUsd)
}
