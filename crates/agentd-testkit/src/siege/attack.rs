//! The definition of an attack.

use super::testbed::Testbed;
use crate::lab::testbed::Result;

/// Evidence, from outside, that the attack succeeded: none if it failed.
pub type Evidence = Option<String>;

#[derive(Clone, Copy)]
pub struct Attack {
    pub name: &'static str,
    /// What it tries.
    pub about: &'static str,
    pub run: fn(&Testbed) -> Result<Evidence>,
    /// It may leave a daemon that later attacks cannot use.
    pub is_alone: bool,
    pub needs: Needs,
    /// Why it succeeds against the product, if that is known and documented.
    pub known: Option<&'static str>,
}

/// Where an attack can be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// A sandbox with a writable work tree: there is none without namespaces.
    Workspace,
    /// A second user, which only root can become.
    Root,
    /// A kernel that lets a process trace another one of the same user.
    Tracing,
}

impl Attack {
    pub const fn new(
        name: &'static str,
        about: &'static str,
        run: fn(&Testbed) -> Result<Evidence>,
    ) -> Self {
        Self {
            name,
            about,
            run,
            is_alone: false,
            needs: Needs::Nothing,
            known: None,
        }
    }

    pub const fn alone(mut self) -> Self {
        self.is_alone = true;
        self
    }

    pub const fn needs(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }
}

/// Attacks of one kind.
pub struct Theme {
    pub name: &'static str,
    /// Whether the kind of sandbox matters.
    pub is_about_sandbox: bool,
    pub attacks: &'static [Attack],
}
