//! What the tests share. Never part of the product.
//!
//! - [`oracle`]: strict checkers of requests, written from the providers' documentation.
//! - [`predicate`]: what awaits an answer, told from the events alone.
//! - [`journal`]: journals made up at random: as our own machine writes them, and as nobody should.
//! - [`faulty_disk`]: a real disk that fails when told to.

pub mod faulty_disk;
pub mod oracle;
