//! The daemon's sockets are files, and files get deleted. A daemon whose socket was gone could not be reached any
//! more, and no other could be started beside it.

use crate::house::{House, until};

#[test]
fn a_deleted_socket_is_made_anew() {
    let house = House::new();
    house.create("coder");
    house.completed("coder", "do: say before");
    let pid = house.daemon_pid();
    for name in ["api.sock", "link.sock"] {
        std::fs::remove_file(house.home().join("run").join(name)).unwrap();
    }
    until("the sockets", || {
        let is_there = |name: &str| house.home().join("run").join(name).exists();
        (is_there("api.sock") && is_there("link.sock")).then_some(())
    });
    assert_eq!(house.completed("coder", "do: say after").text, "after");
    // By the way of the other one, too.
    house.kill_runtime("coder");
    assert_eq!(house.completed("coder", "do: say again").text, "again");
    assert_eq!(house.daemon_pid(), pid, "it is the same daemon");
}
