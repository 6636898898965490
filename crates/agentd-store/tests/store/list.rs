//! The list of agents, past the store.

use crate::lab::{Author, Lab, run};
use agentd_store::Store as _;

/// claude-code#73089: a list that does not say how many there are looks like loss.
#[test]
fn a_total_that_is_wrong_is_found_by_verify() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        for number in 1..=12 {
            Author::create(&store, number, &format!("agent-{number}")).await;
        }
        assert!(store.verify(None).await.unwrap().is_clean());
    });
    let harm = "UPDATE listing SET agents = agents + 1 WHERE listed = 1";
    lab.journal().execute_batch(harm).unwrap();
    run(async {
        let report = lab.open().verify(None).await.unwrap();
        let told = report
            .file
            .iter()
            .any(|line| line.contains("the list's agent counts"));
        assert!(told, "{report:?}");
    });
}
