//! Tokens and money.

use agentd_client::api::Usage;

/// `$0.0123`; `?` if a part of it is unknown.
pub fn cost(usage: &Usage) -> String {
    usage.cost_usd.map_or_else(|| "?".to_owned(), dollars)
}

fn dollars(usd: f64) -> String {
    match usd {
        0.0 => "$0".to_owned(),
        usd if usd < 1.0 => format!("${usd:.4}"),
        usd => format!("${usd:.2}"),
    }
}

/// The cost that is known, and whether there is more: `$1.50 + ?`.
pub fn known_cost(usd: f64, unpriced: u64) -> String {
    match (usd, unpriced) {
        (usd, 0) => dollars(usd),
        (0.0, _) => "?".to_owned(),
        (usd, _) => format!("{} + ?", dollars(usd)),
    }
}

/// `1234`, `12.3k`, `1.2M`.
pub fn tokens(n: u64) -> String {
    match n {
        ..10_000 => n.to_string(),
        10_000..1_000_000 => format!("{:.1}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

pub fn all(usage: &Usage) -> String {
    let (input, output) = (tokens(usage.input_tokens), tokens(usage.output_tokens));
    format!("{input} tokens in, {output} out, {}", cost(usage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_cost_is_not_zero() {
        let usage = |cost_usd| Usage {
            input_tokens: 12_345,
            output_tokens: 67,
            cost_usd,
        };
        assert_eq!(all(&usage(None)), "12.3k tokens in, 67 out, ?");
        assert_eq!(cost(&usage(Some(0.0))), "$0");
        assert_eq!(cost(&usage(Some(0.01234))), "$0.0123");
        assert_eq!(cost(&usage(Some(12.345))), "$12.35");
        assert_eq!(tokens(2_500_000), "2.5M");
        assert_eq!(known_cost(0.5, 0), "$0.5000");
        assert_eq!(known_cost(0.0, 2), "?");
        assert_eq!(known_cost(1.5, 2), "$1.50 + ?");
    }
}
