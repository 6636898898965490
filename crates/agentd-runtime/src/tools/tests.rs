//! The toolbox as a whole, and the fixture for the tests of the tools.

use super::*;
use agentd_core::id::CallId;
use agentd_core::message::Arguments;
use agentd_core::spec::{ApprovalMode, Decision};
use agentd_process::task::ShimProgram;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Mutex;
use tempfile::TempDir;

/// A working directory with tools.
pub(super) struct Fixture {
    dir: TempDir,
    pub options: ToolboxOptions,
    /// The files whose content the model knows: those that its calls have read or written.
    seen: Mutex<SeenFiles>,
}

impl Fixture {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        let cwd = base.join("work");
        fs::create_dir(&cwd).unwrap();
        let options = ToolboxOptions {
            cwd,
            state: base.join("state"),
            env: Default::default(),
            confined: None,
            rules: Vec::new(),
            approval: ApprovalMode::default(),
            escalated: None,
            services: Default::default(),
            tools: None,
            forms: Default::default(),
            may_reset: false,
            output_bytes: 1000,
            kept_bytes: 64 * 1024 * 1024,
            kept_quota: 1024 * 1024 * 1024,
            file_history_bytes: 256 * 1024 * 1024,
            max_tasks: 2,
            secrets: Secrets::new(["sk-0123456789".to_owned()]),
            shim: ShimProgram::default(),
            subagents: None,
            asking: None,
            mcp: Vec::new(),
            instructions: None,
            lab: None,
            task_limits: Default::default(),
            boot: BootId::from_bytes([7; 16]),
        };
        Self {
            dir,
            options,
            seen: Mutex::default(),
        }
    }

    pub fn rule(mut self, tool: &str, pattern: &str, decision: Decision) -> Self {
        self.options.rules.push(Rule {
            tool: tool.into(),
            pattern: Some(pattern.into()),
            decision,
            needs: Vec::new(),
        });
        self
    }

    pub fn base(&self) -> &Path {
        self.dir.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.options.cwd.join(name)
    }

    /// A file in the working directory.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// A file whose content the model knows.
    pub fn known(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name, &content);
        let hash = hash::of(content.as_ref());
        let seen = contents::seen(&paths::real(&path), hash);
        self.seen.lock().unwrap().extend(&[seen]);
        path
    }

    pub fn seen(&self) -> SeenFiles {
        self.seen.lock().unwrap().clone()
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn toolbox(&self) -> Toolbox {
        Toolbox::new(self.options.clone()).unwrap()
    }

    pub async fn prepare(&self, tool: &str, arguments: Value) -> Prepared {
        let call = call(tool, arguments);
        let toolbox = self.toolbox();
        toolbox
            .prepare(&call, Consent::NotAsked, &self.seen())
            .await
    }

    pub async fn started(&self, tool: &str, arguments: Value) -> StartedCall {
        match self.prepare(tool, arguments).await {
            Prepared::Run(started, _) => StartedCall {
                tool: started.tool,
                task: started.task,
                boot: started.boot,
                change: started.change,
                patched: started.patched,
            },
            other => panic!("{other:?}"),
        }
    }

    /// Prepares and runs a call, unless it is refused.
    pub async fn finish(&self, tool: &str, arguments: Value) -> Finished {
        match self.prepare(tool, arguments.clone()).await {
            Prepared::Run(..) => {
                let started = self.started(tool, arguments.clone()).await;
                self.run(tool, arguments, started).await
            }
            Prepared::Refuse { outcome, blocks } => Finished::new(outcome, blocks),
            Prepared::Ask(_) => panic!("asks"),
        }
    }

    pub async fn run(&self, tool: &str, arguments: Value, started: StartedCall) -> Finished {
        let (_sender, cancelled) = watch::channel(false);
        let call = call(tool, arguments);
        let finished = self.toolbox().run(call, started, cancelled).await;
        self.seen.lock().unwrap().extend(&finished.seen);
        finished
    }

    pub async fn find(&self, tool: &str, arguments: Value, started: &StartedCall) -> CallFact {
        self.toolbox().find(&call(tool, arguments), started).await
    }

    /// The text of a successful result.
    pub async fn ok(&self, tool: &str, arguments: Value) -> String {
        let finished = self.finish(tool, arguments).await;
        assert_eq!(finished.outcome, CallOutcome::Ok, "{finished:?}");
        words(&finished.blocks)
    }

    /// The text of a failed result.
    pub async fn error(&self, tool: &str, arguments: Value) -> String {
        let finished = self.finish(tool, arguments).await;
        assert_eq!(finished.outcome, CallOutcome::Error, "{finished:?}");
        words(&finished.blocks)
    }
}

