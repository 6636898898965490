//! Dollars: exact to the millionth, in YAML and in JSON.

use super::*;

fn yaml(usd: &str) -> Result<u64, Error> {
    let spec = parse(&format!("---\nlimits: {{turn: {{usd: {usd}}}}}\n---\n"))?;
    Ok(spec.limits.turn.usd.unwrap().0)
}

fn json(usd: &str) -> Option<u64> {
    let budget: Budget = serde_json::from_str(&format!(r#"{{"usd": {usd}}}"#)).ok()?;
    budget.usd.map(|MicroUsd(micros)| micros)
}

#[test]
fn dollars_are_read_exactly() {
    for (text, micros) in [
        ("0", 0),
        ("0.0", 0),
        ("2.50", 2_500_000),
        ("2.5", 2_500_000),
        ("0.1", 100_000),
        ("0.000001", 1),
        ("1e-6", 1),
        ("1.5e2", 150_000_000),
        ("123456789.123457", 123_456_789_123_457),
        ("999999999.999999", 999_999_999_999_999),
        ("1000000000", 1_000_000_000_000_000),
        ("18446744073709", 18_446_744_073_709_000_000),
        ("\"2.50\"", 2_500_000),
        ("\"18446744073709.551615\"", u64::MAX),
    ] {
        assert_eq!(yaml(text).as_ref(), Ok(&micros), "{text}");
        assert_eq!(json(text), Some(micros), "{text}");
    }
    for text in [".5", "+2.5", "2."] {
        assert!(yaml(text).is_ok(), "{text}");
    }
}

#[test]
fn other_amounts_are_refused() {
    for text in [
        "-1",
        "-0.5",
        "-0.0",
        "0.0000001",
        "2.1234567",
        "1e-7",
        "18446744073710",
        "1000000000.5",
        "1e300",
        "true",
        "[]",
        "{}",
        "\"\"",
        "\"x\"",
        "\"-1\"",
        "\"1.\"",
        "\".5\"",
        "\"+1\"",
        "\"1e3\"",
        "\"2.1234567\"",
        "\"18446744073709.551616\"",
        "\" 1\"",
    ] {
        let error = yaml(text).unwrap_err();
        assert!(
            matches!(&error, Error::Invalid { key, line: 2, .. } if key == "limits.turn.usd"),
            "{text}: {error:?}"
        );
        assert_eq!(json(text), None, "{text}");
    }
    for text in [".nan", ".inf", "-.inf", "1e999", "$5", "2,50 "] {
        assert!(yaml(text).is_err(), "{text}");
    }
    assert_eq!(
        yaml("-1").unwrap_err().to_string(),
        "line 2: `limits.turn.usd`: expected an amount of dollars, 0 or more, with at most 6 \
         decimals, such as 2.50"
    );
}

#[test]
fn every_amount_survives_both_forms() {
    let mut amounts = vec![0, 1, 999_999, 1_000_000, 1_000_001, u64::MAX, u64::MAX - 1];
    let mut power = 1_u64;
    while let Some(next) = power.checked_mul(10) {
        power = next;
        amounts.extend([power - 1, power, power + 1]);
    }
    let mut seed = 7_u64;
    for shift in (0..50_000).map(|n| n % 64) {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        amounts.push(seed >> shift);
    }
    for (nth, micros) in amounts.into_iter().enumerate() {
        let mut spec = AgentSpec::default();
        spec.limits.day.usd = Some(MicroUsd(micros));
        let json = serde_json::to_string(&spec.limits.day).unwrap();
        assert_eq!(
            serde_json::from_str::<Budget>(&json).unwrap(),
            spec.limits.day,
            "{json}"
        );
        // A value that serde buffers, as in a tagged enum, takes another code path.
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            serde_json::from_value::<Budget>(value).unwrap(),
            spec.limits.day,
            "{json}"
        );
        if nth % 20 == 0 || nth < 100 {
            assert_eq!(parse(&spec.to_markdown()).unwrap(), spec, "{micros}");
        }
    }
}
