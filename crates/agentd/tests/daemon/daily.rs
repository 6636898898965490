//! Daily work in the default sandbox with the real programs; a test whose program is not installed is skipped.
//! Registries are on loopback. The home is the user's own and is not changed.

mod serve;
mod services;

use crate::sandbox::{run, tool};
use crate::test_daemon::{TestDaemon, until};
use agentd_core::event::Kind;
use agentd_core::spec::{AgentSpec, Network, Sandbox};
use serde_json::{Value, json};
use serve::{Files, Registry};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A daemon for an agent that works in the sandbox with these programs. None if this machine does not support it; then
/// the reason is printed.
fn empty(programs: &[&str]) -> Option<TestDaemon> {
    if let Err(missing) = agentd_sandbox::support().namespaces {
        println!("skipped: {missing}");
        return None;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for program in programs {
        if !dirs.iter().any(|dir| dir.join(program).is_file()) {
            println!("skipped: {program} is not installed");
            return None;
        }
    }
    let daemon = TestDaemon::new();
    // Tool chains and caches are where the user of this machine has them.
    for name in ["HOME", "RUSTUP_HOME"] {
        if let Ok(value) = std::env::var(name) {
            daemon.caller_env(name, &value);
        }
    }
    Some(daemon)
}

fn daily(programs: &[&str], change: impl FnOnce(&mut AgentSpec)) -> Option<TestDaemon> {
    let daemon = empty(programs)?;
    create(&daemon, change);
    Some(daemon)
}

fn create(daemon: &TestDaemon, change: impl FnOnce(&mut AgentSpec)) {
    let mut spec = daemon.spec();
    spec.sandbox = Some(Sandbox::WorkspaceWrite);
    change(&mut spec);
    daemon.create_with("coder", spec);
}

/// Runs a script, of which every line must succeed.
#[track_caller]
fn ok(daemon: &TestDaemon, script: &str) -> String {
    let said = run(daemon, &format!("set -e\n{script}"));
    assert!(!said.contains("exit code"), "{script}\n{said}");
    said
}

/// Leaves a command running in the background; the id of its task.
fn background(daemon: &TestDaemon, command: &str) -> String {
    let call = json!({ "command": command, "run_in_background": true });
    let said = tool(daemon, "shell", &call);
    let id = said.strip_prefix("Started task ").unwrap();
    id.split_whitespace().next().unwrap().to_owned()
}

/// Runs a program outside of the sandbox.
#[track_caller]
fn outside(dir: &Path, program: &str, args: &[&str]) {
    let mut command = Command::new(program);
    let command = command.args(args).current_dir(dir);
    let out = command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(out.status.success(), "{program} {args:?}: {out:?}");
}

fn write(dir: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn repository(dir: &Path) {
    outside(dir, "git", &["init", "-q", "-b", "main"]);
    for (name, value) in [
        ("user.name", "a"),
        ("user.email", "a@b.c"),
        ("commit.gpgsign", "false"),
        ("core.hooksPath", ".git/hooks"),
    ] {
        outside(dir, "git", &["config", name, value]);
    }
    write(dir, &[("file", "one\n")]);
    outside(dir, "git", &["add", "file"]);
    outside(dir, "git", &["commit", "-q", "-m", "one"]);
}

const GIT: &str = "git switch -c feature
    echo two >> file; git add file; git commit -m two
    echo draft >> file; git stash; git diff --exit-code; git stash pop; git checkout file
    git switch -; git branch other; git switch other
    echo new > new; git add new; git commit -m other
    git rebase feature
    git switch -; git merge --no-edit other
    git tag v1; git gc --quiet; git fsck
    git log --oneline";

#[test]
fn git_commits_branches_stashes_rebases_and_merges() {
    let Some(daemon) = empty(&["git"]) else {
        return;
    };
    repository(&daemon.work());
    create(&daemon, |_| {});
    let said = ok(&daemon, GIT);
    for message in ["one", "two", "other"] {
        assert!(said.contains(message), "{said}");
    }
    let said = ok(
        &daemon,
        "git worktree add tree -b in-tree\ncd tree; echo x > x; git add x; git commit -m three\n\
         git log -1 --format=%s; cd ..; git worktree remove tree; git worktree list",
    );
    assert!(said.contains("\nthree\n"), "{said}");
    outside(&daemon.work(), "git", &["fsck"]);
}

#[test]
fn git_works_in_a_linked_work_tree() {
    let Some(daemon) = empty(&["git"]) else {
        return;
    };
    let main = daemon.root().join("main");
    fs::create_dir(&main).unwrap();
    repository(&main);
    let linked = daemon.root().join("linked");
    let path = linked.display().to_string();
    outside(
        &main,
        "git",
        &["worktree", "add", "-q", &path, "-b", "linked"],
    );
    create(&daemon, |spec| spec.cwd = Some(path.clone()));
    assert!(ok(&daemon, GIT).contains("two"));
    outside(&main, "git", &["fsck"]);
}

/// What `git config` says in the work tree, outside of the sandbox.
fn setting(daemon: &TestDaemon, key: &str) -> String {
    let mut command = Command::new("git");
    let command = command.args(["config", "--local", "--get", key]);
    let out = command.current_dir(daemon.work()).output().unwrap();
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

/// A change to the repository's configuration could make the user's own git run a program.
#[test]
fn git_config_changes_nothing_that_is_there() {
    let Some(daemon) = empty(&["git"]) else {
        return;
    };
    repository(&daemon.work());
    create(&daemon, |_| {});
    let said = ok(
        &daemon,
        "git config user.name b; git config core.pager evil; git config user.name",
    );
    assert!(said.contains("b\n"), "{said}");
    assert!(
        said.contains("Not stored in the repository's configuration: user.name, core.pager."),
        "{said}"
    );
    assert_eq!(setting(&daemon, "user.name"), "a");
    assert_eq!(setting(&daemon, "core.pager"), "");
}

#[test]
fn git_adds_a_remote_pushes_to_it_and_sets_the_upstream() {
    let Some(daemon) = empty(&["git"]) else {
        return;
    };
    repository(&daemon.work());
    let remote = daemon.root().join("remote.git");
    let path = remote.display().to_string();
    outside(&daemon.root(), "git", &["init", "-q", "--bare", &path]);
    create(&daemon, |spec| spec.writable = vec![path.clone()]);
    ok(&daemon, &format!("git remote add origin {path}"));
    ok(&daemon, "git push -q -u origin main; git fetch -q");
    assert_eq!(setting(&daemon, "remote.origin.url"), path);
    assert_eq!(setting(&daemon, "branch.main.remote"), "origin");
    outside(&daemon.work(), "git", &["fetch"]);
}

#[test]
fn git_adds_a_submodule() {
    let Some(daemon) = empty(&["git"]) else {
        return;
    };
    repository(&daemon.work());
    let other = daemon.root().join("other");
    fs::create_dir(&other).unwrap();
    repository(&other);
    let path = other.display().to_string();
    create(&daemon, |spec| spec.readable = vec![path.clone()]);
    let add =
        format!("git -c protocol.file.allow=always submodule add {path} sub; git commit -qm sub");
    ok(&daemon, &add);
    ok(&daemon, "cd sub; echo x > x; git add x; git commit -qm x");
    assert_eq!(setting(&daemon, "submodule.sub.url"), path);
    outside(&daemon.work(), "git", &["submodule", "status"]);
}

#[test]
fn make_and_a_compiler_build_and_run() {
    let Some(daemon) = daily(&["make", "cc"], |_| {}) else {
        return;
    };
    let makefile =
        "all: hello\n\t./hello\nhello: hello.o part.o\n\tcc -o $@ $^\n%.o: %.c\n\tcc -c -o $@ $<\n";
    let main =
        "#include <stdio.h>\nconst char *part(void);\nint main(void) { puts(part()); return 0; }\n";
    let part = "const char *part(void) { return \"compiled\"; }\n";
    write(
        &daemon.work(),
        &[("Makefile", makefile), ("hello.c", main), ("part.c", part)],
    );
    assert!(ok(&daemon, "make -j2").contains("compiled"));
    assert!(ok(&daemon, "touch part.c && make").contains("compiled"));
}

const CRATE: &str = "agentd-daily-part";

/// A registry with one crate, as `cargo publish` would make it.
fn crates(root: &Path) -> Registry {
    let dir = format!("{CRATE}-1.2.3");
    write(
        &root.join("crate"),
        &[
            (
                &format!("{dir}/Cargo.toml"),
                &format!(
                    "[package]\nname = \"{CRATE}\"\nversion = \"1.2.3\"\nedition = \"2021\"\n"
                ),
            ),
            (
                &format!("{dir}/src/lib.rs"),
                "pub fn part() -> u32 { 41 }\n",
            ),
        ],
    );
    outside(&root.join("crate"), "tar", &["czf", "part.crate", &dir]);
    let tar = fs::read(root.join("crate/part.crate")).unwrap();
    let sum = Sha256::digest(&tar);
    let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    let entry = json!({
        "name": CRATE, "vers": "1.2.3", "deps": [], "cksum": sum, "features": {}, "yanked": false,
    });
    Registry::start(|url| {
        let config = json!({ "dl": format!("{url}/dl") });
        Files::from([
            ("/index/config.json".to_owned(), config.to_string().into()),
            (
                format!("/index/{}/{}/{CRATE}", &CRATE[..2], &CRATE[2..4]),
                entry.to_string().into(),
            ),
            (format!("/dl/{CRATE}/1.2.3/download"), tar),
        ])
    })
}

/// Whether the user's own directory has something of this name in it, three levels deep.
fn has_named(dir: &Path, part: &str, depth: usize) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let name = entry.file_name();
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        name.to_string_lossy().contains(part)
            || (is_dir && depth > 1 && has_named(&entry.path(), part, depth - 1))
    })
}

