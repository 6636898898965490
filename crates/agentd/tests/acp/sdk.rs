//! The reference SDK of the protocol as a client. `cargo xtask test` installs it.

use crate::test_daemon::{TestDaemon, until};
use agentd_core::spec::ApprovalMode;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The installed package; none with the reason if it is not there.
fn package() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let package = root.join("target/npm/acp-sdk/node_modules/@agentclientprotocol/sdk");
    let node = Command::new("node").arg("--version").output();
    if !node.is_ok_and(|output| output.status.success()) {
        return Err("there is no node".to_owned());
    }
    match package.join("package.json").is_file() {
        true => Ok(package.canonicalize().unwrap()),
        false => Err("the SDK is not installed: `cargo xtask test` does".to_owned()),
    }
}

/// The script says on stdout what it wants from outside, a line each, and reads a line when it is done.
#[test]
fn the_reference_sdk_drives_every_part() {
    let package = match package() {
        Ok(package) => package,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.approval = Some(ApprovalMode::Always);
    daemon.create_with("coder", spec);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acp/sdk/client.mjs");
    let mut command = daemon.program().command_of("node");
    command
        .envs(daemon.caller())
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("ACP_SDK", package)
        .env("AGENTD", daemon.program().path())
        .env("WORK", daemon.work())
        .arg(script)
        .current_dir(daemon.work())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut node = command.spawn().unwrap();
    let mut stdin = node.stdin.take().unwrap();
    let mut said = Vec::new();
    for line in BufReader::new(node.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        println!("{line}");
        if line == "restart the daemon" {
            // The first client that notices starts another one.
            daemon.kill_daemon();
            until("the daemon", || {
                daemon.block(daemon.client().agent("coder")).ok()
            });
            writeln!(stdin, "done").unwrap();
        }
        said.push(line);
    }
    let status = node.wait().unwrap();
    assert!(status.success(), "{status}: {said:#?}\n{}", daemon.log());
    for step in [
        "new",
        "streamed prompt",
        "permission",
        "two clients",
        "cancel",
        "load after a restart",
        "list",
        "close",
    ] {
        assert!(said.iter().any(|line| line == step), "{step}: {said:#?}");
    }
    assert_eq!(daemon.effects(), ["hi"]);
    daemon.requests();
}
