//! Finds the closing line of a test runner in its output.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    Nextest,
    CargoTest,
}

/// Parses a runner's lines.
pub struct Closing {
    runner: Runner,
    /// Of nextest: its `Summary` line.
    summary: Option<String>,
    /// Of cargo: one count per word of its `test result:` lines, in the order of the words.
    sums: Vec<(String, u64)>,
    binaries: usize,
    all_ok: bool,
}

impl Closing {
    pub const fn new(runner: Runner) -> Self {
        Self {
            runner,
            summary: None,
            sums: Vec::new(),
            binaries: 0,
            all_ok: true,
        }
    }

    pub fn hear(&mut self, line: &str) {
        let line = without_colour(line);
        let line = line.trim();
        match self.runner {
            Runner::Nextest => {
                if line.starts_with("Summary [") {
                    self.summary = Some(line.to_string());
                }
            }
            Runner::CargoTest => {
                if let Some(result) = line.strip_prefix("test result: ") {
                    self.add(result);
                }
            }
        }
    }

    /// Adds `ok. 3 passed; 0 failed; 1 ignored; … finished in 0.10s`.
    fn add(&mut self, result: &str) {
        let Some((verdict, counts)) = result.split_once(". ") else {
            return;
        };
        self.binaries += 1;
        self.all_ok &= verdict == "ok";
        for count in counts.split("; ") {
            let Some((number, word)) = count.split_once(' ') else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match self.sums.iter_mut().find(|(known, _)| known == word) {
                Some((_, sum)) => *sum += number,
                None => self.sums.push((word.to_string(), number)),
            }
        }
    }

    /// The line, if the runner printed one. A run that did not pass may still have had only good results
    /// until it ended, so the caller passes in whether it passed.
    pub fn line(&self, passed: bool) -> Option<String> {
        match self.runner {
            Runner::Nextest => self.summary.clone(),
            Runner::CargoTest if self.binaries == 0 => None,
            Runner::CargoTest => {
                let verdict = if self.all_ok && passed {
                    "ok"
                } else {
                    "FAILED"
                };
                let counts: Vec<String> = self
                    .sums
                    .iter()
                    .map(|(word, sum)| format!("{sum} {word}"))
                    .collect();
                Some(format!(
                    "test result: {verdict}. {}; binaries: {}",
                    counts.join("; "),
                    self.binaries
                ))
            }
        }
    }
}

/// Drops the escape sequences that colour a terminal: `ESC [ … letter`.
fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            plain.push(c);
        } else if chars.next() == Some('[') {
            chars.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(runner: Runner, lines: &[&str]) -> Option<String> {
        let mut closing = Closing::new(runner);
        for line in lines {
            closing.hear(line);
        }
        closing.line(true)
    }

    #[test]
    fn the_summary_of_nextest_is_taken_without_its_colours() {
        let line = heard(
            Runner::Nextest,
            &[
                "        PASS [   0.005s] agentd::tidy layers",
                "\u{1b}[32;1m     Summary\u{1b}[0m [   0.002s] \u{1b}[1m4\u{1b}[0m tests run: 4 passed, 0 skipped\n",
                "error: test run failed",
            ],
        );
        assert_eq!(
            line.as_deref(),
            Some("Summary [   0.002s] 4 tests run: 4 passed, 0 skipped")
        );
    }

    #[test]
    fn the_results_of_cargo_are_summed() {
        let line = heard(
            Runner::CargoTest,
            &[
                "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s",
                "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            ],
        );
        assert_eq!(
            line.as_deref(),
            Some(
                "test result: FAILED. 5 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; binaries: 2"
            )
        );
    }

    #[test]
    fn good_results_of_a_run_that_was_cut_short_do_not_make_it_good() {
        let mut closing = Closing::new(Runner::CargoTest);
        closing.hear("test result: ok. 3 passed; 0 failed; finished in 0.10s");
        let line = closing.line(false);
        assert_eq!(
            line.as_deref(),
            Some("test result: FAILED. 3 passed; 0 failed; binaries: 1")
        );
    }

    #[test]
    fn a_runner_that_never_got_there_has_no_line() {
        let build = ["error: could not compile `agentd`"];
        assert_eq!(heard(Runner::Nextest, &build), None);
        assert_eq!(heard(Runner::CargoTest, &build), None);
    }
}
