//! Processes and connections of the host, by file tools: `/proc` of another PID namespace.

use super::attack::{Attack, Evidence, Needs, Theme};
use super::testbed::Testbed;
use crate::lab::testbed::Result;
use serde_json::json;

pub const THEME: Theme = Theme {
    name: "host processes",
    is_about_sandbox: true,
    attacks: ATTACKS,
};

/// What edit_file says about a text that is not in the file.
const NOT_THERE: &str = "is not in /proc/";

/// Whether a text is in the environment of another process: edit_file tells, although it cannot write there.
fn environment_oracle(testbed: &Testbed) -> Result<Evidence> {
    let path = format!("/proc/{}/environ", testbed.bystander_pid());
    let guess = |text: &str| {
        let read = json!({ "file_path": path });
        let edit = json!({"file_path": path, "old_string": text, "new_string": "x"});
        let script = format!("do: call read_file {read} ;; call edit_file {edit} ;; say done");
        testbed.turn("hostile", &script)
    };
    let (wrong, right) = (guess("HTAP=/")?, guess("PATH=/")?);
    let is_told = wrong.text.contains(NOT_THERE) && !right.text.contains(NOT_THERE);
    Ok(is_told.then(|| "the model knows that PATH is in the environment".to_owned()))
}

/// The kernel writes the list in parts, and may leave a socket out when others come and go meanwhile: so it is read again.
fn host_connections(testbed: &Testbed) -> Result<Evidence> {
    const TRIES: usize = 5;
    let arguments = json!({"file_path": "/proc/net/tcp"});
    for _ in 0..TRIES {
        let saw = testbed.tool("hermit", "read_file", &arguments)?;
        let found = testbed.leaked(&saw, &format!(":{:04X} ", testbed.listeners.tcp));
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

const ATTACKS: &[Attack] = &[
    Attack::new(
        "process-name",
        "read_file of another process's status",
        |testbed| {
            let path = format!("/proc/{}/status", testbed.bystander_pid());
            let saw = testbed.tool("hostile", "read_file", &json!({ "file_path": path }))?;
            Ok(testbed.leaked(&saw, "sleep"))
        },
    )
    .needs(Needs::Workspace),
    Attack::new(
        "process-search",
        "search_files in the files of another process",
        |testbed| {
            let path = format!("/proc/{}/task/{0}/comm", testbed.bystander_pid());
            let arguments = json!({"pattern": "s.eep", "path": path});
            let saw = testbed.tool("hostile", "search_files", &arguments)?;
            Ok(testbed.leaked(&saw, "sleep"))
        },
    )
    .needs(Needs::Workspace),
    Attack::new("process-list", "list_files of /proc", |testbed| {
        let arguments = json!({"path": "/proc", "depth": 1});
        let saw = testbed.tool("hostile", "list_files", &arguments)?;
        Ok(testbed.leaked(&saw, &format!("/proc/{}/", testbed.bystander_pid())))
    })
    .needs(Needs::Workspace),
    Attack::new(
        "host-connections",
        "read_file of /proc/net/tcp with the network off",
        host_connections,
    )
    .needs(Needs::Workspace),
    Attack::new(
        "environment-oracle",
        "edit_file tells what is in another process's environment",
        environment_oracle,
    )
    .needs(Needs::Workspace),
    Attack::new(
        "shared-tmp-tool",
        "a file in the shared /tmp by write_file",
        |testbed| {
            let name = format!("siege-tool-{}", testbed.words.outside);
            let path = std::path::Path::new("/tmp").join(&name);
            let arguments = json!({"file_path": path, "content": "owned"});
            testbed.tool("hostile", "write_file", &arguments)?;
            let found = testbed.made(&path);
            let _none = std::fs::remove_file(path);
            Ok(found)
        },
    )
    .needs(Needs::Workspace),
];
