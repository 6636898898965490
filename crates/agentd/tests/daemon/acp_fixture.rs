//! Agents of the Agent Client Protocol whose program is a script, and what the program did.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::Approval;
use agentd_core::event::Body;
use agentd_core::message::{Block, CallOutcome};
use agentd_core::outer::acp::SESSION_FILE;
use agentd_core::spec::{AgentSpec, Command, Runtime};
use std::fs;
use std::path::PathBuf;

/// The scripted agent, and the name of its file.
const CHILD: &str = include_str!("../fixture/acp-child.sh");
const CHILD_FILE: &str = "acp-child.sh";

/// An agent with this script as its program.
pub fn spec(daemon: &TestDaemon, file: &str, script: &str) -> AgentSpec {
    let path = daemon.work().join(file);
    fs::write(&path, script).unwrap();
    AgentSpec {
        runtime: Runtime::Acp,
        command: Some(Command {
            program: "bash".to_owned(),
            args: vec![path.display().to_string()],
            ..Command::default()
        }),
        provider: None,
        model: None,
        ..daemon.spec()
    }
}

/// The scripted agent; it can load a session, or not.
pub fn scripted(daemon: &TestDaemon, load: &str) -> AgentSpec {
    let mut spec = spec(daemon, CHILD_FILE, CHILD);
    spec.env.insert("ACP_LOAD".to_owned(), load.to_owned());
    spec
}

/// The processes of the programs whose command line is such a one.
pub fn processes(daemon: &TestDaemon, is_own: impl Fn(&str) -> bool) -> Vec<u32> {
    let all = daemon.processes().into_iter();
    let own = all.filter(|(_, arguments)| is_own(arguments) && !arguments.contains("shim"));
    own.map(|(pid, _)| pid).collect()
}

/// The processes of scripted agents.
pub fn children(daemon: &TestDaemon) -> Vec<u32> {
    processes(daemon, |arguments| arguments.contains(CHILD_FILE))
}

/// How each session of the scripted agent began.
pub fn sessions(daemon: &TestDaemon) -> Vec<String> {
    let text = fs::read_to_string(daemon.work().join("sessions")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The file with what is known of the session of the agent's current conversation.
pub fn session_file(daemon: &TestDaemon, name: &str) -> PathBuf {
    let agent = daemon.show(name);
    let own = daemon.home().join("agents").join(agent.id.to_string());
    let conversation = agent.conversation.unwrap().id.to_string();
    own.join("outer").join(conversation).join(SESSION_FILE)
}

/// The call of the agent that waits for the user.
pub fn asked(daemon: &TestDaemon, name: &str) -> Approval {
    until("an approval", || {
        let shown = daemon.show(name);
        shown.approvals.into_iter().next()
    })
}

/// The results of the agent's calls.
pub fn results(daemon: &TestDaemon) -> Vec<(CallOutcome, Vec<Block>)> {
    let events = daemon.events("coder").into_iter();
    let results = events.filter_map(|event| match event.body {
        Body::ResultAdded(result) => Some((result.outcome, result.blocks)),
        _ => None,
    });
    results.collect()
}
