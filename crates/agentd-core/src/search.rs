//! A search as a user writes it: words, `"phrases in quotes"` and `beginnings*` of words, all of which must occur; and
//! the part of a text that shows them.

use std::collections::BTreeSet;
use std::ops::Range;

/// The length of a snippet, in characters.
const SNIPPET: usize = 160;
/// Characters that a snippet shows before the first match.
const BEFORE: usize = 40;
/// Matches of one text that are compared when a snippet is chosen.
const COMPARED: usize = 500;

/// What is searched for. It has at least one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms(Vec<Term>);

/// A word, or several that follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    /// In lower case; never empty.
    words: Vec<String>,
    /// The last word may continue.
    is_beginning: bool,
}

/// A part of a text, on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    pub text: String,
    /// What matches, in characters of the text.
    pub matches: Vec<Range<usize>>,
}

/// A word of a text: where it is, in characters, and the word in lower case.
struct Word {
    at: Range<usize>,
    lower: String,
}

impl Terms {
    /// None if there is no letter or digit to search for.
    pub fn parse(text: &str) -> Option<Self> {
        let mut terms = Vec::new();
        // Every second part is between quotes. A quote that is not closed reaches to the end.
        for (n, part) in text.split('"').enumerate() {
            match n % 2 {
                1 => terms.extend(Term::new(part)),
                _ => terms.extend(part.split_whitespace().filter_map(Term::new)),
            }
        }
        (!terms.is_empty()).then_some(Self(terms))
    }

    /// The same as a query of the store.
    pub fn query(&self) -> String {
        let terms = self.0.iter().map(|term| {
            let star = if term.is_beginning { "*" } else { "" };
            format!("\"{}\"{star}", term.words.join(" "))
        });
        terms.collect::<Vec<_>>().join(" ")
    }

    /// The part of a text with the most different terms. The beginning of the text if there are none, for example
    /// because the index ignores accents.
    pub fn snippet(&self, text: &str) -> Snippet {
        let line: Vec<char> = text
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .collect();
        let words = words(&line);
        let mut matches = Vec::new();
        for n in 0..words.len() {
            let found = self.0.iter().enumerate();
            matches.extend(found.filter_map(|(term, it)| Some((term, it.at(words.get(n..)?)?))));
        }
        let begins = best(&matches).map_or(0, |at| begin_before(&line, at));
        let ends = (begins + SNIPPET).min(line.len());
        let (ahead, behind) = (begins > 0, ends < line.len());
        let mut snippet = Snippet::default();
        snippet.text.extend(ahead.then_some('…'));
        snippet
            .text
            .extend(line.get(begins..ends).unwrap_or_default());
        snippet.text.extend(behind.then_some('…'));
        let shift = usize::from(ahead);
        let shown = matches.into_iter().map(|(_, at)| at);
        let shown = shown.filter(|at| at.start >= begins && at.end <= ends);
        for at in shown.map(|at| at.start - begins + shift..at.end - begins + shift) {
            match snippet.matches.last_mut() {
                Some(last) if at.start < last.end => last.end = last.end.max(at.end),
                _ => snippet.matches.push(at),
            }
        }
        snippet
    }
}

impl Term {
    fn new(text: &str) -> Option<Self> {
        let chars: Vec<char> = text.chars().collect();
        let words: Vec<String> = words(&chars).into_iter().map(|word| word.lower).collect();
        (!words.is_empty()).then(|| Self {
            words,
            is_beginning: text.ends_with('*'),
        })
    }

    /// Where the term is, if the text begins with it.
    fn at(&self, text: &[Word]) -> Option<Range<usize>> {
        let found = text.get(..self.words.len())?;
        let last = self.words.len() - 1;
        let mut pairs = self.words.iter().zip(found).enumerate();
        let fits = pairs.all(|(n, (wanted, word))| match n == last && self.is_beginning {
            true => word.lower.starts_with(wanted),
            false => word.lower == *wanted,
        });
        let (first, last) = (found.first()?, found.last()?);
        fits.then_some(first.at.start..last.at.end)
    }
}

