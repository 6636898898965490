//! The dependencies in a `Cargo.toml`, read line by line.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Normal,
    Dev,
    Build,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Dependency {
    pub line: usize,
    /// The name of the package, whatever it is called here.
    pub name: String,
    pub kind: Kind,
    /// All that is written about it, in one line.
    pub spec: String,
}

impl Dependency {
    /// Whether this is among the features it asks for.
    pub fn has_feature(&self, feature: &str) -> bool {
        self.spec.contains(&format!("\"{feature}\""))
    }
}

/// Those of every section, `[target.….dependencies]` and `[workspace.dependencies]` too.
pub fn dependencies(text: &str) -> Vec<Dependency> {
    let mut found: Vec<Dependency> = Vec::new();
    let mut section = Section::Other;
    let mut depth = 0;
    for (number, line) in text.lines().enumerate() {
        let line = without_comment(line).trim();
        if line.is_empty() {
            continue;
        }
        if depth == 0 && line.starts_with('[') {
            section = Section::of(line.trim_matches(['[', ']']));
            if let Section::One(kind, name) = &section {
                found.push(Dependency {
                    line: number + 1,
                    name: name.clone(),
                    kind: *kind,
                    spec: String::new(),
                });
            }
            continue;
        }
        let starts = depth == 0;
        depth += opened(line);
        match (&section, starts) {
            (Section::Other, _) => continue,
            (Section::Many(kind), true) => {
                let Some((key, value)) = line.split_once('=') else {
                    continue;
                };
                let name = key.split('.').next().unwrap_or(key);
                found.push(Dependency {
                    line: number + 1,
                    name: name.trim().trim_matches('"').to_string(),
                    kind: *kind,
                    spec: value.trim().to_string(),
                });
            }
            (Section::Many(_), false) | (Section::One(..), _) => {
                if let Some(last) = found.last_mut() {
                    last.spec.push(' ');
                    last.spec.push_str(line);
                }
            }
        }
    }
    for dependency in &mut found {
        if let Some(package) = renamed(&dependency.spec) {
            dependency.name = package;
        }
    }
    found
}

enum Section {
    /// `[dependencies]`: one or more lines each.
    Many(Kind),
    /// `[dependencies.name]`: all of it is about one.
    One(Kind, String),
    Other,
}

impl Section {
    fn of(header: &str) -> Self {
        let parts: Vec<&str> = header.split('.').map(str::trim).collect();
        let kind_of = |part: &str| match part {
            "dependencies" => Some(Kind::Normal),
            "dev-dependencies" => Some(Kind::Dev),
            "build-dependencies" => Some(Kind::Build),
            _ => None,
        };
        match parts.as_slice() {
            [.., last] if let Some(kind) = kind_of(last) => Self::Many(kind),
            [.., section, name] if let Some(kind) = kind_of(section) => {
                Self::One(kind, name.trim_matches('"').to_string())
            }
            _ => Self::Other,
        }
    }
}

/// Up to a `#` that is not in a string.
fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted => return &line[..at],
            _ => {}
        }
    }
    line
}

/// How many brackets and braces stay open after this line.
fn opened(line: &str) -> i32 {
    line.chars()
        .map(|c| match c {
            '[' | '{' => 1,
            ']' | '}' => -1,
            _ => 0,
        })
        .sum()
}

/// The value of `package = "…"`.
fn renamed(spec: &str) -> Option<String> {
    let (before, after) = spec.split_once("package")?;
    if before.ends_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_' || c == '"') {
        return None;
    }
    let value = after.trim_start().strip_prefix('=')?;
    value.split('"').nth(1).map(str::to_string)
}

#[test]
fn every_way_to_write_a_dependency_is_read() {
    let text = r#"
[package]
name = "agentd" # not = "a dependency"

[dependencies]
agentd-core.workspace = true
uuid = { workspace = true, features = [
    "v7", # a comment
] }
sql = { package = "rusqlite", version = "1" }

[target.'cfg(unix)'.dependencies]
libc = "0.2"

[dependencies.tokio]
version = "1"

[dev-dependencies]
agentd-testkit = { path = "../agentd-testkit" }

[lints]
workspace = true
"#;
    let found = dependencies(text);
    let brief: Vec<(usize, &str, Kind)> = found
        .iter()
        .map(|d| (d.line, d.name.as_str(), d.kind))
        .collect();
    assert_eq!(
        brief,
        [
            (6, "agentd-core", Kind::Normal),
            (7, "uuid", Kind::Normal),
            (10, "rusqlite", Kind::Normal),
            (13, "libc", Kind::Normal),
            (15, "tokio", Kind::Normal),
            (19, "agentd-testkit", Kind::Dev),
        ]
    );
    assert!(found[1].has_feature("v7") && !found[1].has_feature("v4"));
}
