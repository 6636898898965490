//! Export and import, past the store.

use crate::export_file::{Shelf, export, family, import};
use crate::lab::{Author, Lab, agent_id, run};
use agentd_core::id::Seq;
use agentd_core::time::Timestamp;
use agentd_store::{Error, Store as _};

#[test]
fn words_that_were_purged_here_do_not_come_back_by_import() {
    let (home, abroad) = (Lab::new(), Lab::new());
    run(async {
        let store = home.open();
        let mut parent = Author::create(&store, 1, "parent").await;
        let events = parent.tool_turn("look", &"a secret ".repeat(2000), "seen");
        parent.append(&store, events).await;
        let origin = parent.here();
        let events = parent.reset();
        parent.append(&store, events).await;
        let mut fork = Author::claim(&store, 2).await;
        let events = fork.forked("fork", origin);
        fork.append(&store, events).await;
        let (whole, file) = (
            export(&store, parent.agent).await,
            export(&store, fork.agent).await,
        );
        let other = abroad.open();
        import(&other, &whole).await.unwrap();
        let fence = other.claim(parent.agent, "abroad").await.unwrap().fence;
        let at = Timestamp::from_millis(1);
        let done = other.purge(fence, origin.conversation, at).await.unwrap();
        assert_eq!(done.blobs, 1);
        let refused = import(&other, &file).await;
        assert!(
            matches!(refused, Err(Error::OriginPurged { .. })),
            "{refused:?}"
        );
        let texts: i64 = abroad
            .journal()
            .query_row(
                "SELECT count(*) FROM blob WHERE hash IS NOT NULL",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(texts, 0);
        assert!(other.verify(None).await.unwrap().is_clean());
    });
}

#[test]
fn a_damaged_agent_is_not_exported_as_if_it_were_whole() {
    let home = Lab::new();
    run(async {
        let (parent, fork, _) = family(&home.open()).await;
        home.journal()
            .execute("DELETE FROM event WHERE agent = 2 AND seq = 5", [])
            .unwrap();
        let store = home.open();
        let shelf = Shelf::default();
        let refused = store.export(fork.agent, Box::new(shelf)).await;
        assert!(matches!(refused, Err(Error::Damaged { seq: Seq(5), .. })));
        assert!(matches!(
            store.export(agent_id(99), Box::new(Shelf::default())).await,
            Err(Error::NoSuchAgent { .. })
        ));
        export(&store, parent.agent).await;
    });
}