#[test]
fn cargo_builds_and_tests_with_a_crate_from_a_registry_and_without_a_network() {
    let Some(daemon) = daily(&["cargo", "cc", "tar"], |_| {}) else {
        return;
    };
    let registry = crates(&daemon.root());
    let config = format!(
        "[registries.loop]\nindex = \"sparse+{}/index/\"\n",
        registry.url()
    );
    let manifest = format!(
        "[package]\nname = \"daily\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\n\
         {CRATE} = {{ version = \"1\", registry = \"loop\" }}\n"
    );
    let main = "fn main() { println!(\"built {}\", agentd_daily_part::part() + 1); }\n\n\
                #[test]\nfn counts() { assert_eq!(agentd_daily_part::part(), 41); }\n";
    write(
        &daemon.work(),
        &[
            (".cargo/config.toml", &config),
            ("Cargo.toml", &manifest),
            ("src/main.rs", main),
        ],
    );
    assert!(ok(&daemon, "cargo run").contains("built 42"));
    assert!(ok(&daemon, "cargo test").contains("test counts ... ok"));
    // The next call has the cache of the one before it.
    assert!(ok(&daemon, "rm -rf target Cargo.lock && cargo run").contains("built 42"));
    assert_eq!(registry.count("download"), 1);
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    assert!(!has_named(&home.join(".cargo/registry"), CRATE, 3));
    let set = daemon.cli(&["set", "coder", "network=off"]);
    assert!(set.status.success(), "{set:?}");
    let said = ok(&daemon, "rm -rf target && cargo run --offline");
    assert!(said.contains("built 42"), "{said}");
    let said = run(
        &daemon,
        "rm -f Cargo.lock && CARGO_NET_RETRY=0 cargo update",
    );
    assert!(said.contains("Denied: the network (off)."), "{said}");
    assert_eq!(registry.count("download"), 1);
}

