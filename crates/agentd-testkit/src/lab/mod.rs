//! The lab: the real program, tortured, and judged by what it promised.
//!
//! - [`check`]: reads what a run left behind, and says which promises were broken. It shares no code
//!   with the product.

pub mod check;
