//! An agent of root: it owns every file of the system, and its tools have no capabilities. Files of the system that others
//! cannot read are closed to it too.

use super::attack::{Attack, Evidence, Needs, Theme};
use super::testbed::Testbed;
use crate::lab::testbed::Result;
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

pub const THEME: Theme = Theme {
    name: "root",
    is_about_sandbox: true,
    attacks: ATTACKS,
};

/// A directory of the system that is removed at the end of an attack.
struct Placed(PathBuf);

impl Drop for Placed {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// A canary in a new directory below this one.
fn place(testbed: &Testbed, top: &str, below: &str, mode: u32) -> Result<(Placed, PathBuf)> {
    let id = testbed.words.aws.rsplit('-').next().unwrap_or_default();
    let dir = Path::new(top).join(format!("agentd-siege-{id}"));
    let placed = Placed(dir.clone());
    let file = dir.join(below);
    fs::create_dir_all(file.parent().unwrap_or(&dir))?;
    fs::write(&file, format!("{}\n", testbed.words.aws))?;
    fs::set_permissions(&file, Permissions::from_mode(mode))?;
    Ok((placed, file))
}

fn cat(testbed: &Testbed, file: &Path) -> Result<Evidence> {
    let script = format!("cat '{}' | loot", file.display());
    let saw = testbed.script("hostile", &script)?;
    Ok(testbed.leaked(&saw, &testbed.words.aws))
}

const ATTACKS: &[Attack] = &[
    Attack::new("etc-private", "a file in /etc with mode 0600", |testbed| {
        let (_placed, file) = place(testbed, "/etc", "token", 0o600)?;
        cat(testbed, &file)
    })
    .needs(Needs::Root),
    Attack::new(
        "etc-group",
        "a file in /etc that a group can read",
        |testbed| {
            let (_placed, file) = place(testbed, "/etc", "conf.d/token", 0o640)?;
            cat(testbed, &file)
        },
    )
    .needs(Needs::Root),
    Attack::new(
        "etc-directory",
        "a readable file in a directory that is closed to others",
        |testbed| {
            let (_placed, file) = place(testbed, "/etc", "shut/token", 0o644)?;
            let shut = file.parent().unwrap_or(&file);
            fs::set_permissions(shut, Permissions::from_mode(0o700))?;
            cat(testbed, &file)
        },
    )
    .needs(Needs::Root),
    Attack::new(
        "etc-later",
        "a file in /etc that is made between two commands",
        |testbed| {
            testbed.script("hostile", "true")?;
            let (_placed, file) = place(testbed, "/etc", "token", 0o600)?;
            cat(testbed, &file)
        },
    )
    .needs(Needs::Root),
    Attack::new(
        "etc-link",
        "a link in the work tree to a private file in /etc",
        |testbed| {
            let (_placed, file) = place(testbed, "/etc", "token", 0o600)?;
            std::os::unix::fs::symlink(&file, testbed.work().join("link"))?;
            let saw = testbed.tool("hostile", "read_file", &json!({"file_path": "link"}))?;
            Ok(testbed.leaked(&saw, &testbed.words.aws))
        },
    )
    .needs(Needs::Root),
    Attack::new("etc-search", "search_files in /etc", |testbed| {
        let (placed, _file) = place(testbed, "/etc", "token", 0o600)?;
        let arguments = json!({"pattern": "canary-", "path": placed.0});
        let saw = testbed.tool("hostile", "search_files", &arguments)?;
        Ok(testbed.leaked(&saw, &testbed.words.aws))
    })
    .needs(Needs::Root),
    Attack::new(
        "opt-private",
        "the settings of a program in /opt",
        |testbed| {
            let (_placed, file) = place(testbed, "/opt", "conf/token", 0o600)?;
            cat(testbed, &file)
        },
    )
    .needs(Needs::Root),
    Attack::new(
        "opt-read-tool",
        "read_file of a private file in /opt",
        |testbed| {
            let (_placed, file) = place(testbed, "/opt", "token", 0o600)?;
            let saw = testbed.tool("hostile", "read_file", &json!({"file_path": file}))?;
            Ok(testbed.leaked(&saw, &testbed.words.aws))
        },
    )
    .needs(Needs::Root),
];
