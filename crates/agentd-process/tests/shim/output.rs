//! What a task writes, and how much of it is kept.

use crate::fixture::Fixture;

#[test]
fn both_streams_are_kept_in_order() {
    let fixture = Fixture::new();
    let text = "i=0; while [ $i -lt 200 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done";
    let (exit, output) = fixture.run(&fixture.script(text));
    let expected: String = (0..200).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(output, expected);
    assert_eq!(exit.output_bytes, expected.len() as u64);
    assert_eq!(exit.dropped_bytes, 0);
}

#[test]
fn what_is_too_much_is_counted_and_dropped() {
    let fixture = Fixture::new();
    let mut order = fixture.script("head -c 3000000 /dev/zero | tr '\\0' x; echo end >&2; exit 5");
    order.output_limit_bytes = 1000;
    let (exit, output) = fixture.run(&order);
    assert_eq!(output, "x".repeat(1000));
    assert_eq!(exit.code, Some(5), "it was neither blocked nor broken");
    assert_eq!(exit.output_bytes, 1000);
    assert_eq!(exit.dropped_bytes, 3_000_000 - 1000 + 4);
}

#[test]
fn nothing_is_kept_where_nothing_may_be() {
    let fixture = Fixture::new();
    let mut order = fixture.script("echo hello");
    order.output_limit_bytes = 0;
    let (exit, output) = fixture.run(&order);
    assert_eq!(
        (output.as_str(), exit.output_bytes, exit.dropped_bytes),
        ("", 0, 6)
    );
}

#[test]
fn output_can_be_read_while_the_task_runs() {
    let fixture = Fixture::new();
    let mut order = fixture.script("printf 'Continue? '; while ! [ -e go ]; do sleep 0.01; done");
    order.redact = vec!["hunter2hunter2".into()];
    let task = fixture.start(&order);
    crate::fixture::wait_until("the question", || {
        std::fs::read(task.output_path()).is_ok_and(|it| it == b"Continue? ")
    });
    std::fs::write(fixture.cwd().join("go"), "").unwrap();
    assert_eq!(fixture.exit(&task).code, Some(0));
}

#[test]
fn closed_streams_do_not_end_a_task() {
    let fixture = Fixture::new();
    let order =
        fixture.script("exec >&- 2>&-; : >ready; while ! [ -e go ]; do sleep 0.01; done; exit 4");
    let task = fixture.start(&order);
    fixture.wait_for("ready");
    std::fs::write(fixture.cwd().join("go"), "").unwrap();
    assert_eq!(fixture.exit(&task).code, Some(4));
}

#[test]
fn the_streams_are_kept_apart_where_the_order_says_so() {
    let fixture = Fixture::new();
    let mut order = fixture.script("echo out; echo err >&2; echo more");
    order.errors_apart = true;
    let (exit, output) = fixture.run(&order);
    assert_eq!(output, "out\nmore\n");
    assert_eq!(exit.output_bytes, output.len() as u64);
    let errors = std::fs::read_to_string(fixture.dir().join("errors")).unwrap();
    assert_eq!(errors, "err\n");
}
