//! The paths that a user selects: files, or directories with everything in them.

/// Which paths are meant. Without any, all are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    paths: Vec<String>,
}

impl Selection {
    /// These paths; relative ones are in the directory.
    pub fn new(dir: &str, paths: &[String]) -> Self {
        let paths = paths.iter().map(|path| Self::absolute(dir, path));
        Self {
            paths: paths.collect(),
        }
    }

    /// An absolute path without `.` and `..`, which are resolved as text; a relative one is in the directory.
    pub fn absolute(dir: &str, path: &str) -> String {
        let whole = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("{dir}/{path}"),
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in whole.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        format!("/{}", parts.join("/"))
    }

    pub fn is_all(&self) -> bool {
        self.paths.is_empty()
    }

    pub fn has(&self, path: &str) -> bool {
        self.is_all() || self.paths.iter().any(|given| is_in(path, given))
    }

    /// The selected paths that none of these is, or is in.
    pub fn without<'a>(&'a self, paths: impl Iterator<Item = &'a str> + Clone) -> Vec<&'a str> {
        let given = self.paths.iter().map(String::as_str);
        given
            .filter(|given| !paths.clone().any(|path| is_in(path, given)))
            .collect()
    }
}

/// Whether a path is this one, or is in this directory.
fn is_in(path: &str, given: &str) -> bool {
    let rest = path.strip_prefix(given);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || given == "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_selects_what_is_in_it() {
        let paths = ["lib/", "../other/a.txt", "/b"].map(str::to_owned);
        let selection = Selection::new("/src", &paths);
        for (path, is_selected) in [
            ("/src/lib", true),
            ("/src/lib/main.rs", true),
            ("/src/lib2/main.rs", false),
            ("/other/a.txt", true),
            ("/other/a.txt2", false),
            ("/b/c", true),
            ("/src/b", false),
        ] {
            assert_eq!(selection.has(path), is_selected, "{path}");
        }
        assert!(Selection::default().has("/any"));
        assert!(Selection::new("/src", &["/".to_owned()]).has("/any"));
        let known = ["/src/lib/main.rs"];
        assert_eq!(selection.without(known.into_iter()), ["/other/a.txt", "/b"]);
    }
}
