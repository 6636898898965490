//! Tokens and money.

use agentd_client::api::Usage;

/// `$0.0123`; `?` if a part of it is unknown.
pub fn cost(usage: &Usage) -> String {
    match usage.cost_usd {
        None => "?".to_owned(),
        Some(0.0) => "$0".to_owned(),
        Some(usd) if usd < 1.0 => format!("${usd:.4}"),
        Some(usd) => format!("${usd:.2}"),
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
    }
}
