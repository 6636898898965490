//! The core is pure: no clock, no outside world, no randomness, and no dependency that brings them.

use super::manifest;
use super::rooms::{in_crates, paths_that};
use super::tree::{self, File, Finding};

const CORE: &str = "agentd-core";

const IMPURE: &[&[&str]] = &[
    &["SystemTime"],
    &["Instant"],
    &["std", "env"],
    &["std", "fs"],
    &["std", "io"],
    &["std", "net"],
    &["std", "os"],
    &["std", "process"],
    &["std", "thread"],
    &["Uuid", "new_v4"],
    &["Uuid", "now_v1"],
    &["Uuid", "now_v6"],
    &["Uuid", "now_v7"],
    // jiff's own clock, and the time zone and the database of the system.
    &["Timestamp", "now"],
    &["Zoned", "now"],
    &["TimeZone", "get"],
    &["TimeZone", "system"],
];

const IMPURE_CRATES: &[&str] = &["getrandom", "libc", "rand", "rustix", "tokio"];

const CORE_DEPENDENCIES: &[&str] = &[
    "base64",
    "croner",
    "jiff",
    "regex",
    "serde",
    "serde-saphyr",
    "serde_json",
    "sha2",
    "strsim",
    "thiserror",
    "toml",
    "uuid",
];

fn pure(files: &[File]) -> Vec<Finding> {
    const RULE: &str = "pure core";
    let mut findings = Vec::new();
    for file in files {
        if in_crates(file, &[CORE]) && file.is_src() && file.is_rust() {
            findings.extend(paths_that(
                file,
                RULE,
                "the core is a function of its arguments; take the value as one, or give the \
                 effect back to the caller",
                |named| {
                    IMPURE.iter().any(|path| named.has(path))
                        || IMPURE_CRATES.iter().any(|name| named.is_of_crate(name))
                },
            ));
        }
        let of_core = in_crates(file, &[CORE]) && file.is_manifest();
        if !of_core && file.path != "Cargo.toml" {
            continue;
        }
        for dependency in manifest::dependencies(&file.text) {
            let name = dependency.name.as_str();
            let normal = dependency.kind != manifest::Kind::Dev;
            if of_core && normal && !CORE_DEPENDENCIES.contains(&name) {
                findings.push(Finding::new(
                    file,
                    dependency.line,
                    RULE,
                    format!(
                        "the core may not depend on `{name}`; what is pure and needed is added to \
                         CORE_DEPENDENCIES in crates/agentd/tests/tidy/pure.rs"
                    ),
                ));
            }
            let makes_ids = ["v1", "v4", "v6", "v7"]
                .iter()
                .any(|feature| dependency.has_feature(feature));
            if name == "uuid" && normal && makes_ids {
                findings.push(Finding::new(
                    file,
                    dependency.line,
                    RULE,
                    "the core gets `uuid` without the features that make ids; name the feature in \
                     the crate that makes them",
                ));
            }
        }
    }
    findings
}

#[test]
fn the_core_is_pure() -> std::io::Result<()> {
    tree::assert_none(&pure(&tree::read()?));
    Ok(())
}

#[test]
fn an_impure_core_is_found() {
    let text = "use std::time::{Duration, Instant};\nuse std::{fmt, io::Write};\n\
                // std::fs\nfn f(operand: u8) {\n    let rand = operand;\n    std::fs::read(\"a\");\n    \
                uuid::Uuid::now_v7();\n    tokio::spawn(g);\n}\n";
    let source = File::new("crates/agentd-core/src/turn.rs", text);
    tree::assert_lines(&pure(&[source]), &[1, 2, 6, 7, 8]);
    tree::assert_none(&pure(&[File::new("crates/agentd-store/src/lib.rs", text)]));
}

#[test]
fn a_new_dependency_of_the_core_is_found() {
    let core_manifest = File::new(
        "crates/agentd-core/Cargo.toml",
        "[dependencies]\nserde.workspace = true\ntokio.workspace = true\n\
         uuid = { workspace = true, features = [\"v7\"] }\n[dev-dependencies]\nproptest = \"1\"\n",
    );
    tree::assert_lines(&pure(&[core_manifest]), &[3, 4]);
    let workspace = File::new(
        "Cargo.toml",
        "[workspace.dependencies]\ntokio = \"1\"\nuuid = { version = \"1\", features = [\"v4\"] }\n",
    );
    tree::assert_lines(&pure(&[workspace]), &[3]);
}
