//! A tool call in one line, as a person would write it.

use serde_json::{Map, Value};

/// The longest part of an argument that is shown.
const MOST: usize = 100;

/// `$ cargo test`, `edit src/lib.rs`, `search "word" in src`.
pub fn title(tool: &str, input: &Map<String, Value>) -> String {
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let path = || text("file_path").or_else(|| text("path")).unwrap_or(".");
    match tool {
        "shell" => {
            let command = first_line(text("command").unwrap_or_default());
            let is_background = input.get("run_in_background") == Some(&Value::Bool(true));
            let aside = if is_background { " &" } else { "" };
            let dir = text("cwd").map(|dir| format!("(in {dir}) "));
            format!("{}$ {command}{aside}", dir.unwrap_or_default())
        }
        "edit_file" => format!("edit {}", path()),
        "write_file" => format!("write {}", path()),
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
            let about = text("description").or_else(|| text("prompt"));
            let about = first_line(about.unwrap_or_default());
            format!("agent{}: {about}", kind.unwrap_or_default())
        }
        "task_output" => format!("output of task {}", text("task").unwrap_or_default()),
        "task_stop" => format!("stop task {}", text("task").unwrap_or_default()),
        "reset_conversation" => "begin a new conversation".to_owned(),
        _ if input.is_empty() => tool.to_owned(),
        _ => {
            let arguments = Value::Object(input.clone()).to_string();
            format!("{tool} {}", shortened(&arguments))
        }
    }
}

fn first_line(text: &str) -> String {
    let text = text.trim();
    match text.split_once('\n') {
        Some((first, _)) => format!("{} …", first.trim_end()),
        None => text.to_owned(),
    }
}

/// The beginning of a long text.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(MOST) {
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
            ("other", json!({"a": 1}), "other {\"a\":1}"),
            ("other", json!({}), "other"),
        ] {
            let title = title(tool, input.as_object().unwrap());
            assert_eq!(title, expected);
        }
    }
}
