//! The place in a file that comes closest to a text that is not in it, and how the two differ.

use similar::{ChangeTag, TextDiff};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// In a larger file no place is looked for.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// The search for similar lines ends after this time, with the best line so far.
const TIME: Duration = Duration::from_millis(300);
/// Only this many lines of the text are compared.
const COMPARED_LINES: usize = 200;
/// How similar two lines must be, from 0 to 1, if no line of the text is in the file.
const LEAST_SIMILARITY: f64 = 0.5;
/// Longer lines are not compared letter by letter, and not shown.
const LINE_BYTES: usize = 300;
/// How many lines of a difference are shown.
const SHOWN_LINES: usize = 30;

/// What to tell the model about the place that is closest to `old`, which it knows as `name`; `None` if nothing is
/// similar.
pub(in super::super) fn closest(text: &str, old: &str, name: &str) -> Option<String> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let file: Vec<&str> = text.split('\n').collect();
    let old: Vec<&str> = lines(old);
    if let Some(at) = but_for_space(&file, &old) {
        return Some(in_whitespace(&file, &old, at, name));
    }
    let at = by_equal_lines(&file, &old).or_else(|| by_similar_line(&file, &old))?;
    Some(in_words(&file, &old, at, name))
}

/// The lines of a text. One that ends with a newline has no empty last line.
fn lines(text: &str) -> Vec<&str> {
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    lines.take(COMPARED_LINES).collect()
}

fn squeezed(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.join(" ")
}

/// Where the text would match if whitespace within lines were ignored.
fn but_for_space(file: &[&str], old: &[&str]) -> Option<usize> {
    let squeeze = |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|line| squeezed(line)).collect();
        lines.join("\n")
    };
    let old = squeeze(old);
    if old.trim().is_empty() {
        return None;
    }
    let file = squeeze(file);
    let at = file.find(&old)?;
    Some(file[..at].matches('\n').count())
}

/// Each line of the file that is also in the text votes for the place where the text would begin. A long line says more
/// than a bracket.
fn by_equal_lines(file: &[&str], old: &[&str]) -> Option<usize> {
    let mut wanted: HashMap<String, usize> = HashMap::new();
    for (index, line) in old.iter().enumerate() {
        wanted.entry(squeezed(line)).or_insert(index);
    }
    wanted.remove("");
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (number, line) in file.iter().enumerate() {
        let line = squeezed(line);
        if let Some(index) = wanted.get(&line) {
            *votes.entry(number.saturating_sub(*index)).or_default() += line.len();
        }
    }
    let best = votes.into_iter();
    let best = best.max_by_key(|(at, vote)| (*vote, std::cmp::Reverse(*at)));
    best.map(|(at, _)| at)
}

/// The line of the file that is most similar to the longest line of the text.
fn by_similar_line(file: &[&str], old: &[&str]) -> Option<usize> {
    let until = Instant::now() + TIME;
    let is_short = |line: &str| line.len() <= LINE_BYTES;
    let compared = old.iter().enumerate();
    let compared = compared.filter(|(_, line)| is_short(line) && !line.trim().is_empty());
    let (index, longest) = compared.max_by_key(|(_, line)| line.trim().len())?;
    let mut best: Option<(usize, f64)> = None;
    for (number, line) in file.iter().enumerate().filter(|(_, line)| is_short(line)) {
        if number % 256 == 0 && Instant::now() > until {
            break;
        }
        let similarity = strsim::sorensen_dice(line, longest);
        let is_better = best.is_none_or(|(_, known)| similarity > known);
        if similarity >= LEAST_SIMILARITY && is_better {
            best = Some((number, similarity));
        }
    }
    best.map(|(number, _)| number.saturating_sub(index))
}

fn place(file: &[&str], old: &[&str], at: usize) -> (String, usize) {
    let end = (at + old.len()).min(file.len());
    match end - at {
        0 | 1 => (format!("line {}", at + 1), end),
        _ => (format!("lines {} to {end}", at + 1), end),
    }
}

/// Whitespace is shown by escapes: it is what differs.
fn in_whitespace(file: &[&str], old: &[&str], at: usize, name: &str) -> String {
    let (place, end) = place(file, old, at);
    let found = file.get(at..end).unwrap_or_default();
    let mut said = vec![format!(
        "It differs from {place} only in whitespace. Copy the text exactly as it is in the file:"
    )];
    let pairs = found.iter().zip(old).enumerate();
    for (index, (line, old)) in pairs.filter(|(_, (line, old))| line != old) {
        if said.len() > SHOWN_LINES {
            said.push("…".to_owned());
            break;
        }
        let number = at + index + 1;
        said.push(format!(
            "line {number}: {} in the file, {} in {name}",
            escaped(line),
            escaped(old)
        ));
    }
    said.join("\n")
}

