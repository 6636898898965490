//! Crates depend downwards only.

use super::manifest::{self, Kind};
use super::tree::{self, File, Finding};

const RULE: &str = "layers";

/// What a crate may depend on among ours.
enum Allowed {
    These(&'static [&'static str]),
    Any,
}

/// Every crate of the workspace, from the bottom up. A new one needs a line here.
const LAYERS: &[(&str, Allowed)] = &[
    ("agentd-core", Allowed::These(&[])),
    ("agentd-failpoint", Allowed::These(&[])),
    ("agentd-files", Allowed::These(&[])),
    ("agentd-sandbox", Allowed::These(&["agentd-files"])),
    (
        "agentd-process",
        Allowed::These(&["agentd-failpoint", "agentd-files", "agentd-sandbox"]),
    ),
    (
        "agentd-store",
        Allowed::These(&["agentd-core", "agentd-files"]),
    ),
    (
        "agentd-client",
        Allowed::These(&["agentd-core", "agentd-files"]),
    ),
    (
        "agentd-runtime",
        Allowed::These(&[
            "agentd-core",
            "agentd-failpoint",
            "agentd-files",
            "agentd-process",
            "agentd-sandbox",
        ]),
    ),
    (
        "agentd-daemon",
        Allowed::These(&[
            "agentd-core",
            "agentd-failpoint",
            "agentd-files",
            "agentd-store",
            "agentd-process",
            "agentd-sandbox",
            "agentd-client",
        ]),
    ),
    (
        "agentd",
        Allowed::These(&[
            "agentd-core",
            "agentd-failpoint",
            "agentd-files",
            "agentd-store",
            "agentd-process",
            "agentd-client",
            "agentd-runtime",
            "agentd-sandbox",
            "agentd-daemon",
        ]),
    ),
    (
        TESTKIT,
        Allowed::These(&[
            "agentd-core",
            "agentd-failpoint",
            "agentd-files",
            "agentd-store",
            "agentd-process",
            "agentd-client",
            "agentd-sandbox",
        ]),
    ),
    ("agentd-bench", Allowed::Any),
    ("xtask", Allowed::These(&[])),
];

/// What the tests of every crate may use as well.
const TESTKIT: &str = "agentd-testkit";

fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_manifest()) {
        let Some(krate) = file.krate() else { continue };
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == krate) else {
            findings.push(Finding::new(
                file,
                1,
                RULE,
                format!(
                    "the crate `{krate}` has no layer: add it to LAYERS in \
                     crates/agentd/tests/tidy/layers.rs with what it may depend on"
                ),
            ));
            continue;
        };
        let Allowed::These(allowed) = allowed else {
            continue;
        };
        for dependency in manifest::dependencies(&file.text) {
            let name = dependency.name.as_str();
            let in_tests = dependency.kind == Kind::Dev && name == TESTKIT && krate != "xtask";
            if is_ours(name) && !allowed.contains(&name) && !in_tests {
                findings.push(Finding::new(
                    file,
                    dependency.line,
                    RULE,
                    format!(
                        "`{krate}` may not depend on `{name}`: dependencies point down only; \
                         move what is shared into a lower crate"
                    ),
                ));
            }
        }
    }
    findings
}

fn is_ours(name: &str) -> bool {
    name == "xtask" || name == "agentd" || name.starts_with("agentd-")
}

#[test]
fn crates_depend_downwards_only() -> std::io::Result<()> {
    tree::assert_none(&check(&tree::read()?));
    Ok(())
}

#[test]
fn a_dependency_upwards_is_found() {
    let store = File::new(
        "crates/agentd-store/Cargo.toml",
        "[dependencies]\nagentd-core.workspace = true\nagentd-daemon.workspace = true\nserde = \"1\"\n\
         [dev-dependencies]\nagentd-testkit.workspace = true\nagentd-client.workspace = true\n",
    );
    tree::assert_lines(&check(&[store]), &[3, 7]);
    let normal = File::new(
        "crates/agentd-core/Cargo.toml",
        "[dependencies]\nagentd-testkit.workspace = true\n",
    );
    tree::assert_lines(&check(&[normal]), &[2]);
    let bench = File::new(
        "crates/agentd-bench/Cargo.toml",
        "[dependencies]\nagentd.workspace = true\n",
    );
    tree::assert_none(&check(&[bench]));
}

#[test]
fn a_crate_without_a_layer_is_found() {
    let new = File::new("crates/agentd-new/Cargo.toml", "[package]\n");
    tree::assert_lines(&check(&[new]), &[1]);
}

#[test]
fn the_layers_themselves_have_no_circle() {
    for (at, (name, allowed)) in LAYERS.iter().enumerate() {
        if let Allowed::These(allowed) = allowed {
            for lower in *allowed {
                assert!(
                    LAYERS[..at].iter().any(|(known, _)| known == lower),
                    "`{name}` may depend on `{lower}`, which is not listed before it"
                );
            }
        }
    }
}
