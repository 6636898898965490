//! Daily work with real programs.

use crate::testbed::{Ran, Testbed, testbeds};
use std::fs;
use std::path::PathBuf;

/// Whether this program exists for other users too; otherwise prints that the test is skipped.
fn installed(program: &str) -> bool {
    let dirs = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
    let found = dirs.iter().any(|dir| dir.join(program).exists());
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

fn each(program: &str, run: impl Fn(&Testbed) -> Ran, expected: &str) {
    if !installed(program) {
        return;
    }
    for testbed in testbeds() {
        let ran = run(&testbed);
        assert!(ran.succeeds().output().contains(expected), "{ran:?}");
    }
}

#[test]
fn make_runs() {
    let run = |testbed: &Testbed| {
        fs::write(
            testbed.tree().join("Makefile"),
            "all: a b\na b:\n\techo made > $@\n",
        )
        .unwrap();
        testbed.give_away();
        testbed.shell("make -j2 -s all && cat a b")
    };
    each("make", run, "made\nmade\n");
}

/// Agents of others run each command in a terminal.
#[test]
fn programs_can_open_a_terminal() {
    let program = "import os, pty\n\
                   own, other = pty.openpty()\n\
                   os.write(other, b'typed')\n\
                   print(os.isatty(other), os.read(own, 5))\n\
                   print(os.waitstatus_to_exitcode(pty.spawn(['sh', '-c', 'test -t 1 && echo a tty'])))\n";
    let run = |testbed: &Testbed| {
        fs::write(testbed.tree().join("terminal.py"), program).unwrap();
        testbed.give_away();
        testbed.shell("python3 terminal.py < /dev/null")
    };
    each("python3", run, "True b'typed'\n");
    each("python3", run, "a tty");
}

#[test]
fn python_runs_with_threads_and_processes() {
    let program = "import subprocess, threading, multiprocessing, tempfile, sqlite3\n\
                   thread = threading.Thread(target=lambda: print('thread'))\n\
                   thread.start(); thread.join()\n\
                   print(multiprocessing.Pool(2).map(abs, [-1, -2]))\n\
                   print(subprocess.check_output(['echo', 'child']))\n\
                   sqlite3.connect('db').execute('create table a (b)')\n\
                   tempfile.NamedTemporaryFile()\n";
    let run = |testbed: &Testbed| {
        fs::write(testbed.tree().join("p.py"), program).unwrap();
        testbed.give_away();
        testbed.shell("/usr/bin/python3 p.py")
    };
    each("python3", run, "[1, 2]\nb'child\\n'");
}

#[test]
fn node_runs_a_server_on_loopback() {
    let program = "const http = require('http');\n\
                   const server = http.createServer((_, reply) => reply.end('served'));\n\
                   server.listen(0, '127.0.0.1', () => {\n\
                     http.get({ port: server.address().port, host: '127.0.0.1' }, (reply) => {\n\
                       reply.on('data', (text) => { console.log(String(text)); server.close(); });\n\
                     });\n\
                   });\n";
    let run = |testbed: &Testbed| {
        fs::write(testbed.tree().join("s.js"), program).unwrap();
        testbed.give_away();
        testbed.shell("node s.js")
    };
    each("node", run, "served");
}

#[test]
fn a_c_program_is_compiled_and_run() {
    let run = |testbed: &Testbed| {
        fs::write(
            testbed.tree().join("a.c"),
            "#include <stdio.h>\nint main(){puts(\"compiled\");}\n",
        )
        .unwrap();
        testbed.give_away();
        testbed.shell("gcc -o a a.c && ./a")
    };
    each("gcc", run, "compiled\n");
}

/// The tool chain is in the user's home, as rustup puts it.
#[test]
fn cargo_builds_and_tests() {
    let cargo = PathBuf::from(env!("CARGO"));
    let Some(toolchain) = cargo.parent().and_then(|bin| bin.parent()) else {
        return;
    };
    for mut testbed in testbeds() {
        // The tool chain may be in a home that only its owner can enter.
        if testbed.user.is_some() || !cargo.exists() {
            println!("skipped: the tool chain belongs to another user");
            continue;
        }
        testbed.policy.readable.push(toolchain.to_owned());
        fs::create_dir_all(testbed.tree().join("src")).unwrap();
        fs::write(
            testbed.tree().join("Cargo.toml"),
            "[package]\nname = 'a'\nedition = '2024'\n",
        )
        .unwrap();
        fs::write(
            testbed.tree().join("src/lib.rs"),
            "#[test]\nfn t() { assert_eq!(2, 1 + 1) }\n",
        )
        .unwrap();
        let bin = toolchain.join("bin");
        testbed
            .env
            .insert("PATH".into(), format!("{}:/usr/bin:/bin", bin.display()));
        let ran = testbed.shell("cargo test --offline 2>&1");
        assert!(ran.succeeds().output().contains("test t ... ok"), "{ran:?}");
    }
}
