//! Requests as agents send them, and wrong ones.

use super::*;

fn asked(method: &str, params: Value) -> Result<ClientRequest, String> {
    let asked = client_request(method, params).unwrap();
    let asked = asked.map_err(|refusal| refusal.error().to_string())?;
    assert_eq!(asked.session, "s");
    Ok(asked.request)
}

#[test]
fn files_are_read_in_part_and_written() {
    let read = |line: Option<u64>, limit: Option<u64>| {
        Ok(ClientRequest::File(FileWork::Read {
            path: "/w/a".to_owned(),
            line,
            limit,
        }))
    };
    let params = json!({"sessionId": "s", "path": "/w/a"});
    assert_eq!(asked("fs/read_text_file", params), read(None, None));
    let params = json!({"sessionId": "s", "path": "/w/a", "line": 3, "limit": null});
    assert_eq!(asked("fs/read_text_file", params), read(Some(3), None));
    let params = json!({"sessionId": "s", "path": "/w/a", "line": 3, "limit": 2});
    assert_eq!(asked("fs/read_text_file", params), read(Some(3), Some(2)));
    let params = json!({"sessionId": "s", "path": "/w/a", "content": "text\n"});
    let written = FileWork::Write {
        path: "/w/a".to_owned(),
        content: "text\n".to_owned(),
    };
    assert_eq!(
        asked("fs/write_text_file", params),
        Ok(ClientRequest::File(written))
    );
    assert_eq!(text_answer("a".to_owned()), json!({"content": "a"}));
}

#[test]
fn a_command_without_arguments_is_a_line() {
    let params = json!({"sessionId": "s", "command": "echo a | cat"});
    let Ok(ClientRequest::CreateTerminal(line)) = asked("terminal/create", params) else {
        panic!("no terminal")
    };
    assert_eq!(
        line.command,
        TerminalCommand::Line("echo a | cat".to_owned())
    );
    assert_eq!((line.cwd, line.output_bytes), (None, TERMINAL_BYTES));
    let params = json!({
        "sessionId": "s", "command": "echo", "args": ["a b"], "cwd": "/w", "outputByteLimit": 10,
        "env": [{"name": "A", "value": "1"}],
    });
    let Ok(ClientRequest::CreateTerminal(program)) = asked("terminal/create", params) else {
        panic!("no terminal")
    };
    let args = vec!["a b".to_owned()];
    let command = TerminalCommand::Program {
        program: "echo".to_owned(),
        args,
    };
    assert_eq!(program.command, command);
    assert_eq!(program.env["A"], "1");
    assert_eq!(
        (program.cwd.as_deref(), program.output_bytes),
        (Some("/w"), 10)
    );
}

/// Two dots are part of a name.
#[test]
fn a_name_may_contain_dots() {
    let params = json!({"sessionId": "s", "path": "/w/..a/b..c/..."});
    assert!(asked("fs/read_text_file", params).is_ok());
}

#[test]
fn a_limit_of_output_has_a_limit() {
    let params = json!({"sessionId": "s", "command": "ls", "outputByteLimit": u64::MAX});
    let Ok(ClientRequest::CreateTerminal(new)) = asked("terminal/create", params) else {
        panic!("no terminal")
    };
    assert_eq!(new.output_bytes, TERMINAL_BYTES);
}

