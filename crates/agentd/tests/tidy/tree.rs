//! The files of the repository, and what was found wrong with them.

use std::fmt::{self, Display};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One text file.
pub struct File {
    /// From the root of the repository, with `/` between the parts.
    pub path: String,
    pub text: String,
}

impl File {
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_string(),
            text: text.to_string(),
        }
    }

    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub fn is_manifest(&self) -> bool {
        self.file_name() == "Cargo.toml"
    }

    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The crate it belongs to, by directory: `crates/NAME/…`, or `xtask/…`.
    pub fn krate(&self) -> Option<&str> {
        let mut parts = self.path.split('/');
        match parts.next() {
            Some("crates") => {
                let name = parts.next();
                parts.next().and(name)
            }
            Some("xtask") => Some("xtask"),
            _ => None,
        }
    }

    /// The path inside its crate.
    fn inner(&self) -> &str {
        match self.krate() {
            Some("xtask") => self.path.trim_start_matches("xtask/"),
            Some(name) => &self.path["crates/".len() + name.len() + 1..],
            None => &self.path,
        }
    }

    pub fn is_src(&self) -> bool {
        self.krate().is_some() && self.inner().starts_with("src/")
    }

    /// In a directory of tests, or the `tests.rs` beside one; inside `src` too.
    pub fn is_tests(&self) -> bool {
        self.krate().is_some()
            && self
                .inner()
                .split('/')
                .any(|part| part == "tests" || part == "tests.rs")
    }

    pub fn is_benches(&self) -> bool {
        self.krate().is_some() && self.inner().starts_with("benches/")
    }
}

/// A breach of a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub path: String,
    /// From one; zero when it is about the whole file.
    pub line: usize,
    pub rule: &'static str,
    /// What was found and what to do about it.
    pub message: String,
}

impl Finding {
    pub fn new(file: &File, line: usize, rule: &'static str, message: impl Into<String>) -> Self {
        Self {
            path: file.path.clone(),
            line,
            rule,
            message: message.into(),
        }
    }
}

impl Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": [{}] {}", self.rule, self.message)
    }
}

/// Fails the test with everything that was found.
pub fn assert_none(findings: &[Finding]) {
    let shown: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(
        findings.is_empty(),
        "{} finding(s):\n{}",
        findings.len(),
        shown.join("\n")
    );
}

/// Fails the test unless the findings are on these lines, in this order.
pub fn assert_lines(findings: &[Finding], lines: &[usize]) {
    let found: Vec<usize> = findings.iter().map(|finding| finding.line).collect();
    assert_eq!(found, lines, "{findings:#?}");
}

pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Every text file of the repository, sorted by path. What is not UTF-8 is left out.
pub fn read() -> io::Result<Vec<File>> {
    let root = root();
    let mut files = Vec::new();
    walk(&root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(
        files.iter().any(|file| file.path == "Cargo.toml"),
        "no Cargo.toml in {}: these tests look in the wrong place",
        root.display()
    );
    Ok(files)
}

fn walk(dir: &Path, prefix: &str, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let kind = entry.file_type()?;
        let path = format!("{prefix}{name}");
        if kind.is_dir() {
            // Cargo marks its target directories, wherever they are, with such a file.
            let is_cache = entry.path().join("CACHEDIR.TAG").exists();
            if !is_cache && name != "target" && name != ".git" {
                walk(&entry.path(), &format!("{path}/"), files)?;
            }
        } else if kind.is_file() {
            match fs::read_to_string(entry.path()) {
                Ok(text) => files.push(File { path, text }),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                // A file that went away between the listing and here, as editors' backups do.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

#[test]
fn a_file_knows_its_crate_and_its_part_of_it() {
    let src = File::new("crates/agentd-core/src/wire/mod.rs", "");
    assert_eq!(src.krate(), Some("agentd-core"));
    assert!(src.is_src() && !src.is_tests());
    let tests = File::new("crates/agentd/tests/tidy/main.rs", "");
    assert_eq!(tests.krate(), Some("agentd"));
    assert!(tests.is_tests() && !tests.is_src());
    let unit = File::new("crates/agentd-store/src/read/tests.rs", "");
    assert!(unit.is_tests() && unit.is_src());
    let tool = File::new("xtask/src/main.rs", "");
    assert_eq!(tool.krate(), Some("xtask"));
    assert!(tool.is_src());
    assert_eq!(File::new("docs/design.md", "").krate(), None);
    assert_eq!(File::new("crates/README.md", "").krate(), None);
}
