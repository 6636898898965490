//! `agentd deny`.

use super::approve::asking;

#[test]
fn the_call_is_not_made_and_the_turn_goes_on() {
    let cli = asking();
    cli.ok(&["deny", "coder"]);
    cli.ok(&["wait", "coder"]);
    assert!(!cli.work().join("effects").exists());
    let out = cli.ok(&["logs", "coder"]);
    assert!(out.contains("The call was refused"), "{out}");
}
