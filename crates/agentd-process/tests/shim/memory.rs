//! The memory of a shim is bounded, and its program has the limit of the user.

use crate::fixture::Fixture;
use agentd_process::task::{Confined, Limits, Order};
use agentd_process::{RUNTIME_BYTES, limit_own_memory};
use agentd_sandbox::Policy;
use rustix::process::{Resource, getrlimit};
use std::fs;

/// The soft limit of a process, as the kernel shows it.
fn shown(limits: &str) -> &str {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max data size"));
    line.unwrap().split_whitespace().next().unwrap()
}

#[test]
fn a_program_has_the_limit_that_its_shim_and_runtime_gave_up() {
    let original = getrlimit(Resource::Data).current;
    let original = original.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
    // As a runtime does.
    limit_own_memory(RUNTIME_BYTES).unwrap();
    let own = fs::read_to_string("/proc/self/limits").unwrap();
    assert_eq!(shown(&own), RUNTIME_BYTES.to_string());
    for is_confined in [false, true] {
        let fixture = Fixture::new();
        let mut order = fixture.script("grep 'Max data' /proc/self/limits; read line");
        order.foreground = true;
        if is_confined {
            if agentd_sandbox::support().namespaces.is_err() {
                println!("skipped: there are no namespaces");
                continue;
            }
            let cwd = fs::canonicalize(fixture.cwd()).unwrap();
            order.cwd = cwd.clone();
            order.confined = Some(Box::new(Confined {
                policy: Policy {
                    writable: vec![cwd],
                    foreground: true,
                    ..Policy::default()
                },
                is_read_only: false,
                hosts: Vec::new(),
            }));
        }
        let (_, output) = fixture.run(&order);
        assert_eq!(shown(&output), original, "confined: {is_confined}");
    }
}

#[test]
fn a_shim_is_bounded_while_its_program_runs() {
    let fixture = Fixture::new();
    // The parent of the program is its shim.
    let (_, output) = fixture.run(&fixture.script("grep 'Max data' /proc/$PPID/limits"));
    assert_eq!(shown(&output), (256 << 20).to_string());
}

#[test]
fn a_limit_of_the_order_counts() {
    let fixture = Fixture::new();
    let order = Order {
        limits: Limits {
            memory_bytes: Some(512 << 20),
            ..Limits::default()
        },
        ..fixture.script("grep 'Max data' /proc/self/limits; cat /proc/self/cgroup")
    };
    let (_, output) = fixture.run(&order);
    let original = getrlimit(Resource::Data).current;
    let original = original.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
    // A cgroup that takes the limit has it for all processes together.
    let found = shown(&output);
    assert!(
        found == (512 << 20).to_string() || found == original,
        "{output}"
    );
}
