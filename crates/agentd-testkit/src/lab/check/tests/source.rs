//! The checker shares no code with the product.

use std::path::Path;

fn names_the_product(text: &str) -> bool {
    let crates = [
        "agentd_core",
        "agentd_store",
        "agentd_process",
        "agentd_client",
        "agentd_runtime",
    ];
    let rooms = [
        "crate::oracle",
        "crate::journal",
        "crate::sim",
        "crate::model",
        "crate::theorem",
    ];
    let mut named = crates.iter().chain(&rooms);
    named.any(|name| text.contains(name)) || text.contains("agentd_daemon")
}

#[test]
fn no_file_of_it_names_a_crate_of_the_product() {
    let run_dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lab/check");
    let mut files = 0;
    for entry in std::fs::read_dir(run_dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!names_the_product(&text), "{}", path.display());
            files += 1;
        }
    }
    assert!(files > 12, "{files} files");
}

#[test]
fn a_file_that_names_one_is_found() {
    assert!(names_the_product("use agentd_core::event::Event;"));
    assert!(names_the_product("use crate::oracle::check;"));
    assert!(!names_the_product("use super::story::Story;"));
}
