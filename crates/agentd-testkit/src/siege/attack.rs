//! What an attack is.

use super::testbed::Testbed;
use crate::lab::testbed::Result;

/// What was found from outside that must not be: none where the attack failed.
pub type Evidence = Option<String>;

#[derive(Clone, Copy)]
pub struct Attack {
    pub name: &'static str,
    /// What it tries.
    pub about: &'static str,
    pub run: fn(&Testbed) -> Result<Evidence>,
    /// It may leave a daemon behind that is of no use to the next one.
    pub is_alone: bool,
    pub needs: Needs,
    /// Why it succeeds in the defended run, where that is known and written down.
    pub known: Option<&'static str>,
}

/// Where an attack can be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// A sandbox that writes the work tree: there is none without namespaces.
    Workspace,
    /// A second user, which only root can be.
    Root,
    /// A kernel that lets a process trace another one of its user.
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
    /// Whether it matters how tools are confined.
    pub is_about_sandbox: bool,
    pub attacks: &'static [Attack],
}