#[test]
fn a_wrong_request_is_refused_with_what_is_wrong() {
    let long = "x".repeat(LONGEST_COMMAND);
    for (method, params, why) in [
        ("fs/read_text_file", json!(null), "`sessionId`"),
        ("fs/read_text_file", json!([1]), "`sessionId`"),
        ("fs/read_text_file", json!({"path": "/a"}), "`sessionId`"),
        ("fs/read_text_file", json!({"sessionId": "s"}), "`path`"),
        (
            "fs/read_text_file",
            json!({"sessionId": "s", "path": "a"}),
            "an absolute path",
        ),
        (
            "fs/read_text_file",
            json!({"sessionId": "s", "path": "/a/../b"}),
            "without `..`",
        ),
        (
            "terminal/create",
            json!({"sessionId": "s", "command": "a", "cwd": "/a/.."}),
            "without `..`",
        ),
        (
            "fs/read_text_file",
            json!({"sessionId": "s", "path": "/a", "line": -1}),
            "`line`",
        ),
        (
            "fs/write_text_file",
            json!({"sessionId": "s", "path": "/a", "content": 1}),
            "`content`",
        ),
        (
            "terminal/create",
            json!({"sessionId": "s", "command": " "}),
            "`command` is empty",
        ),
        (
            "terminal/create",
            json!({"sessionId": "s", "command": "a\u{0}b"}),
            "NUL",
        ),
        (
            "terminal/create",
            json!({"sessionId": "s", "command": "a", "args": [1]}),
            "`args`",
        ),
        (
            "terminal/create",
            json!({"sessionId": "s", "command": "a", "args": [long]}),
            "longer than",
        ),
        (
            "terminal/create",
            json!({"sessionId": "s", "command": "a", "cwd": "b"}),
            "`cwd`",
        ),
        (
            "terminal/create",
            json!({"sessionId": "s", "command": "a", "env": [{"name": "A=B", "value": ""}]}),
            "`env`",
        ),
        ("terminal/kill", json!({"sessionId": "s"}), "`terminalId`"),
    ] {
        let error = asked(method, params).unwrap_err();
        assert!(error.contains(why), "{error}");
        assert!(error.contains("-32602"), "{error}");
    }
    assert!(client_request("fs/delete", json!({})).is_none());
}

/// A waiting request holds its id.
#[test]
fn an_id_of_a_terminal_has_a_limit() {
    let kill = |length: usize| {
        let id = "x".repeat(length);
        asked("terminal/kill", json!({"sessionId": "s", "terminalId": id}))
    };
    assert!(kill(LONGEST_TERMINAL_ID).is_ok());
    let error = kill(LONGEST_TERMINAL_ID + 1).unwrap_err();
    assert!(error.contains("`terminalId`"), "{error}");
}

#[test]
fn empty_arguments_and_variables_of_a_command_count() {
    let most = LONGEST_COMMAND / TEXT_BYTES;
    let create = |args: usize, variables: usize| {
        let args = vec![""; args];
        let env = (0..variables).map(|n| json!({"name": format!("{n}"), "value": ""}));
        let env: Vec<Value> = env.collect();
        let params = json!({"sessionId": "s", "command": "a", "args": args, "env": env});
        asked("terminal/create", params)
    };
    // The command itself counts, too.
    assert!(create(most - 2, 0).is_ok());
    for (args, variables) in [(most - 1, 0), (most - 3, 1), (0, most / 2)] {
        let error = create(args, variables).unwrap_err();
        assert!(error.contains("longer than"), "{error}");
    }
}

#[test]
fn an_answer_shows_how_a_command_ended() {
    let output = TerminalOutput {
        text: "a".to_owned(),
        is_truncated: true,
        exit: None,
    };
    let running = json!({"output": "a", "truncated": true, "exitStatus": null});
    assert_eq!(output.clone().answer(), running);
    let exit = TerminalExit {
        code: Some(3),
        signal: None,
    };
    let ended = TerminalOutput {
        exit: Some(exit),
        ..output
    };
    assert_eq!(
        ended.answer()["exitStatus"],
        json!({"exitCode": 3, "signal": null})
    );
    let killed = TerminalExit {
        code: None,
        signal: Some(9),
    };
    assert_eq!(
        killed.answer(),
        json!({"exitCode": null, "signal": "SIGKILL"})
    );
    let missing = Refusal::missing("Resource not found: /a");
    assert_eq!(missing.error()["code"], -32002);
}
