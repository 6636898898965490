//! What an agent does, shown as it happens. [`view::View`] is pure: it turns events, pieces of replies and the time into lines
//! with colours and a status line. [`LineMode`] writes them to a terminal: finished lines are appended, and the rows at
//! the bottom (the block of text that is still growing, and the status line) are drawn again. `chat` shows the same lines on
//! a whole screen.

mod calls;
mod code;
mod diff;
mod line;
mod line_mode;
mod markdown;
pub mod plan;
mod reply;
mod rows;
mod table;
mod view;

pub use line::Line;
pub use line_mode::LineMode;
pub use view::{Moment, Options, Scope, View};
