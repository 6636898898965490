//! The view of a process that the user let out of the sandbox: all of the host, except what agentd keeps.
//!
//! It is still a view, because agentd's own state must stay hidden, and the daemon recognises a tool by its namespace.

use super::{Access, OWN, View, What, resolve};
use crate::error::Result;
use crate::policy::{Extent, Policy};
use std::fs;
use std::path::Path;

impl View {
    pub(super) fn everything(policy: &Policy) -> Result<Self> {
        let mut view = Self {
            extent: Extent::Everything,
            ..Self::default()
        };
        for path in &policy.closed {
            view.closed.extend(resolve(path)?);
        }
        for entry in fs::read_dir("/").into_iter().flatten().flatten() {
            let path = entry.path();
            // Each process namespace has its own /proc; the builder shows /dev before that.
            if OWN.iter().any(|own| path == Path::new(own)) {
                continue;
            }
            let what = match fs::read_link(&path) {
                Ok(to) => What::Link { to },
                Err(_) => What::Bind {
                    from: path.clone(),
                    access: Access::Write,
                },
            };
            view.at.insert(path, what);
        }
        view.cover(policy, &[]);
        view.add_own(policy)?;
        view.hold_parents();
        Ok(view)
    }
}
