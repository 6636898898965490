//! Lines that try to break the parser: it ends quickly and never panics.

use super::{Allow, Ask, Deny, rule};
use crate::permission::{Subject, decide, shell};

#[test]
fn deep_and_long_lines_are_not_parsed() {
    const OPENINGS: &[&str] = &[
        "(",
        "( ",
        "((",
        "$(",
        "\"$(",
        "`",
        "${",
        "${x:-",
        "$((",
        "{ ",
        "<(",
        "if ",
        "while ",
        "case x in x) ",
        "f() ",
        "! ",
        "time ",
        "<<E ",
        "a | ",
        "a && ",
        "'",
        "\\",
        "[",
        "{a,",
        "sh -c '",
        "eval ",
        "xargs ",
        "env ",
        "find -exec ",
        "A=1 ",
        ">x ",
        "for i in x; do ",
        "\n",
        "# ",
        "(a);",
    ];
    for opening in OPENINGS {
        for count in [
            1,
            31,
            32,
            33,
            1000,
            shell::MAX_BYTES / opening.len(),
            100_000,
        ] {
            let line = opening.repeat(count);
            let _ = shell::parse(&line);
            let _ = shell::parse(&(line + "a"));
        }
    }
    let nested = |depth: usize| "(".repeat(depth).replace('(', "( ") + "a" + &")".repeat(depth);
    assert!(shell::parse(&nested(32)).is_ok());
    assert!(shell::parse(&nested(33)).is_err());
    assert!(shell::parse(&"a".repeat(shell::MAX_BYTES)).is_ok());
    assert!(shell::parse(&"a".repeat(shell::MAX_BYTES + 1)).is_err());
}

#[test]
fn commands_that_run_each_other_come_to_an_end() {
    let line = "env ".repeat(40) + "rm x";
    let script = shell::parse(&line).unwrap();
    assert_eq!(script.opaque(), Some("env"));
    let rules = [
        rule("shell", Some("rm *"), Deny),
        rule("shell", None, Allow),
    ];
    assert_eq!(decide(&rules, "shell", &Subject::Command(line), Allow), Ask);
}

#[test]
fn random_lines_are_read() {
    #[rustfmt::skip]
    const PIECES: &[&str] = &[
        "a", "rm ", "git ", "x=1 ", " ", "\t", "\n", ";", "&", "|", "&&", "||", "|&", "(", ")", "((", "))", "{ ", "}",
        "'", "\"", "\\", "`", "$", "$(", "${", "$((", "$'", "$\"", "<", ">", "<<E\n", "\nE\n", "<<-'E'\n", "<<<", "<(", "&>",
        "2>&1", ">&-", "#", "!", "*", "?", "[", "]", "~", "~a", "{a,b}", "{1..3}", "=", "+=", "x[", "]=", "if ", "then ",
        "else ", "fi", "while ", "do ", "done", "for i in ", "case x in ", ";;", "esac", "f() ", "function ", "time ", "-p ",
        "eval ", "sh -c ", "xargs -I", "find -exec ", "{}", "\\;", "env -i ", "sudo -u ", "git -c ", "é", "\u{a0}", "\0", "\r",
        "99999999999999999999", ":-", "%", "@P", "[@]", "]]", "[[ ", "-v",
    ];
    let mut seed = 42_u64;
    let mut next = move |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let rules = [
        rule("shell", Some("git push*"), Deny),
        rule("shell", Some("a * | rm *"), Allow),
        rule("shell", Some("git *"), Allow),
    ];
    for _ in 0..50_000 {
        let line: String = (0..next(14)).map(|_| PIECES[next(PIECES.len())]).collect();
        let _ = decide(&rules, "shell", &Subject::Command(line), Ask);
    }
}