/// Where the best snippet has its first match.
fn best(matches: &[(usize, Range<usize>)]) -> Option<usize> {
    let terms_near = |from: usize| {
        let near = matches.iter().filter(|(_, at)| at.start >= from);
        let near = near.take_while(|(_, at)| at.end <= from + SNIPPET - BEFORE);
        near.map(|(term, _)| term).collect::<BTreeSet<_>>().len()
    };
    let starts = matches.iter().take(COMPARED).map(|(_, at)| at.start);
    // The first of the best ones.
    starts.rev().max_by_key(|start| terms_near(*start))
}

/// The beginning of a snippet: a few words before the match.
fn begin_before(line: &[char], at: usize) -> usize {
    let earliest = at.saturating_sub(BEFORE);
    if earliest == 0 {
        return 0;
    }
    let before = line.get(earliest..at).unwrap_or_default();
    let space = before.iter().position(|c| *c == ' ');
    space.map_or(earliest, |n| earliest + n + 1)
}

fn words(text: &[char]) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    for (n, c) in text.iter().enumerate().filter(|(_, c)| c.is_alphanumeric()) {
        match words.last_mut() {
            Some(word) if word.at.end == n => {
                word.at.end = n + 1;
                word.lower.extend(c.to_lowercase());
            }
            _ => words.push(Word {
                at: n..n + 1,
                lower: c.to_lowercase().collect(),
            }),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Option<String> {
        Terms::parse(text).map(|terms| terms.query())
    }

    /// A snippet with brackets around its matches.
    fn marked(terms: &str, text: &str) -> String {
        let snippet = Terms::parse(terms).unwrap().snippet(text);
        let mut out = String::new();
        for (n, c) in snippet.text.chars().enumerate() {
            out.extend(snippet.matches.iter().any(|at| at.end == n).then_some(']'));
            out.extend(
                snippet
                    .matches
                    .iter()
                    .any(|at| at.start == n)
                    .then_some('['),
            );
            out.push(c);
        }
        let length = snippet.text.chars().count();
        out.extend(
            snippet
                .matches
                .iter()
                .any(|at| at.end == length)
                .then_some(']'),
        );
        out
    }

    #[test]
    fn words_phrases_and_beginnings_are_a_query_without_operators() {
        assert_eq!(query("Fix tests").as_deref(), Some("\"fix\" \"tests\""));
        assert_eq!(query("\"a b\" c*").as_deref(), Some("\"a b\" \"c\"*"));
        assert_eq!(query("src/lib.rs").as_deref(), Some("\"src lib rs\""));
        // Operators and quotes of the index are words or nothing.
        assert_eq!(query("a OR \"b").as_deref(), Some("\"a\" \"or\" \"b\""));
        assert_eq!(query("NEAR(x").as_deref(), Some("\"near x\""));
        for nothing in ["", "  ", "--", "\"\"", "*", "\" ! \""] {
            assert_eq!(query(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_snippet_marks_what_matches() {
        assert_eq!(marked("TESTS", "Fix the\n  tests!"), "Fix the [tests]!");
        assert_eq!(marked("te*", "te tests"), "[te] [tests]");
        assert_eq!(
            marked("\"the tests\"", "the other, the tests"),
            "the other, [the tests]"
        );
        assert_eq!(marked("a \"a b\"", "a b"), "[a b]");
        assert_eq!(marked("zażółć", "ZAŻÓŁĆ gęślą"), "[ZAŻÓŁĆ] gęślą");
        assert_eq!(marked("none", "another text"), "another text");
    }

    #[test]
    fn a_snippet_of_a_long_text_is_where_most_terms_are() {
        let text = format!("one {}one two {}", "x ".repeat(200), "y ".repeat(200));
        let shown = marked("one two", &text);
        assert!(shown.contains("[one] [two] y"), "{shown}");
        assert!(shown.starts_with("…x") && shown.ends_with('…'), "{shown}");
        assert!(shown.chars().count() <= SNIPPET + 6, "{shown}");
        // A text without a space is cut anywhere.
        let snippet = Terms::parse("a").unwrap().snippet(&"b".repeat(500));
        assert_eq!(snippet.text.chars().count(), SNIPPET + 1);
    }
}