const PACKAGE: &str = "agentd-daily-part";

#[test]
fn npm_installs_from_a_registry_and_node_uses_it() {
    let Some(daemon) = daily(&["npm", "node", "tar"], |_| {}) else {
        return;
    };
    let manifest = json!({ "name": PACKAGE, "version": "1.2.3", "main": "part.js" });
    let made = daemon.root().join("package-made");
    write(
        &made,
        &[
            ("package/package.json", &manifest.to_string()),
            ("package/part.js", "exports.part = () => 41;\n"),
        ],
    );
    outside(&made, "tar", &["czf", "part.tgz", "package"]);
    let tar = fs::read(made.join("part.tgz")).unwrap();
    let registry = Registry::start(|url| {
        let tarball = format!("{url}/{PACKAGE}/-/part.tgz");
        let version = json!({
            "name": PACKAGE, "version": "1.2.3", "main": "part.js", "dist": { "tarball": tarball },
        });
        let packument = json!({
            "name": PACKAGE, "dist-tags": { "latest": "1.2.3" }, "versions": { "1.2.3": version },
        });
        Files::from([
            (format!("/{PACKAGE}"), packument.to_string().into()),
            (format!("/{PACKAGE}/-/part.tgz"), tar),
        ])
    });
    let package = json!({ "name": "daily", "version": "1.0.0", "private": true, "scripts": {
        "start": format!("node -e \"console.log('ran', require('{PACKAGE}').part() + 1)\""),
    }});
    write(&daemon.work(), &[("package.json", &package.to_string())]);
    let install = format!(
        "npm install --no-audit --no-fund --registry {} {PACKAGE}",
        registry.url()
    );
    ok(&daemon, &install);
    assert!(ok(&daemon, "npm start").contains("ran 42"));
    // From the agent's own cache.
    let again = format!("rm -rf node_modules && {install} --prefer-offline && npm start");
    assert!(ok(&daemon, &again).contains("ran 42"));
    assert_eq!(registry.count("part.tgz"), 1);
}