pub(super) fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: CallId::new("call_1"),
        name: tool.into(),
        arguments: Arguments::parse(&arguments.to_string()),
        signature: None,
    }
}

pub(super) fn words(blocks: &[Block]) -> String {
    let texts = blocks.iter().map(|block| match block {
        Block::Text { text } => text.as_str(),
        other => panic!("{other:?}"),
    });
    texts.collect()
}

#[test]
fn a_spec_may_name_exactly_the_tools_that_there_are() {
    let all = super::all(None, Default::default());
    let names: Vec<&str> = all.iter().map(|tool| tool.name()).collect();
    assert_eq!(names, agentd_core::spec::TOOLS);
}

#[test]
fn the_tools_are_declared_in_a_fixed_order_with_what_they_promise() {
    let mut fixture = Fixture::new();
    let names = |toolbox: &Toolbox| {
        let names = toolbox.declarations().into_iter().map(|tool| tool.name);
        names.collect::<Vec<_>>().join(" ")
    };
    let default = "shell read_file write_file edit_file list_files search_files task_output task_stop update_plan";
    let toolbox = fixture.toolbox();
    assert_eq!(names(&toolbox), default);
    let parallel: Vec<String> = toolbox.parallel().into_iter().collect();
    let expected = ["list_files", "read_file", "search_files", "task_output"];
    assert_eq!(parallel, expected);
    assert_eq!(toolbox.traits("fetch_url"), None);
    for (name, promised) in [
        ("shell", (false, false, true)),
        ("read_file", (true, true, false)),
        ("edit_file", (false, false, true)),
        ("task_stop", (false, true, false)),
        ("update_plan", (false, true, false)),
    ] {
        let traits = toolbox.traits(name).unwrap();
        let traits = (traits.parallel, traits.idempotent, traits.approval);
        assert_eq!(traits, promised, "{name}");
    }
    let wanted = ["fetch_url", "shell", "shell"];
    fixture.options.tools = Some(wanted.map(Into::into).into());
    assert_eq!(names(&fixture.toolbox()), "shell fetch_url");
    fixture.options.tools = Some(Vec::new());
    assert_eq!(names(&fixture.toolbox()), "");
}

#[test]
fn subagents_can_be_started_where_there_are_kinds_or_the_tool_is_named() {
    let has = |fixture: &Fixture| names(&fixture.toolbox().tools).ends_with("agent");
    let mut fixture = Fixture::new();
    fixture.options.subagents = Some(Kinds::default());
    assert!(!has(&fixture));
    fixture.options.tools = Some(vec!["agent".into()]);
    assert!(has(&fixture));
    fixture.options.tools = Some(Vec::new());
    fixture.options.subagents = Some(Kinds(vec![("reviewer".to_owned(), None)]));
    assert!(has(&fixture));
    fixture.options.subagents = None;
    assert!(!has(&fixture));
}

#[test]
fn every_schema_is_of_an_object_that_takes_nothing_else() {
    let mut fixture = Fixture::new();
    fixture.options.may_reset = true;
    fixture.options.tools = Some(
        all(None, Default::default())
            .iter()
            .map(|tool| tool.name().into())
            .collect(),
    );
    let about = Some("Finds faults".to_owned());
    fixture.options.subagents = Some(Kinds(vec![("reviewer".to_owned(), about)]));
    assert_eq!(
        fixture.toolbox().declarations().len(),
        all(None, Default::default()).len()
    );
    for tool in fixture.toolbox().declarations() {
        assert_eq!(tool.parameters["type"], "object", "{}", tool.name);
        assert_eq!(tool.parameters["additionalProperties"], false);
        let known = tool.parameters["properties"].as_object().unwrap();
        for name in tool.parameters["required"].as_array().into_iter().flatten() {
            assert!(known.contains_key(name.as_str().unwrap()));
        }
        assert!(!tool.description.is_empty());
    }
}

