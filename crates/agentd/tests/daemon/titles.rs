//! What conversations are called.

use crate::house::House;
use agentd_client::api::{Purge, Reset, Rewind};

fn titles(house: &House) -> Vec<Option<String>> {
    let all = house.block(house.client().conversations("coder")).unwrap();
    let each = all.conversations.iter();
    each.map(|it| it.title.clone()).collect()
}

#[test]
fn by_their_first_words_or_as_the_user_says() {
    let house = House::new();
    house.create("coder");
    assert_eq!(house.show("coder").title, None);
    house.completed("coder", "  Fix the tests\nand then some");
    house.completed("coder", "do: say more");
    assert_eq!(house.show("coder").title.as_deref(), Some("Fix the tests"));
    // A generated one goes with its conversation.
    let reset = Reset::default();
    let receipt = house.block(house.client().reset("coder", &reset)).unwrap();
    assert_eq!(house.show("coder").title, None);
    house.completed("coder", "Write the docs");
    let two = [
        Some("Fix the tests".to_owned()),
        Some("Write the docs".to_owned()),
    ];
    assert_eq!(titles(&house), two);
    // A branch is called as what it branched off.
    let back = Rewind {
        to: "1".to_owned(),
        conversation: Some(receipt.old),
        ..Rewind::default()
    };
    house.block(house.client().rewind("coder", &back)).unwrap();
    assert_eq!(house.show("coder").title.as_deref(), Some("Fix the tests"));
    // The user's own stays.
    let mut spec = house.spec();
    spec.title = Some("The review".to_owned());
    house
        .block(house.client().set_spec("coder", &spec))
        .unwrap();
    assert_eq!(house.show("coder").title.as_deref(), Some("The review"));
    house.block(house.client().reset("coder", &reset)).unwrap();
    assert_eq!(house.show("coder").title.as_deref(), Some("The review"));
    // What is purged has no words to be called by.
    let purge = Purge {
        conversation: Some(receipt.new),
        dry_run: false,
    };
    house.block(house.client().purge("coder", &purge)).unwrap();
    assert_eq!(titles(&house)[1], None);
}