/// Writes a wheel, which is a zip file.
const WHEEL: &str = "import zipfile
with zipfile.ZipFile('agentd_daily_part-1.2.3-py3-none-any.whl', 'w') as wheel:
    info = 'agentd_daily_part-1.2.3.dist-info/'
    wheel.writestr('agentd_daily_part.py', 'def part(): return 41\\n')
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: agentd-daily-part\\nVersion: 1.2.3\\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + 'RECORD', '')
";

#[test]
fn pip_installs_from_an_index_into_a_virtual_environment() {
    let Some(daemon) = daily(&["python3"], |_| {}) else {
        return;
    };
    let mut python = Command::new("python3");
    let venv = python.args(["-c", "import ensurepip, venv"]).status();
    if !venv.unwrap().success() {
        println!("skipped: python3 has no venv");
        return;
    }
    let name = "agentd_daily_part-1.2.3-py3-none-any.whl";
    outside(&daemon.root(), "python3", &["-c", WHEEL]);
    let wheel = fs::read(daemon.root().join(name)).unwrap();
    let registry = Registry::start(|url| {
        let page = format!("<!DOCTYPE html><a href=\"{url}/files/{name}\">{name}</a>");
        Files::from([
            (format!("/simple/{PACKAGE}/"), page.into()),
            (format!("/files/{name}"), wheel),
        ])
    });
    ok(&daemon, "python3 -m venv .venv");
    let install = format!(
        ".venv/bin/pip install --disable-pip-version-check --retries 0 --index-url {}/simple {PACKAGE}",
        registry.url()
    );
    let said = ok(&daemon, &install);
    assert!(!said.contains("WARNING"), "{said}");
    let used = ".venv/bin/python -c 'import agentd_daily_part as d; print(\"ran\", d.part() + 1)'";
    assert!(ok(&daemon, used).contains("ran 42"));
}

#[test]
fn python_and_node_keep_files_in_the_work_tree_in_tmp_and_in_the_home() {
    let Some(daemon) = daily(&["python3", "node"], |_| {}) else {
        return;
    };
    let places = ["out/mine", "/tmp/agentd-daily/mine", "~/.agentd-daily/mine"];
    let python = "import os, sys\nfor place in sys.argv[1:]:\n    path = os.path.expanduser(place)\n    \
                  os.makedirs(os.path.dirname(path), exist_ok=True)\n    open(path, 'a').write('python ')\n";
    let node = "const fs = require('fs');\nfor (const place of process.argv.slice(2)) {\n  \
                const path = place.replace('~', require('os').homedir());\n  \
                fs.appendFileSync(path, 'node');\n}\n";
    write(&daemon.work(), &[("w.py", python), ("w.js", node)]);
    let all = places.map(|place| format!("'{place}'")).join(" ");
    ok(&daemon, &format!("python3 w.py {all}"));
    ok(&daemon, &format!("node w.js {all}"));
    let said = ok(&daemon, &format!("cat {}", places.join(" ")));
    assert_eq!(said.matches("python node").count(), 3, "{said}");
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    assert!(!home.join(".agentd-daily").exists());
    assert!(!Path::new("/tmp/agentd-daily").exists());
}

