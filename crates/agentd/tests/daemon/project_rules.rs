//! The rules of a project: they count once the user has trusted them, and never allow anything.

use crate::house::House;
use agentd_client::api::Trust;
use agentd_core::event::Body;
use std::fs;

fn write(house: &House, rules: &str) {
    fs::create_dir_all(house.work().join(".agentd")).unwrap();
    let text = format!("[agents]\npermissions = [{rules}]\n");
    fs::write(house.work().join(".agentd/config.toml"), text).unwrap();
}

fn trust(house: &House) -> Result<(), String> {
    let trust = Trust {
        dir: house.work().display().to_string(),
        hash: None,
        trusted: true,
    };
    let client = house.client();
    let done = house.block(client.set_trust(&trust));
    done.map(drop).map_err(|error| format!("{error:?}"))
}

/// Whether a command runs, in a new process of the agent.
fn runs(house: &House) -> bool {
    let restarted = house.cli(&["restart", "coder"]);
    assert!(restarted.status.success(), "{restarted:?}");
    let before = house.effects().len();
    house.completed(
        "coder",
        r#"do: call shell {"command":"echo x >> effects"} ;; say done"#,
    );
    house.effects().len() > before
}

#[test]
fn rules_of_a_project_count_once_they_are_trusted() {
    let house = House::new();
    house.create("coder");
    assert!(runs(&house));
    write(
        &house,
        r#"{ tool = "shell", pattern = "echo *", decision = "deny" }"#,
    );
    assert!(runs(&house), "nobody has trusted it");
    trust(&house).unwrap();
    assert!(!runs(&house));
    let refused = house.events("coder").into_iter().rev().find_map(|event| {
        let Body::ResultAdded(result) = event.body else {
            return None;
        };
        let mut words = Vec::new();
        result
            .blocks
            .iter()
            .for_each(|block| block.words(&mut words));
        Some(words.join(" "))
    });
    assert!(refused.unwrap().contains("echo *"));
    // Another content is another file.
    write(
        &house,
        r#"{ tool = "shell", pattern = "echo*", decision = "deny" }"#,
    );
    assert!(runs(&house));
}

#[test]
fn a_project_that_allows_something_cannot_be_trusted() {
    let house = House::new();
    house.create("coder");
    write(&house, r#"{ tool = "shell", decision = "allow" }"#);
    let error = trust(&house).unwrap_err();
    assert!(error.contains("the user's to say"), "{error}");
    write(&house, r#"{ tool = "shell", decision = "perhaps" }"#);
    assert!(trust(&house).is_err());
    fs::write(
        house.work().join(".agentd/config.toml"),
        "[agents]\nsandbox = \"full-access\"\n",
    )
    .unwrap();
    assert!(trust(&house).is_err());
}
