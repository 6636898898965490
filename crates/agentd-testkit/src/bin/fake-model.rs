//! The fake model as a program, for tests that kill all other processes.
//!
//! `agentd-fake-model --port-file PATH [--scenario FILE] [--record FILE] [--stay]` listens on
//! 127.0.0.1, writes its port to PATH, and runs until it is killed or its stdin is closed; with `--stay` until it is
//! killed.

use agentd_testkit::model::{FakeModel, Options, Scenario};
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

struct Order {
    port_file: PathBuf,
    options: Options,
    stay: bool,
}

fn main() -> io::Result<()> {
    let order = order(std::env::args_os().skip(1))?;
    let model = FakeModel::start_with(order.options)?;
    write_whole(&order.port_file, &format!("{}\n", model.address().port()))?;
    if order.stay {
        loop {
            std::thread::park();
        }
    }
    let mut input = io::stdin().lock();
    let mut ignored = [0; 256];
    while input.read(&mut ignored)? > 0 {}
    Ok(())
}

fn order(mut args: impl Iterator<Item = OsString>) -> io::Result<Order> {
    let mut port_file = None;
    let mut options = Options::default();
    let mut stay = false;
    while let Some(arg) = args.next() {
        let name = arg.to_string_lossy().into_owned();
        if name == "--stay" {
            stay = true;
            continue;
        }
        let value = args.next().map(PathBuf::from);
        let value = value.ok_or_else(|| usage(&format!("`{name}` has no value")))?;
        match name.as_str() {
            "--port-file" => port_file = Some(value),
            "--scenario" => options.scenario = Scenario::read(&value)?,
            "--record" => options.record = Some(value),
            _ => return Err(usage(&format!("`{name}` is unknown"))),
        }
    }
    Ok(Order {
        port_file: port_file.ok_or_else(|| usage("`--port-file` is missing"))?,
        options,
        stay,
    })
}

fn usage(why: &str) -> io::Error {
    io::Error::other(format!(
        "{why}; use: agentd-fake-model --port-file PATH [--scenario FILE] [--record FILE] [--stay]"
    ))
}

/// A process that waits for the file sees all of it or nothing.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}
