//! Secrets stay where they belong.

use crate::fixture::Fixture;
use agentd_process::Delivery;
use std::fs;

const SECRET: &str = "sk-0123456789abcdef";

#[test]
fn secrets_are_taken_out_of_the_output() {
    let fixture = Fixture::new();
    let mut order = fixture.script(
        "printf 'a %s b\\n' \"$KEY\"; printf sk-0123456; : >half; \
         while ! [ -e go ]; do sleep 0.01; done; echo 789abcdef. short",
    );
    order.env.insert("KEY".into(), SECRET.into());
    order.redact = vec![SECRET.into(), "short".into()];
    let task = fixture.start(&order);
    fixture.wait_for("half");
    crate::fixture::wait_until("the first line", || {
        fs::read(task.output_path()).is_ok_and(|it| it.ends_with(b"b\n"))
    });
    fs::write(fixture.cwd().join("go"), "").unwrap();
    let exit = fixture.exit(&task);
    let output = fs::read_to_string(task.output_path()).unwrap();
    assert_eq!(
        output,
        "a [redacted by agentd] b\n[redacted by agentd]. short\n"
    );
    assert_eq!(exit.output_bytes, output.len() as u64);
}

#[test]
fn the_order_is_not_to_be_seen_in_the_shim_or_the_dir() {
    let fixture = Fixture::new();
    let mut order = fixture.script(": >ready; sleep 1000");
    order.env.insert("KEY".into(), SECRET.into());
    order.stdin = Some(SECRET.into());
    order.redact = vec![SECRET.into()];
    let task = fixture.start(&order);
    fixture.wait_for("ready");
    for name in ["environ", "cmdline"] {
        let path = format!("/proc/{}/{name}", task.shim().pid);
        // For another user than root it is not even readable, since it cannot be dumped.
        let bytes = fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(SECRET), "{name}: {text}");
        assert!(name == "cmdline" || text.is_empty(), "{name}: {text}");
    }
    for entry in fs::read_dir(fixture.dir()).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains(SECRET), "{}: {text}", path.display());
    }
    assert_eq!(task.kill().unwrap(), Delivery::Sent);
    fixture.exit(&task);
    assert!(!format!("{order:?}").contains(SECRET));
}
