//! Redacts secrets in the output before it is written, independent of chunk boundaries.

/// The text that replaces a secret.
pub const MARK: &[u8] = b"[redacted by agentd]";
/// A shorter secret would match too much other text.
const SHORTEST: usize = 8;

/// If secrets overlap in the output, everything that they cover is replaced by one mark.
pub struct Redactor {
    secrets: Vec<Vec<u8>>,
    /// For each byte, whether a secret begins with it.
    begins: [bool; 256],
    /// Output that is held back because it could be the beginning of a secret. Shorter than the longest secret.
    held: Vec<u8>,
    /// How many of the next bytes belong to a secret whose mark was already written.
    covered: usize,
}

impl Redactor {
    pub fn new(secrets: &[String]) -> Self {
        let secrets: Vec<Vec<u8>> = secrets
            .iter()
            .filter(|secret| secret.len() >= SHORTEST)
            .map(|secret| secret.clone().into_bytes())
            .collect();
        let mut begins = [false; 256];
        for first in secrets.iter().filter_map(|secret| secret.first()) {
            begins[usize::from(*first)] = true;
        }
        Self {
            secrets,
            begins,
            held: Vec::new(),
            covered: 0,
        }
    }

    /// Appends to `out` what can be written now.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        if self.secrets.is_empty() {
            out.extend_from_slice(chunk);
            return;
        }
        self.held.extend_from_slice(chunk);
        self.advance(out, |redactor, rest| redactor.is_open(rest));
    }

    /// Appends to `out` what was held back: the output has ended.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.advance(out, |_, _| false);
    }

    fn advance(&mut self, out: &mut Vec<u8>, must_wait: impl Fn(&Self, &[u8]) -> bool) {
        let text = std::mem::take(&mut self.held);
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            let rest = &text[at..];
            if self.begins[usize::from(*byte)] {
                if must_wait(self, rest) {
                    break;
                }
                let longest = self.longest_at(rest);
                if longest > 0 && self.covered == 0 {
                    out.extend_from_slice(MARK);
                }
                self.covered = self.covered.max(longest);
            }
            if self.covered == 0 {
                out.push(*byte);
            } else {
                self.covered -= 1;
            }
            at += 1;
        }
        self.held.extend_from_slice(&text[at..]);
    }

    /// Whether `rest` could be the beginning of a secret whose end has not arrived yet.
    fn is_open(&self, rest: &[u8]) -> bool {
        let mut secrets = self.secrets.iter();
        secrets.any(|secret| secret.len() > rest.len() && secret.starts_with(rest))
    }

    /// The length of the longest secret that begins here, or 0.
    fn longest_at(&self, rest: &[u8]) -> usize {
        let here = self.secrets.iter().filter(|it| rest.starts_with(it));
        here.map(Vec::len).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Redactor;

    fn redacted(secrets: &[&str], chunks: &[&[u8]]) -> String {
        let secrets: Vec<String> = secrets.iter().map(ToString::to_string).collect();
        let longest = secrets.iter().map(String::len).max().unwrap_or(1);
        let mut redactor = Redactor::new(&secrets);
        let mut out = Vec::new();
        for chunk in chunks {
            redactor.push(chunk, &mut out);
            assert!(redactor.held.len() < longest, "too much is held back");
        }
        redactor.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    /// Checks the text in all splits into up to three chunks, and byte by byte.
    fn check(secrets: &[&str], text: &str, expected: &str) {
        let bytes = text.as_bytes();
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let chunks = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(redacted(secrets, &chunks), expected, "{first}, {second}");
            }
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(redacted(secrets, &single), expected);
    }

    #[test]
    fn a_secret_is_found_wherever_it_is_cut() {
        check(
            &["hunter2hunter2", "tok-12345678"],
            "a hunter2hunter2 b tok-12345678tok-12345678, hunter2hunter",
            "a [redacted by agentd] b [redacted by agentd][redacted by agentd], hunter2hunter",
        );
    }

    #[test]
    fn the_longer_one_wins_and_what_follows_a_false_beginning_is_found() {
        check(
            &["secret-secret", "secret-secret-two"],
            "secret-secret-two|secret-secret-tw|secret-secret-secret",
            "[redacted by agentd]|[redacted by agentd]-tw|[redacted by agentd]",
        );
    }

    #[test]
    fn no_part_of_one_that_overlaps_another_is_left() {
        check(
            &["abcdefgh1234", "1234567890"],
            "<abcdefgh1234567890>",
            "<[redacted by agentd]>",
        );
    }

    #[test]
    fn a_short_one_is_not_looked_for() {
        check(&["1234567", ""], "1234567 12345678", "1234567 12345678");
    }
}
