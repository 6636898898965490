//! What the model was told about variables and services that its tools lack.

use super::{Located, Window};
use crate::event::{Notice, NoticeCause, Position};

impl Window {
    /// The newest notice about the tools' environment.
    pub fn environment(&self) -> Option<&str> {
        let told = self.environment.as_ref()?;
        Some(&told.value)
    }

    /// Whether the model still sees that notice: a summary may have replaced it.
    pub fn shows_environment(&self) -> bool {
        let told = self.environment.as_ref();
        told.is_some_and(|told| self.items.iter().any(|item| item.source == told.source))
    }

    pub(super) fn told_environment(&mut self, source: Position, notice: &Notice) {
        if notice.cause == NoticeCause::Environment {
            let value = notice.text.clone();
            self.environment = Some(Located { source, value });
        }
    }
}
