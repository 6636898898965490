//! Another user of the machine, with a real second uid. Attacks that only the kernel's separation of users stops have a
//! control in which the user's own uid tries the same.

use super::attack::{Attack, Evidence, Needs, Theme};
use super::keys::MEMORY;
use super::layers::Mode;
use super::testbed::Testbed;
use crate::lab::testbed::{Result, Stuck};
use agentd_core::link::VERSION;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};

pub const THEME: Theme = Theme {
    name: "other user",
    is_about_sandbox: false,
    attacks: ATTACKS,
};

pub const STRANGER: u32 = 54_322;

fn stranger(testbed: &Testbed, script: &str) -> Command {
    let mut command = testbed.command("timeout");
    command
        .args(["-k", "1", "8", "bash"])
        .env_remove("AGENTD_LAB")
        .env("STATE", testbed.state())
        .env("DAEMON", testbed.daemon_pid().to_string())
        .args(["-c", script])
        .current_dir("/")
        .stderr(Stdio::null())
        .uid(STRANGER)
        .gid(STRANGER);
    command
}

fn runs(testbed: &Testbed, script: &str) -> Result<Output> {
    Ok(stranger(testbed, script).output()?)
}

/// As the other user; with injected bugs as the user, since only the kernel separates the two.
fn across_users(testbed: &Testbed, script: &str) -> Result<Output> {
    let mut command = stranger(testbed, script);
    if testbed.mode != Mode::Defended {
        command.uid(rustix::process::geteuid().as_raw()).gid(0);
    }
    Ok(command.output()?)
}

fn found(output: &Output, word: &str) -> Evidence {
    let said = String::from_utf8_lossy(&output.stdout);
    said.contains(word)
        .then(|| format!("another user saw {word}"))
}

