//! No part of a secret remains.

use super::{MARK, Secrets};

fn secrets(values: &[&str]) -> Secrets {
    Secrets::new(values.iter().map(ToString::to_string))
}

#[test]
fn each_secret_becomes_a_mark() {
    let two = secrets(&["sk-0123456789", "tok-12345678"]);
    let text = "a sk-0123456789 b tok-12345678tok-12345678 é sk-012345678";
    let expected = format!("a {MARK} b {MARK}{MARK} é sk-012345678");
    assert_eq!(two.redact(text), expected);
    assert_eq!(two.redact(&expected), expected, "once is enough");
}

#[test]
fn where_secrets_overlap_nothing_of_either_is_left() {
    let two = secrets(&["abcdefgh1234", "1234567890"]);
    assert_eq!(two.redact("<abcdefgh1234567890>"), format!("<{MARK}>"));
    let nested = secrets(&["secret-secret", "secret-secret-two"]);
    assert_eq!(nested.redact("secret-secret-two"), MARK);
    assert_eq!(nested.redact("secret-secret-secret"), MARK);
    let wide = secrets(&["schlüssel-ü"]);
    assert_eq!(wide.redact("ü schlüssel-ü ü"), format!("ü {MARK} ü"));
}

#[test]
fn a_short_one_is_not_looked_for() {
    assert_eq!(secrets(&["1234567", ""]).redact("1234567"), "1234567");
    assert_eq!(secrets(&["1234567 \n"]).redact("1234567 \n"), "1234567 \n");
    assert_eq!(
        secrets(&["12345678\n"]).redact("12345678."),
        format!("{MARK}.")
    );
}

#[test]
fn the_beginning_of_one_at_a_cut_goes_too() {
    let one = secrets(&["sk-0123456789"]);
    assert_eq!(one.redact_cut("a sk-01234"), "a ");
    assert_eq!(one.redact_cut("a sk-0123456789"), format!("a {MARK}"));
    assert_eq!(one.redact_cut("a"), "a");
    assert_eq!(secrets(&[]).redact_cut("a s"), "a s");
}

#[test]
fn they_are_not_shown() {
    let one = secrets(&["sk-0123456789"]);
    assert_eq!(format!("{one:?}"), "Secrets(1 hidden)");
}

#[test]
fn the_secrets_of_an_environment_go_by_name() {
    let env = [
        ("ANTHROPIC_API_KEY", "sk-0123456789"),
        ("LAB_LOGIN", "login-01234567"),
        ("SSH_KEY_PATH", "/home/me/.ssh/id"),
        ("PATH", "/usr/local/bin"),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let names = ["LAB_LOGIN".to_owned()].into();
    let found = Secrets::of_env(&env.into(), &names);
    assert_eq!(found.values(), ["login-01234567", "sk-0123456789"]);
    assert_eq!(found.clone().and(found.values()).values(), found.values());
}

#[test]
fn every_text_of_a_json_value_is_redacted() {
    let one = secrets(&["sk-0123456789"]);
    let value = serde_json::json!({"a": ["x sk-0123456789", 5], "sk-0123456789": {"b": null}});
    let expected = serde_json::json!({"a": [format!("x {MARK}"), 5], MARK: {"b": null}});
    assert_eq!(one.redact_json(value), expected);
}

#[test]
fn the_password_of_a_proxy_is_redacted() {
    let env = [(
        "https_proxy".to_owned(),
        "http://me:proxy-word-1@proxy:80".to_owned(),
    )];
    let found = Secrets::of_env(&env.into(), &Default::default());
    let said = found.redact("via http://me:proxy-word-1@proxy:80, word proxy-word-1");
    assert_eq!(said, format!("via http://{MARK}@proxy:80, word {MARK}"));
}

#[test]
fn a_secret_is_found_in_text_and_in_other_bytes() {
    let secrets = Secrets::new(["sk-0123456789".to_owned()]);
    assert!(secrets.are_in(b"KEY=sk-0123456789\n"));
    assert!(secrets.are_in(b"\xff\x00sk-0123456789\xff"));
    assert!(!secrets.are_in(b"KEY=sk-012345678\n"));
    assert!(!secrets.are_in(b"\xffsk-\x000123456789"));
    assert!(!Secrets::default().are_in(b"anything"));
}