fn escaped(line: &str) -> String {
    match line.len() <= LINE_BYTES {
        true => format!("{line:?}"),
        false => long(line),
    }
}

fn in_words(file: &[&str], old: &[&str], at: usize, name: &str) -> String {
    let (place, end) = place(file, old, at);
    let found = file.get(at..end).unwrap_or_default();
    let diff = TextDiff::configure().timeout(TIME).diff_slices(old, found);
    let mut said = vec![format!(
        "The closest place is {place} (`-` is {name}, `+` is the file):"
    )];
    for change in diff.iter_all_changes() {
        if said.len() > SHOWN_LINES {
            said.push("…".to_owned());
            break;
        }
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        let line = change.value();
        said.push(match line.len() <= LINE_BYTES {
            true => format!("{sign}{line}"),
            false => format!("{sign}{}", long(line)),
        });
    }
    said.push("Copy the text exactly as it is in the file.".to_owned());
    said.join("\n")
}

/// A part of a line could be a part of a secret, which would not be recognised.
fn long(line: &str) -> String {
    format!("(a line of {} bytes)", line.len())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    const FILE: &str =
        "fn a() {\n    let x = 1;\n\tlet y = 2;\n}\n\nfn b() {\n    let x = 1;\n    y\n}\n";

    fn closest(text: &str, old: &str) -> Option<String> {
        super::closest(text, old, "old_string")
    }

    #[test]
    fn whitespace_is_shown() {
        let said = closest(FILE, "  let x = 1;\n  let y = 2;\n").unwrap();
        assert!(said.contains("It differs from lines 2 to 3 only in whitespace"));
        let line = r#"line 3: "\tlet y = 2;" in the file, "  let y = 2;" in old_string"#;
        assert!(said.contains(line), "{said}");
        let said = closest("one\r\ntwo\n", "one\ntwo").unwrap();
        assert!(said.contains(r#"line 1: "one\r" in the file, "one" in old_string"#));
        assert!(!said.contains("line 2"), "{said}");
        // Within a line too.
        let said = closest("a\nlet  x = 1; // one\n", "let x =").unwrap();
        assert!(said.contains("It differs from line 2 only"), "{said}");
    }

    #[test]
    fn the_place_with_the_most_lines_in_common_is_the_closest() {
        let old = "fn b() {\n    let x = 2;\n    y\n}";
        let said = closest(FILE, old).unwrap();
        let expected = "The closest place is lines 6 to 9 (`-` is old_string, `+` is the file):\n \
                        fn b() {\n-    let x = 2;\n+    let x = 1;\n     y\n }\n";
        assert!(said.starts_with(expected), "{said}");
        let said = closest("one\ntwo\n", "zero\none\nthree\n").unwrap();
        assert!(said.contains("-zero"), "{said}");
    }

    #[test]
    fn a_similar_line_is_found_where_none_is_equal() {
        let said = closest(FILE, "    let y = 20;").unwrap();
        assert!(said.contains("The closest place is line 3 "), "{said}");
        assert!(said.contains("-    let y = 20;\n+\tlet y = 2;\n"), "{said}");
        assert_eq!(closest(FILE, "nothing of the kind"), None);
        assert_eq!(closest("", "x"), None);
        assert_eq!(closest("\n\n", "\n \n"), None);
    }

    #[test]
    fn it_takes_neither_long_nor_much_to_say() {
        let file = "let some_variable = another_variable;\n".repeat(100_000);
        let begin = Instant::now();
        let old = "let sime_variable = anither_variable;\n".repeat(300);
        let said = closest(&file, &old).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(10));
        assert!(said.len() < 3000, "{}", said.len());
        let long = format!("{}\nabc\nxyz\n", "x".repeat(1000));
        let said = closest(&long, &format!("{}\nabc\n", "y".repeat(1000))).unwrap();
        assert!(said.contains("+(a line of 1000 bytes)"), "{said}");
        assert_eq!(closest(&"x\n".repeat(3_000_000), "x\ny"), None);
    }
}
