//! The demo's claims, and their verdicts. The first claim that does not hold ends the demo.

use super::evidence::Verdict;
use crate::error::{Error, Exit};
use crate::output::{BAD, GOOD, HEADING, Output, QUIET};

pub struct Claims<'a> {
    pub out: &'a mut Output,
    steps: u32,
    held: u32,
}

impl<'a> Claims<'a> {
    pub const fn new(out: &'a mut Output) -> Self {
        Self {
            out,
            steps: 0,
            held: 0,
        }
    }

    /// Begins a new step of the demo.
    pub fn step(&mut self, what: &str) -> Result<(), Error> {
        self.steps += 1;
        let number = self.steps;
        self.out.line("")?;
        self.out
            .line(format_args!("{HEADING}{number}. {what}{HEADING:#}"))
    }

    /// Prints what happens.
    pub fn say(&mut self, what: &str) -> Result<(), Error> {
        self.out.line(format_args!("   {QUIET}{what}{QUIET:#}"))
    }

    /// Prints the claim with a ✓ if it holds; otherwise with a ✗, and returns an error.
    pub fn check(&mut self, claim: &str, verdict: Verdict) -> Result<(), Error> {
        match verdict {
            Ok(seen) => {
                self.held += 1;
                let seen = match seen.as_str() {
                    "" => seen,
                    _ => format!(" {QUIET}({seen}){QUIET:#}"),
                };
                self.out
                    .line(format_args!("   {GOOD}✓{GOOD:#} {claim}{seen}"))
            }
            Err(found) => {
                self.out.line(format_args!("   {BAD}✗{BAD:#} {claim}"))?;
                Err(
                    Error::new(Exit::Failed, format!("claim does not hold: {claim}"))
                        .because(found),
                )
            }
        }
    }

    pub const fn held(&self) -> u32 {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Page {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    #[test]
    fn a_claim_that_holds_is_ticked_and_counted() {
        let page = Page::default();
        let mut out = Output::to(page.clone());
        let mut claims = Claims::new(&mut out);
        claims
            .check("it is there", Ok("3 of 3".to_owned()))
            .unwrap();
        claims.check("it is whole", Ok(String::new())).unwrap();
        assert_eq!(claims.held(), 2);
        assert_eq!(page.text(), "   ✓ it is there (3 of 3)\n   ✓ it is whole\n");
    }

    #[test]
    fn a_claim_that_is_not_so_fails_the_demo() {
        let page = Page::default();
        let mut out = Output::to(page.clone());
        let mut claims = Claims::new(&mut out);
        let found = Err("event 7 is missing".to_owned());
        let error = claims.check("it is there", found).unwrap_err();
        assert_eq!(error.exit(), Exit::Failed);
        assert_eq!(claims.held(), 0);
        assert_eq!(page.text(), "   ✗ it is there\n");
        assert!(error.to_string().contains("event 7 is missing"), "{error}");
    }

    #[test]
    fn a_reader_that_has_gone_ends_it_quietly() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut out = Output::to(Closed);
        let error = Claims::new(&mut out).step("Create an agent").unwrap_err();
        assert_eq!(error.exit(), Exit::Quiet);
    }
}
