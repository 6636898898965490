//! Search includes everything that was acknowledged before it began.

use crate::test_daemon::TestDaemon;
use agentd_client::api::{Role, Search};

/// Regression: a search right after an answer missed it, because the index follows the journal with a delay.
#[test]
fn a_search_finds_the_answer_that_came_just_before() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    for n in 0..5 {
        let word = format!("marker{n}");
        daemon.completed("coder", &format!("do: say {word}"));
        let search = Search {
            words: word.clone(),
            agent: None,
            limit: None,
            before: None,
        };
        let found = daemon.block(daemon.client().search(&search)).unwrap();
        let mut roles = found.hits.iter().map(|hit| hit.role);
        assert!(roles.any(|role| role == Role::Assistant), "{found:#?}");
        assert!(!found.incomplete);
    }
}
