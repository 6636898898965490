//! The repository explains itself: what a comment or a page refers to is in the repository, and links have a target.

use super::lexer;
use super::tree::{self, File, Finding};

/// What refers to a document that is not in the repository: a section of one, or a directory beside the repository.
const OUTSIDE: &[&str] = &["§", "../shared"];

/// Documents that are not in the repository. Any other `.md` file in capital letters is found without being listed here.
const DOCUMENTS: &[&str] = &["DESIGN", "HOOKS", "LESSONS", "SANDBOX", "STACK", "STYLE"];

/// Files of users' projects that agentd reads. They are subjects here, not sources.
const OF_PROJECTS: &[&str] = &["AGENTS.md", "CLAUDE.md", "SKILL.md"];

const ADVICE: &str = "write the fact itself, or link to a page in docs/";

fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (line, text) in prose(file) {
            findings.extend(citations(files, file, line, &text));
            if file.path.ends_with(".md") {
                findings.extend(links(files, file, line, &text));
            }
        }
    }
    findings
}

/// The lines that people read: comments of Rust code; all of a page, of a manifest and of CI's script.
fn prose(file: &File) -> Vec<(usize, String)> {
    if file.is_rust() {
        return lexer::lex(&file.text).comments;
    }
    let is_read = [".md", ".toml"]
        .iter()
        .any(|ending| file.path.ends_with(ending));
    if !is_read && !file.path.starts_with(".ci/") {
        return Vec::new();
    }
    let lines = file.text.lines().enumerate();
    lines.map(|(n, text)| (n + 1, text.to_string())).collect()
}

fn citations(files: &[File], file: &File, line: usize, text: &str) -> Vec<Finding> {
    let outside = OUTSIDE.iter().filter(|mark| text.contains(**mark));
    let mut cited: Vec<&str> = outside.copied().collect();
    let words = text.split(|c: char| !c.is_alphanumeric() && !"_-./".contains(c));
    let words = words.map(|word| word.trim_matches(['.', '/', '-']));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    for (at, word) in words.iter().copied().enumerate() {
        let is_capitals = |name: &str| !name.is_empty() && !name.contains(char::is_lowercase);
        let is_absent = match word.strip_suffix(".md") {
            Some(name) if name.starts_with("docs/") => !files.iter().any(|file| file.path == word),
            Some(_) if OF_PROJECTS.iter().any(|known| word.ends_with(known)) => false,
            Some(name) if is_capitals(name) => !files.iter().any(|file| file.file_name() == word),
            _ => DOCUMENTS.contains(&word) || is_numbered_issue(&words[at..]),
        };
        if is_absent {
            cited.push(word);
        }
    }
    let message = |cited: &str| format!("`{cited}` is not in the repository: {ADVICE}");
    cited
        .into_iter()
        .map(|cited| Finding::new(file, line, "citation", message(cited)))
        .collect()
}

/// The word and a number. A public report names its project instead, as in `goose#7962`.
fn is_numbered_issue(words: &[&str]) -> bool {
    match words {
        [word, number, ..] => {
            word.eq_ignore_ascii_case("issue") && number.starts_with(|c: char| c.is_ascii_digit())
        }
        _ => false,
    }
}

/// Links of a page to a file or heading that does not exist.
fn links(files: &[File], page: &File, line: usize, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for link in text.split("](").skip(1) {
        let Some((target, _)) = link.split_once(')') else {
            continue;
        };
        if target.contains("://") {
            continue;
        }
        let (path, heading) = target.split_once('#').unwrap_or((target, ""));
        let path = resolved(&page.path, path);
        let linked = files.iter().find(|file| file.path == path);
        let is_directory = || files.iter().any(|file| file.path.starts_with(&path));
        let is_found = match linked {
            Some(linked) => heading.is_empty() || has_heading(linked, heading),
            None => path.ends_with('/') && is_directory(),
        };
        if !is_found {
            let message = format!("the link `{target}` has no target");
            findings.push(Finding::new(page, line, "citation", message));
        }
    }
    findings
}

/// The path from the root of the repository. An empty path is the page itself.
fn resolved(page: &str, path: &str) -> String {
    if path.is_empty() {
        return page.to_string();
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether a heading has this anchor: its words in lower case, with `-` for each space.
fn has_heading(page: &File, anchor: &str) -> bool {
    let headings = page.text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| line.trim_start_matches('#').trim().to_lowercase())
        .any(|heading| {
            let kept = heading
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            let slug: String = kept.collect();
            slug.replace(' ', "-") == anchor
        })
}

#[test]
fn everything_cited_is_in_the_repository() -> std::io::Result<()> {
    tree::assert_none(&check(&tree::read()?));
    Ok(())
}

#[test]
fn a_document_that_is_not_in_the_repository_is_found() {
    let mut cited: Vec<String> = OUTSIDE.iter().map(|mark| format!("{mark} 4")).collect();
    cited.extend(DOCUMENTS.iter().map(|name| format!("{name}: a rule")));
    cited.extend(DOCUMENTS.iter().map(|name| format!("{name}.md")));
    cited.extend(["NOTES.md", "(see PLAN.md)", "docs/gone.md"].map(str::to_string));
    cited.extend(["issue 12", "Issue 1/5", "issue #3"].map(str::to_string));
    for cited in cited {
        let text = format!("fn f() {{}}\n/// As {cited}.\nfn g() {{}} // {cited}\n");
        let source = File::new("crates/agentd-core/src/a.rs", &text);
        tree::assert_lines(&check(&[source]), &[2, 3]);
        let text = format!("# A\n\nAs {cited} says.\n");
        for path in ["docs/a.md", "Cargo.toml", ".ci/run"] {
            tree::assert_lines(&check(&[File::new(path, &text)]), &[3]);
        }
    }
}

#[test]
fn a_link_without_a_target_is_found() {
    let text = "# A page\n\n## What is kept?\n\n[a](b.md) [b](../README.md) [c](design/) [d](b.md#two-words)\n\
                [e](#what-is-kept) [f](https://example.com/x#y)\n[g](c.md)\n[h](b.md#three)\n[i](gone/)\n[j](#kept)\n";
    let page = File::new("docs/a.md", text);
    let other = File::new("docs/b.md", "## Two words\n");
    let note = File::new("docs/design/001-a.md", "");
    let readme = File::new("README.md", "");
    let found = check(&[page, other, note, readme]);
    tree::assert_lines(&found, &[7, 8, 9, 10]);
}

#[test]
fn a_public_report_and_a_page_of_the_repository_are_no_finding() {
    let text =
        "// goose#7962, RFC 9457. See docs/a.md and README.md.\nlet s = \"NOTES.md, DESIGN\";\n";
    let source = File::new("crates/agentd-core/src/a.rs", text);
    let page = File::new(
        "docs/a.md",
        "AGENTD_SANDBOX and the sandbox; `agent.md`, ~/.claude/CLAUDE.md\n",
    );
    let readme = File::new("README.md", "");
    tree::assert_none(&check(&[source, page, readme]));
}
