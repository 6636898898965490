//! What other programs call the tools of agentd.

/// The names that other programs use for the same tools. Hooks files that were written for them work here too.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("shell", &["Bash", "run_shell_command"]),
    ("read_file", &["Read"]),
    ("write_file", &["Write"]),
    ("edit_file", &["Edit", "MultiEdit", "replace"]),
    (
        "apply_patch",
        &[
            "Edit",
            "Write",
            "MultiEdit",
            "replace",
            "edit_file",
            "write_file",
        ],
    ),
    ("list_files", &["Glob", "LS", "list_directory"]),
    ("search_files", &["Grep", "search_file_content"]),
    ("fetch_url", &["WebFetch", "web_fetch"]),
    ("task_output", &["BashOutput"]),
    ("task_stop", &["KillShell"]),
];

/// A tool's name, and its names in other programs.
pub fn tool_names(tool: &str) -> impl Iterator<Item = &str> {
    let others = OTHER_NAMES.iter().find(|(name, _)| *name == tool);
    let others = others.into_iter().flat_map(|(_, others)| others.iter());
    std::iter::once(tool).chain(others.copied())
}
