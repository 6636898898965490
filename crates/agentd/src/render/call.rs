//! A tool call as a person would write it.

use crate::render::{Detail, patched};
use crate::terminal::visible;
use agentd_core::{patch, shell_words};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Characters of a shortened text.
const MOST: usize = 100;
/// Characters of a title that are shown in brief.
const TITLE: usize = 400;

/// `$ cargo test`, `edit src/lib.rs`, `search "word" in src`. In brief one line, and not a long one; in full a command has
/// all of its lines.
pub fn title(tool: &str, input: &Map<String, Value>, detail: Detail) -> String {
    let title = whole(tool, input, detail);
    match detail {
        Detail::Brief => cut(&title, TITLE),
        Detail::Full => title,
    }
}

fn whole(tool: &str, input: &Map<String, Value>, detail: Detail) -> String {
    let given = |key: &str| input.get(key).and_then(Value::as_str).map(visible);
    let text = |key: &str| given(key).map(|text| text.replace('\n', " "));
    let path = || {
        let path = text("file_path").or_else(|| text("path"));
        path.unwrap_or_else(|| ".".to_owned())
    };
    let lines = |text: Option<Cow<'_, str>>| {
        let text = text.unwrap_or_default();
        let text = text.trim();
        match detail {
            Detail::Brief => first_line(text),
            Detail::Full => text.replace('\n', "\n> "),
        }
    };
    let tool = visible(tool).replace('\n', " ");
    match tool.as_str() {
        "shell" => {
            let line = shell_words::line_of(input).unwrap_or_default();
            let command = lines(Some(visible(&line)));
            let is_background = input.get("run_in_background") == Some(&Value::Bool(true));
            let aside = if is_background { " &" } else { "" };
            let dir = shell_words::dir_of(input);
            let dir = dir.map(|dir| format!("(in {}) ", visible(dir).replace('\n', " ")));
            format!("{}$ {command}{aside}", dir.unwrap_or_default())
        }
        "edit_file" => format!("edit {}", path()),
        "write_file" => format!("write {}", path()),
        patch::TOOL => match patched::patch_of(input) {
            Some(patch) => {
                let files: Vec<String> = patch.files.iter().map(patched::title).collect();
                files.join(", ")
            }
            None => "apply a patch".to_owned(),
        },
        "update_plan" => "update the plan".to_owned(),
        "read_file" => match input.get("offset").and_then(Value::as_u64) {
            Some(line) => format!("read {} from line {line}", path()),
            None => format!("read {}", path()),
        },
        "list_files" => match text("pattern") {
            Some(pattern) => format!("list {pattern} in {}", path()),
            None => format!("list {}", path()),
        },
        "search_files" => {
            let pattern = text("pattern").unwrap_or_default();
            let glob = text("glob").map(|glob| format!(" ({glob})"));
            format!(
                "search \"{pattern}\" in {}{}",
                path(),
                glob.unwrap_or_default()
            )
        }
        "fetch_url" => format!("fetch {}", text("url").unwrap_or_default()),
        "agent" => {
            let kind = text("kind").map(|kind| format!(" {kind}"));
            let about = lines(given("description").or_else(|| given("prompt")));
            format!("agent{}: {about}", kind.unwrap_or_default())
        }
        "task_output" => format!("output of task {}", text("task").unwrap_or_default()),
        "task_stop" => format!("stop task {}", text("task").unwrap_or_default()),
        "reset_conversation" => "begin a new conversation".to_owned(),
        _ if input.is_empty() => tool,
        _ => {
            let arguments = Value::Object(input.clone()).to_string();
            let arguments = visible(&arguments);
            match detail {
                Detail::Brief => format!("{tool} {}", shortened(&arguments)),
                Detail::Full => format!("{tool} {arguments}"),
            }
        }
    }
}

fn first_line(text: &str) -> String {
    match text.split_once('\n') {
        Some((first, _)) => format!("{} …", first.trim_end()),
        None => text.to_owned(),
    }
}

/// The beginning of a long text.
pub fn shortened(text: &str) -> String {
    cut(text, MOST)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_written_as_a_person_would() {
        for (tool, input, expected) in [
            ("shell", json!({"command": "cargo test"}), "$ cargo test"),
            (
                "shell",
                json!({"command": "cat <<E\nx\nE\n"}),
                "$ cat <<E …",
            ),
            (
                "shell",
                json!({"command": "make", "cwd": "web", "run_in_background": true}),
                "(in web) $ make &",
            ),
            ("read_file", json!({"file_path": "a.rs"}), "read a.rs"),
            (
                "read_file",
                json!({"file_path": "a.rs", "offset": 7}),
                "read a.rs from line 7",
            ),
            ("edit_file", json!({"file_path": "a.rs"}), "edit a.rs"),
            ("write_file", json!({"file_path": "a.rs"}), "write a.rs"),
            ("list_files", json!({}), "list ."),
            (
                "shell",
                json!({"command": ["git", "log", "a b"], "workdir": "web"}),
                "(in web) $ git log 'a b'",
            ),
            (
                "shell",
                json!({"command": ["bash", "-lc", "ls | wc"]}),
                "$ ls | wc",
            ),
            (
                "apply_patch",
                json!({"input": "*** Begin Patch\n*** Update File: a.rs\n+x\n*** Add File: b\n+y\n*** Delete File: c\n\
                                 *** Update File: d\n*** Move to: e\n*** End Patch"}),
                "edit a.rs, write b, delete c, move d to e",
            ),
            ("apply_patch", json!({"input": "x"}), "apply a patch"),
            ("update_plan", json!({"steps": []}), "update the plan"),
            (
                "search_files",
                json!({"pattern": "foo", "path": "src"}),
                "search \"foo\" in src",
            ),
            (
                "fetch_url",
                json!({"url": "https://a.b"}),
                "fetch https://a.b",
            ),
            (
                "agent",
                json!({"kind": "reviewer", "prompt": "Look at it.\nAll of it."}),
                "agent reviewer: Look at it. …",
            ),
            (
                "shell",
                json!({"command": "true \u{1b}]0; rm x #\u{7}"}),
                "$ true \\u{1b}]0; rm x #\\u{7}",
            ),
            ("other", json!({"a": 1}), "other {\"a\":1}"),
            ("other", json!({}), "other"),
        ] {
            let title = title(tool, input.as_object().unwrap(), Detail::Brief);
            assert_eq!(title, expected);
        }
    }

    #[test]
    fn a_title_is_one_line_and_in_full_a_command_is_whole() {
        let long = "x".repeat(1_000_000);
        let command = format!("cat <<E\n{long}\nE");
        for (tool, input) in [
            ("shell", json!({"command": command, "cwd": "a\nb"})),
            ("read_file", json!({"file_path": format!("a\n{long}")})),
            (
                "search_files",
                json!({"pattern": format!("a\n{long}"), "glob": "b\nc"}),
            ),
            ("fetch_url", json!({"url": long})),
            ("other\nname", json!({"a": long})),
        ] {
            let title = title(tool, input.as_object().unwrap(), Detail::Brief);
            assert!(title.chars().count() <= TITLE + 1, "{tool}");
            assert!(!title.contains('\n'), "{tool}");
        }
        let input = json!({"command": command});
        let title = title("shell", input.as_object().unwrap(), Detail::Full);
        assert_eq!(title, format!("$ cat <<E\n> {long}\n> E"));
    }
}
