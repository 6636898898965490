//! Whether a part of the screen has the keys.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Focused {
    Yes,
    No,
}

impl Focused {
    pub const fn if_so(has_keys: bool) -> Self {
        match has_keys {
            true => Self::Yes,
            false => Self::No,
        }
    }
}
