//! What the keys do, for `/help`.

/// The keys, as docs/chat.md has them.
pub const KEYS: &[(&str, &str)] = &[
    (
        "Enter",
        "send; while a turn runs, it joins the turn at its next step",
    ),
    (
        "Alt-Enter",
        "while a turn runs: queue the prompt behind it; otherwise a new line",
    ),
    (
        "!COMMAND",
        "run a shell command in the sandbox of the tools; the model sees its output with the next request",
    ),
    ("Ctrl-J", "a new line"),
    (
        "Esc",
        "interrupt the turn or the command; leave a list or a search",
    ),
    (
        "Up, Down",
        "at the first and the last line: earlier prompts",
    ),
    ("Ctrl-R", "search earlier prompts"),
    ("Ctrl-G", "edit the prompt in the editor"),
    ("Tab", "complete @path, /command or the path of /attach"),
    (
        "Shift-Tab",
        "change when you are asked: on-request, always, never",
    ),
    ("Ctrl-O", "go to the call that waits for approval, and back"),
    (
        "y, a, n, v",
        "there: yes, always (a again confirms it), no with a reason, view the whole call",
    ),
    (
        "Ctrl-Q",
        "the queue: e edits, Shift-Up and Shift-Down move, d removes",
    ),
    (
        "Ctrl-T",
        "background tasks and subagents; x ends a task, Tab goes to the prompt",
    ),
    (
        "PageUp, PageDown",
        "scroll; Shift-Up and Shift-Down by single rows",
    ),
    (
        "Ctrl-Home, Ctrl-End",
        "the beginning and the end of the history",
    ),
    ("Ctrl-L", "draw the screen again"),
    ("Ctrl-C", "clear the prompt, or interrupt; twice: leave"),
    (
        "Ctrl-D",
        "leave, if the prompt is empty; the agent continues",
    ),
];