/// The response of a server on loopback to a user or a browser.
fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = format!("GET {path} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

#[test]
fn a_dev_server_is_reached_by_the_next_call_and_by_the_user() {
    let Some(daemon) = daily(&["python3"], |_| {}) else {
        return;
    };
    write(&daemon.work(), &[("page/index.html", "the page")]);
    let command =
        "exec python3 -u -m http.server --bind 127.0.0.1 --directory page 0 > server.log 2>&1";
    let task = background(&daemon, command);
    let port: u16 = until("the server", || {
        let log = fs::read_to_string(daemon.work().join("server.log")).ok()?;
        let rest = log.split_once(" port ")?.1;
        rest.split_whitespace().next()?.parse().ok()
    });
    let url = format!("http://127.0.0.1:{port}/");
    let read = format!(
        "python3 -c 'import urllib.request as r; print(r.urlopen(\"{url}\").read().decode())'"
    );
    assert!(ok(&daemon, &read).contains("the page"));
    assert!(get(port, "/").contains("the page"));
    tool(&daemon, "task_stop", &json!({ "task": task }));
    until("the end of the server", || {
        TcpStream::connect(("127.0.0.1", port)).err()
    });
}

#[test]
fn without_a_network_a_command_still_has_a_loopback_of_its_own() {
    let Some(daemon) = daily(&["python3"], |spec| spec.network = Some(Network::Off)) else {
        return;
    };
    let program = "import http.server, threading, urllib.request\n\
                   server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n\
                   threading.Thread(target=server.serve_forever, daemon=True).start()\n\
                   print(urllib.request.urlopen(f'http://127.0.0.1:{server.server_port}/page').read())\n";
    write(&daemon.work(), &[("s.py", program), ("page", "served")]);
    assert!(ok(&daemon, "python3 s.py").contains("served"));
}

/// A home with a key in it, instead of the user's own.
fn with_a_home(daemon: &TestDaemon) -> PathBuf {
    let home = daemon.root().join("user");
    write(&home, &[(".ssh/id", CANARY), ("notes", CANARY)]);
    daemon.caller_env("HOME", &home.display().to_string());
    home
}

const CANARY: &str = "canary-52d0";

#[test]
fn the_users_caches_and_tool_chains_are_seen_and_stay_as_they_are() {
    let Some(daemon) = empty(&[]) else { return };
    let home = with_a_home(&daemon);
    let rustup = daemon.root().join("rustup");
    write(
        &home,
        &[
            ("go/pkg/mod/module", "of the user"),
            (".m2/repository/part", "of the user"),
            (".m2/settings.xml", CANARY),
            (".local/share/pipx/venvs/tool", "of the user"),
        ],
    );
    write(&rustup, &[("toolchains/stable", "of the user")]);
    daemon.caller_env("RUSTUP_HOME", &rustup.display().to_string());
    create(&daemon, |_| {});
    let said = ok(
        &daemon,
        "cat ~/go/pkg/mod/module ~/.m2/repository/part ~/.local/share/pipx/venvs/tool $RUSTUP_HOME/toolchains/stable\n\
         echo mine > ~/go/pkg/mod/module; mkdir -p ~/.local/share/other; echo mine > ~/.local/share/other/mine",
    );
    assert_eq!(said.matches("of the user").count(), 4, "{said}");
    let said = ok(&daemon, "cat ~/go/pkg/mod/module ~/.local/share/other/mine");
    assert_eq!(said.matches("mine").count(), 2, "{said}");
    let module = fs::read_to_string(home.join("go/pkg/mod/module")).unwrap();
    assert_eq!(module, "of the user");
    assert!(!home.join(".local/share/other").exists());
    for denied in ["cat ~/.m2/settings.xml", "echo x > $RUSTUP_HOME/x"] {
        let said = run(&daemon, denied);
        assert!(
            said.contains("[sandbox] Denied:") && !said.contains(CANARY),
            "{said}"
        );
    }
}

/// A variable that contains the path of the home, in any form, makes nothing visible.
#[test]
fn tool_chains_around_the_home_are_not_shown() {
    let Some(daemon) = empty(&[]) else { return };
    let home = with_a_home(&daemon);
    write(&home, &[("toolchains/stable", CANARY)]);
    let link = daemon.root().join("link");
    std::os::unix::fs::symlink(&home, &link).unwrap();
    daemon.caller_env("HOME", &link.display().to_string());
    daemon.caller_env("RUSTUP_HOME", &home.display().to_string());
    create(&daemon, |_| {});
    let said = run(&daemon, "cat ~/notes ~/toolchains/stable");
    assert!(
        said.contains("(not visible)") && !said.contains(CANARY),
        "{said}"
    );
}

#[test]
fn a_denied_command_says_what_was_denied_and_how_to_ask() {
    let Some(daemon) = empty(&[]) else { return };
    let home = with_a_home(&daemon);
    create(&daemon, |_| {});
    let work = daemon.work().display().to_string();
    let writes = format!("Commands can write only to {work}, /tmp and a private home directory.");
    let ask =
        "tell the user what it needs and why; the user can change the agent's settings: `writable`";
    for (command, denied) in [
        (
            "echo x > /usr/x".to_owned(),
            "/usr/x (read-only)".to_owned(),
        ),
        ("touch /etc/x".to_owned(), "/etc/x (read-only)".to_owned()),
        (
            "cat ~/.ssh/id".to_owned(),
            format!("{}/.ssh/id (not visible)", home.display()),
        ),
        (
            format!("cat {}/notes", home.display()),
            format!("{}/notes (not visible)", home.display()),
        ),
    ] {
        let said = run(&daemon, &command);
        assert!(said.contains(&format!("Denied: {denied}.")), "{said}");
        assert!(said.contains(&writes) && said.contains(ask), "{said}");
        assert!(!said.contains(CANARY), "{said}");
    }
    // Errors that have nothing to do with it stay as they are, and so does a command that succeeds.
    for command in ["cat nothing", "false", "ls ~/.ssh; true"] {
        assert!(!run(&daemon, command).contains("[sandbox]"), "{command}");
    }
}

/// The working directory of a command must be visible to commands: it may be in their own `/tmp`, but not in a hidden
/// directory.
#[test]
fn a_command_runs_in_a_directory_of_its_own_and_in_no_hidden_one() {
    let Some(daemon) = empty(&[]) else { return };
    create(&daemon, |_| {});
    ok(&daemon, "mkdir -p /tmp/agentd-daily-cwd");
    let own = json!({ "command": "pwd", "cwd": "/tmp/agentd-daily-cwd" });
    assert_eq!(tool(&daemon, "shell", &own), "/tmp/agentd-daily-cwd\n");
    let path = "/srv/agentd-daily-hidden";
    let said = tool(&daemon, "shell", &json!({ "command": "pwd", "cwd": path }));
    assert!(said.contains("nothing was run"), "{said}");
    assert!(
        said.contains(&format!("Denied: {path} (not visible).")),
        "{said}"
    );
}

#[test]
fn a_denied_file_tool_says_the_same() {
    let Some(daemon) = empty(&[]) else { return };
    let home = with_a_home(&daemon);
    create(&daemon, |_| {});
    let key = home.join(".ssh/id").display().to_string();
    let new = "/usr/agentd-new".to_owned();
    let ssh = home.join(".ssh").display().to_string();
    let calls: [(&str, Value, &str); 5] = [
        ("read_file", json!({ "file_path": key }), &key),
        (
            "write_file",
            json!({ "file_path": new, "content": "x" }),
            &new,
        ),
        (
            "edit_file",
            json!({ "file_path": key, "old_string": "c", "new_string": "d" }),
            &key,
        ),
        ("list_files", json!({ "path": ssh }), &ssh),
        ("search_files", json!({ "path": ssh, "pattern": "c" }), &ssh),
    ];
    for (name, arguments, denied) in calls {
        let said = tool(&daemon, name, &arguments);
        assert!(
            said.contains(&format!("Denied: {denied} (")),
            "{name}: {said}"
        );
        assert!(
            said.contains("tell the user what it needs and why"),
            "{name}: {said}"
        );
        assert!(!said.contains(CANARY), "{name}: {said}");
    }
}

#[test]
fn a_denied_network_says_so() {
    let Some(daemon) = daily(&["python3"], |spec| spec.network = Some(Network::Off)) else {
        return;
    };
    let registry = Registry::start(|_| Files::new());
    let command = format!(
        "python3 -c 'import urllib.request as r; r.urlopen(\"{}\")'",
        registry.url()
    );
    let said = run(&daemon, &command);
    assert!(said.contains("Denied: the network (off)."), "{said}");
    assert!(said.contains("`network: on`."), "{said}");
    let task = background(&daemon, &command);
    daemon.until_kind("coder", Kind::TaskEnded);
    let said = tool(&daemon, "task_output", &json!({ "task": task }));
    assert!(said.contains("Denied: the network (off)."), "{said}");
    assert_eq!(registry.count(""), 0);
}