const ATTACKS: &[Attack] = &[
    Attack::new("user-journal", "the journal", |testbed| {
        testbed.victim()?;
        let out = runs(testbed, "cat \"$STATE\"/journal.db*")?;
        Ok(found(&out, &testbed.words.victim))
    })
    .needs(Needs::Root),
    Attack::new("user-api", "the daemon's socket", |testbed| {
        testbed.victim()?;
        let script = "python3 - <<'PY'\nimport os, socket\ns = socket.socket(socket.AF_UNIX)\n\
             s.connect(os.environ['STATE'] + '/run/api.sock')\ns.settimeout(1)\n\
             s.sendall(b'GET /v1/agents HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n')\n\
             while True:\n got = s.recv(65536)\n if not got: break\n print(got.decode(errors='replace'))\nPY\n";
        let out = runs(testbed, script)?;
        Ok(found(&out, "victim-"))
    })
    .needs(Needs::Root),
    Attack::new("user-approve", "`agentd approve` by another user", |testbed| {
        let victim = testbed.victim()?;
        let script = format!(
            "python3 - <<'PY'\nimport os, socket\ns = socket.socket(socket.AF_UNIX)\n\
             s.connect(os.environ['STATE'] + '/run/api.sock')\ns.settimeout(1)\nbody = b'{{}}'\n\
             s.sendall(b'POST /v1/agents/{}/approvals/{}/approve HTTP/1.1\\r\\nhost: x\\r\\ncontent-type: application/json\\r\\n\
             content-length: %d\\r\\n\\r\\n' % len(body) + body)\nprint(s.recv(500))\nPY\n",
            victim.name, victim.approval
        );
        runs(testbed, &script)?;
        Ok(testbed.touched(&victim))
    })
    .needs(Needs::Root),
    Attack::new("user-link", "the link, for the keys of an agent", |testbed| {
        let id = super::keys::sleeper(testbed)?;
        let script = format!(
            "python3 - <<'PY'\nimport json, os, socket\ns = socket.socket(socket.AF_UNIX)\ns.settimeout(1)\n\
             s.connect(os.environ['STATE'] + '/run/link.sock')\n\
             s.sendall(json.dumps({{'say': 'hello', 'v': {VERSION}, 'agent': '{id}', 'runtime': \
             '09090909-0909-0909-0909-090909090909', 'secret': '', 'seen': None, 'env': {{}}}}).encode() + b'\\0')\n\
             print(s.recv(1 << 20).decode(errors='replace'))\nPY\n"
        );
        let out = runs(testbed, &script)?;
        Ok(found(&out, &testbed.words.key))
    })
    .needs(Needs::Root)
    .alone(),
    Attack::new("user-tool-socket", "the socket of an agent's tools", |testbed| {
        testbed.victim()?;
        testbed.turn("hostile", "do: say ready")?;
        let script = "for s in \"$STATE\"/run/a/*/s; do python3 - \"$s\" <<'PY'\nimport socket, sys\n\
             s = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\ns.settimeout(1)\n\
             s.sendall(b'GET /v1/agents/hostile HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n')\n\
             print(s.recv(65536).decode(errors='replace'))\nPY\ndone";
        let out = runs(testbed, script)?;
        Ok(found(&out, "\"name\":\"hostile\"").or_else(|| found(&out, "HTTP/1.1 200")))
    })
    .needs(Needs::Root),
    Attack::new("user-environ", "/proc/PID/environ of daemon, runtimes and commands", |testbed| {
        testbed.long_command()?;
        let script = "cat /proc/[0-9]*/environ";
        let out = across_users(testbed, script)?;
        Ok(found(&out, &testbed.words.key))
    })
    .needs(Needs::Root),
    Attack::new("user-memory", "/proc/PID/mem of the daemon", |testbed| {
        testbed.agent("hostile")?;
        let script = format!("python3 - $DAEMON <<'PY'{MEMORY}PY\n");
        let out = across_users(testbed, &script)?;
        Ok(found(&out, &testbed.words.key))
    })
    .needs(Needs::Root),
    Attack::new("user-ptrace", "a debugger on the daemon", |testbed| {
        let script = "python3 -c \"import ctypes,os; print('SEIZED' if ctypes.CDLL(None).ptrace(0x4206, \
             int(os.environ['DAEMON']), 0, 0) == 0 else 'no')\"";
        let out = across_users(testbed, script)?;
        Ok(found(&out, "SEIZED"))
    })
    .needs(Needs::Root),
    Attack::new("user-kill", "a signal for the daemon", |testbed| {
        across_users(testbed, "kill -9 $DAEMON")?;
        let wait = std::time::Duration::from_millis(100);
        let ended = testbed.until(wait, "its end", || testbed.daemon_ended().then_some(()));
        Ok(ended.is_ok().then(|| "another user killed the daemon".to_owned()))
    })
    .needs(Needs::Root)
    .alone(),
    Attack::new("user-logs", "the logs and the files of tools", |testbed| {
        testbed.shell("hostile", "echo \"$(echo canary)-told-0123\"; seq 20000")?;
        let out = runs(testbed, "find \"$STATE\" -type f -readable 2>/dev/null")?;
        Ok(found(&out, "journal"))
    })
    .needs(Needs::Root),
    Attack::new("user-socket", "a socket of another user's in place of the daemon's", |testbed| {
        let home = testbed.root.join("open");
        fs::create_dir_all(home.join("run"))?;
        for dir in [home.clone(), home.join("run")] {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o777))?;
        }
        let script = format!(
            "python3 -c \"import socket\ns=socket.socket(socket.AF_UNIX)\ns.bind('{0}/run/api.sock')\n\
             import os; os.chmod('{0}/run/api.sock', 0o777)\ns.listen()\nprint('up',flush=True)\n\
             s.settimeout(3)\nwhile True:\n c,_=s.accept()\n c.settimeout(1)\n try: print(c.recv(65536),flush=True)\n except OSError: pass\n \
             c.close()\"",
            home.display()
        );
        let mut child = stranger(testbed, &script).stdout(Stdio::piped()).spawn()?;
        let Some(out) = child.stdout.take() else {
            return Err(Stuck::Wrong("no output".to_owned()));
        };
        let mut lines = BufReader::new(out).lines();
        let _up = lines.next();
        let mut command = testbed.program.command();
        command.envs(testbed.env()).env("AGENTD_HOME", &home);
        // It gives up by itself without an answer.
        let mut sender = command
            .args(["send", "coder", "hello"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let wait = std::time::Duration::from_millis(1500);
        let _ended = testbed.until(wait, "the command", || sender.try_wait().ok().flatten());
        let _gone = sender.kill();
        let _gone = sender.wait();
        // The listener ends by itself.
        let heard: Vec<String> = lines.map_while(std::result::Result::ok).collect();
        let _gone = child.wait();
        let said = heard.iter().any(|line| line.len() > 4);
        Ok(said.then(|| "the client spoke to another user's daemon".to_owned()))
    })
    .needs(Needs::Root)
    .alone(),
    Attack::new("user-hooks", "a hooks file from when the state directory was open to others", |testbed| {
        let planted = testbed.outside().join("planted");
        let hook = serde_json::json!({"type": "command", "command": format!("touch {}", planted.display())});
        let hooks = serde_json::json!({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}});
        let state = testbed.state();
        fs::set_permissions(&state, fs::Permissions::from_mode(0o777))?;
        runs(testbed, &format!("echo '{hooks}' > \"$STATE/hooks.json\""))?;
        fs::set_permissions(&state, fs::Permissions::from_mode(0o700))?;
        testbed.turn("hostile", "do: say hello")?;
        Ok(testbed.made(&planted))
    })
    .needs(Needs::Root)
    .alone(),
    Attack::new("user-state", "a state directory that another user created first", |testbed| {
        let place = testbed.root.join("shared");
        fs::create_dir_all(&place)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777))?;
        let home = place.join("state");
        runs(testbed, &format!("mkdir -m 777 {0}; mkdir -m 777 {0}/run", home.display()))?;
        let mut command = testbed.program.command();
        command.env("AGENTD_HOME", &home).args(["daemon", "run"]);
        let mut daemon = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let wait = std::time::Duration::from_millis(2000);
        let socket = home.join("run/api.sock");
        let is_up = testbed.until(wait, "a daemon", || socket.exists().then_some(()));
        let _gone = daemon.kill();
        let _gone = daemon.wait();
        Ok(is_up.is_ok().then(|| "a daemon keeps its state in another user's directory".to_owned()))
    })
    .needs(Needs::Root)
    .alone(),
];