#[test]
fn a_wrong_name_of_a_tool_is_an_error_that_names_the_nearest() {
    let mut fixture = Fixture::new();
    fixture.options.tools = Some(vec!["shell".into(), "raed_file".into()]);
    let error = Toolbox::new(fixture.options.clone())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("`raed_file`"), "{error}");
    assert!(error.contains("did you mean `read_file`?"), "{error}");
    fixture.options.tools = Some(vec!["telephone_booth".into()]);
    let error = Toolbox::new(fixture.options.clone())
        .err()
        .unwrap()
        .to_string();
    assert!(!error.contains("did you mean"), "{error}");
    fixture.options.cwd = "here".into();
    assert!(matches!(
        Toolbox::new(fixture.options),
        Err(Error::BadDirectory { .. })
    ));
}

#[test]
fn the_directory_for_state_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Fixture::new();
    fixture.toolbox();
    let mode = fs::metadata(fixture.base().join("state"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
}

#[tokio::test]
async fn a_call_to_an_unknown_tool_names_those_there_are() {
    let fixture = Fixture::new();
    let text = fixture.error("fetch_url", json!({"url": "http://a"})).await;
    assert!(text.contains("Unknown tool `fetch_url`"), "{text}");
    assert!(text.contains("shell, read_file"), "{text}");
    let (_sender, cancelled) = watch::channel(false);
    let started = fixture.started("list_files", json!({})).await;
    let call = call("nothing", json!({}));
    let finished = fixture
        .toolbox()
        .run(call.clone(), started.clone(), cancelled)
        .await;
    assert_eq!(finished.outcome, CallOutcome::Error);
    assert_eq!(
        fixture.toolbox().find(&call, &started).await,
        CallFact::Unknown
    );
}

#[tokio::test]
async fn wrong_arguments_are_told_and_nothing_runs() {
    let fixture = Fixture::new();
    let text = fixture.error("read_file", json!({"file": "a"})).await;
    assert!(text.contains("unknown field `file`"), "{text}");
    let text = fixture.error("shell", json!({"command": 5})).await;
    assert!(text.contains("`command`"), "{text}");
    let mut call = call("shell", json!({}));
    call.arguments = Arguments::Malformed("{".into());
    let seen = fixture.seen();
    let toolbox = fixture.toolbox();
    let prepared = toolbox.prepare(&call, Consent::NotAsked, &seen);
    let prepared = prepared.await;
    assert!(matches!(prepared, Prepared::Refuse { .. }));
}

#[tokio::test]
async fn rules_allow_ask_and_deny() {
    let fixture = Fixture::new()
        .rule("read_file", "secrets/*", Decision::Deny)
        .rule("write_file", "*.lock", Decision::Ask);
    fixture.file("secrets/a", "x");
    fixture.file("b", "x");
    for path in ["secrets/a", "b/../secrets/a", "./secrets//a"] {
        let finished = fixture
            .finish("read_file", json!({"file_path": path}))
            .await;
        assert_eq!(finished.outcome, CallOutcome::Denied, "{path}");
    }
    std::os::unix::fs::symlink("secrets", fixture.path("link")).unwrap();
    let finished = fixture
        .finish("read_file", json!({"file_path": "link/a"}))
        .await;
    assert_eq!(finished.outcome, CallOutcome::Denied);
    fixture.ok("read_file", json!({"file_path": "b"})).await;

    let arguments = json!({"file_path": "a.lock", "content": ""});
    let prepared = fixture.prepare("write_file", arguments.clone()).await;
    assert!(matches!(prepared, Prepared::Ask(_)), "{prepared:?}");
    let call = call("write_file", arguments);
    let seen = fixture.seen();
    let toolbox = fixture.toolbox();
    let prepared = toolbox.prepare(&call, Consent::Given, &seen);
    assert!(matches!(prepared.await, Prepared::Run(..)));
}

#[tokio::test]
async fn a_yes_does_not_beat_a_deny() {
    let fixture = Fixture::new().rule("shell", "rm *", Decision::Deny);
    let call = call("shell", json!({"command": "true; rm -rf x"}));
    let seen = fixture.seen();
    let toolbox = fixture.toolbox();
    let prepared = toolbox.prepare(&call, Consent::Given, &seen);
    let prepared = prepared.await;
    let denied = CallOutcome::Denied;
    assert!(matches!(prepared, Prepared::Refuse { outcome, .. } if outcome == denied));
}

#[tokio::test]
async fn what_changes_something_is_asked_about_where_that_is_the_default() {
    let mut fixture = Fixture::new().rule("shell", "git *", Decision::Allow);
    fixture.options.approval = ApprovalMode::Always;
    fixture.known("a", "x");
    for (tool, arguments, asks) in [
        ("shell", json!({"command": "ls"}), true),
        ("shell", json!({"command": "git status"}), false),
        ("shell", json!({"command": "git status; ls"}), true),
        ("write_file", json!({"file_path": "a", "content": ""}), true),
        (
            "edit_file",
            json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
            true,
        ),
        ("read_file", json!({"file_path": "a"}), false),
        ("list_files", json!({}), false),
    ] {
        let prepared = fixture.prepare(tool, arguments.clone()).await;
        assert_eq!(
            matches!(prepared, Prepared::Ask(_)),
            asks,
            "{tool} {arguments}"
        );
    }
}

#[tokio::test]
async fn a_secret_gets_out_in_no_answer() {
    let fixture = Fixture::new();
    fixture.file("sk-0123456789", "key: sk-0123456789.");
    for (tool, arguments) in [
        ("read_file", json!({"file_path": "sk-0123456789"})),
        ("read_file", json!({"file_path": "not/sk-0123456789"})),
        ("list_files", json!({})),
        ("search_files", json!({"pattern": "key"})),
        (
            "edit_file",
            json!({"file_path": "sk-0123456789", "old_string": "a", "new_string": "b"}),
        ),
        ("shell", json!({"command": "ls", "cwd": "sk-0123456789"})),
    ] {
        let finished = fixture.finish(tool, arguments).await;
        let text = words(&finished.blocks);
        assert!(!text.contains("sk-0123456789"), "{text}");
        assert!(text.contains(MARK), "{text}");
    }
}

#[tokio::test]
async fn a_read_only_call_that_was_cut_off_is_not_done() {
    let mut fixture = Fixture::new();
    fixture.options.may_reset = true;
    fixture.options.tools = Some(
        all(None, Default::default())
            .iter()
            .map(|tool| tool.name().into())
            .collect(),
    );
    let started = StartedCall {
        tool: String::new(),
        task: None,
        boot: None,
        change: None,
        patched: Vec::new(),
    };
    for (tool, arguments) in [
        ("read_file", json!({"file_path": "a"})),
        ("list_files", json!({})),
        ("search_files", json!({"pattern": "a"})),
        ("task_output", json!({"task": "a"})),
        ("task_stop", json!({"task": "a"})),
        ("update_plan", json!({"steps": []})),
        ("fetch_url", json!({"url": "http://a"})),
    ] {
        let fact = fixture.find(tool, arguments, &started).await;
        assert_eq!(fact, CallFact::NotStarted, "{tool}");
    }
    // What a start does not record cannot be told.
    for (tool, arguments) in [
        ("shell", json!({"command": "ls"})),
        ("write_file", json!({"file_path": "a", "content": ""})),
        (
            "edit_file",
            json!({"file_path": "a", "old_string": "", "new_string": ""}),
        ),
        (
            "apply_patch",
            json!({"input": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"}),
        ),
    ] {
        let fact = fixture.find(tool, arguments, &started).await;
        assert_eq!(fact, CallFact::Unknown, "{tool}");
    }
}

#[tokio::test]
async fn a_task_is_named_by_its_id_alone() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.base().join("state/tasks/x")).unwrap();
    let unknown = "018f0000-0000-7000-8000-000000000000";
    for task in ["../..", "x", "", "/etc", unknown] {
        for tool in ["task_output", "task_stop"] {
            let text = fixture.error(tool, json!({"task": task})).await;
            assert!(text.contains("Unknown task"), "{text}");
        }
    }
    assert!(!fixture.base().join("state/tasks").join(unknown).exists());
}
