//! Variables that tools lack: the model is told once, and told when they are there.

use super::harness::{Rig, says};
use crate::environment::{COMPLETE, Lacking};
use crate::event::After;

fn lacking(names: &[&str]) -> Lacking {
    Lacking {
        variables: names.iter().map(ToString::to_string).collect(),
        ..Lacking::default()
    }
}

fn last_request(rig: &Rig) -> String {
    let (_, request) = rig.sent.last().unwrap();
    format!("{:?}", request.messages)
}

#[test]
fn what_tools_lack_is_told_before_the_request_and_once() {
    let mut rig = Rig::with(|_, policy| policy.lacking = lacking(&["DATABASE_URL"]));
    rig.prompt("hi").does([
        "append turn_started, prompts_taken",
        "append notice environment",
        "append context",
        "append request_sent 2.1",
        "send 2.1",
    ]);
    assert!(last_request(&rig).contains("`DATABASE_URL`"));
    rig.on(says("hello")).completes();
    rig.prompt("more").does([
        "append turn_started, prompts_taken",
        "append request_sent 2.2",
        "send 2.2",
    ]);
    // The next process finds it in the journal.
    rig.take_over(After::Restart, |_| {});
    let lost = |seen: &str| seen.matches("`DATABASE_URL`").count();
    assert_eq!(lost(&last_request(&rig)), 1);
}

#[test]
fn the_model_is_told_of_a_change_and_of_the_end() {
    let mut rig = Rig::with(|_, policy| policy.lacking = lacking(&["A", "B"]));
    rig.prompt("hi");
    rig.on(says("hello")).completes();
    rig.policy.lacking = lacking(&["B"]);
    rig.take_over(After::Restart, |_| {});
    rig.prompt("now?");
    assert!(last_request(&rig).contains("variables `B`."));
    rig.on(says("hello")).completes();
    rig.policy.lacking = Lacking::default();
    rig.take_over(After::Restart, |_| {});
    rig.prompt("and now?");
    assert!(last_request(&rig).contains(COMPLETE));
    rig.on(says("good")).completes();
    rig.take_over(After::Restart, |_| {});
    rig.prompt("more");
    assert_eq!(last_request(&rig).matches(COMPLETE).count(), 1);
}
