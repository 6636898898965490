//! Drops all privileges, and every way to gain new ones: as root, by a setuid program or in a user namespace.

use crate::error::{Failed, Step};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
    set_no_new_privs,
};

/// More than any kernel has.
const CAPABILITIES: u32 = 64;

/// Drops every capability of the user namespace, for good: an exec as its root gains none.
pub fn drop_capabilities() -> Result<(), Failed> {
    drop_all().map_err(|errno| Failed::new(Step::Capabilities, errno))
}

fn drop_all() -> Result<(), Errno> {
    set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT | CapabilitiesSecureBits::NO_ROOT_LOCKED,
    )?;
    clear_ambient_capability_set()?;
    for number in 0..CAPABILITIES {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // Past the last one that this kernel has.
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(errno),
        }
    }
    set_capabilities(
        None,
        CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        },
    )?;
    set_no_new_privs(true)
}

/// For a process without namespaces. It may lack the capability that dropping others needs, so it is only prevented
/// from gaining privileges later.
pub fn gain_nothing() -> Result<(), Failed> {
    set_no_new_privs(true).map_err(|errno| Failed::new(Step::Capabilities, errno))
}
