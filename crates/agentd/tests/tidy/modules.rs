//! The modules of a crate, and what each uses of the others.
//!
//! A module is found by its declaration, from the crate's root downwards. Code under `#[cfg(test)]` is left out, with
//! the modules that it declares. To use an item that a module re-exports is to use the module that defines it, too.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer;
use super::paths::{self, Named};
use super::tree::File;

/// A module, by the names from the root down; the root is empty.
pub type ModulePath = Vec<String>;

/// One module uses another one.
pub struct Use {
    pub from: ModulePath,
    pub to: ModulePath,
    /// The file and line of the path that shows it.
    pub file: String,
    pub line: usize,
}

struct Module {
    file: String,
    imports: Vec<Named>,
    /// The paths outside imports.
    paths: Vec<Named>,
    /// The names that its items have, and those of their parts.
    defined: BTreeSet<String>,
}

pub struct Modules {
    modules: BTreeMap<ModulePath, Module>,
}

/// The roots among these files: each library, each program.
pub fn roots(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|file| {
        let (dir, name) = split(&file.path);
        let is_main = matches!(name, "lib.rs" | "main.rs") && dir.ends_with("/src");
        let is_program = file.is_rust() && dir.ends_with("/src/bin");
        file.krate().is_some() && (is_main || is_program)
    })
}

impl Modules {
    /// The modules below this root.
    pub fn read(files: &[File], root: &File) -> Self {
        let files: BTreeMap<&str, &File> = files
            .iter()
            .map(|file| (file.path.as_str(), file))
            .collect();
        let (dir, _) = split(&root.path);
        let mut modules = BTreeMap::new();
        let mut pending = vec![(ModulePath::new(), root)];
        while let Some((path, file)) = pending.pop() {
            let code = without_tests(&lexer::lex(&file.text).code);
            for name in declared(&code) {
                let below = [path.as_slice(), &[name]].concat();
                let place = format!("{dir}/{}", below.join("/"));
                let places = [format!("{place}.rs"), format!("{place}/mod.rs")];
                let found = places.iter().find_map(|place| files.get(place.as_str()));
                pending.extend(found.map(|file| (below, *file)));
            }
            let (imports, others) = paths::named(&code).into_iter().partition(|it| it.import);
            let module = Module {
                file: file.path.clone(),
                imports,
                paths: others,
                defined: defined(&code),
            };
            modules.insert(path, module);
        }
        Self { modules }
    }

    /// All uses of one module by another, in the order of the modules and their lines.
    pub fn uses(&self) -> Vec<Use> {
        let mut uses = Vec::new();
        for (from, module) in &self.modules {
            // A single word is a local name, or its import shows the use.
            let paths = module.paths.iter().filter(|it| it.segments.len() > 1);
            for named in module.imports.iter().chain(paths) {
                let used = self.absolute(from, named).map(|path| self.resolve(&path));
                let others = used.into_iter().flatten().filter(|to| to != from);
                uses.extend(others.map(|to| Use {
                    from: from.clone(),
                    to,
                    file: module.file.clone(),
                    line: named.line,
                }));
            }
        }
        uses
    }

    /// A path that is named in this module, from the root; none if it leads out of the crate, or is a local name.
    fn absolute(&self, module: &[String], named: &Named) -> Option<Vec<String>> {
        // The segment `*` only ends an import.
        let is_glob = named.segments.last().is_some_and(|last| last == "*");
        let segments = &named.segments[..named.segments.len() - usize::from(is_glob)];
        let first = segments.first()?;
        if first == "crate" {
            return Some(segments[1..].to_vec());
        }
        if first == "self" {
            return Some([module, &segments[1..]].concat());
        }
        let up = segments.iter().take_while(|it| *it == "super").count();
        if up > 0 {
            // Within a module of this file, the first `super` is the file.
            let up_from_file = up.saturating_sub(named.inside);
            let base = &module[..module.len().checked_sub(up_from_file)?];
            return Some([base, &segments[up..]].concat());
        }
        let child = [module, &segments[..1]].concat();
        let below = || [module, segments].concat();
        self.modules.contains_key(&child).then(below)
    }

    /// The modules that the path leads through: the one that it names, and where that has it from.
    fn resolve(&self, path: &[String]) -> Vec<ModulePath> {
        /// More than any chain of re-exports has. Two imports can name each other in a file that does not compile.
        const LONGEST: usize = 8;
        let mut used = Vec::new();
        let mut path = path.to_vec();
        while used.len() < LONGEST {
            let mut above = (0..=path.len()).rev().map(|length| &path[..length]);
            let module = above.find(|above| self.modules.contains_key(*above));
            let module = module.unwrap_or_default().to_vec();
            let next = path[module.len()..].split_first().and_then(|(name, rest)| {
                let import = self.imported(&module, name)?;
                Some([import.as_slice(), rest].concat())
            });
            used.push(module);
            match next {
                Some(next) => path = next,
                None => break,
            }
        }
        used
    }

    /// What a name stands for that this module imports.
    fn imported(&self, path: &[String], name: &str) -> Option<Vec<String>> {
        let module = self.modules.get(path)?;
        if let Some(import) = module.imports_of(name).next() {
            return self.absolute(path, import);
        }
        module.imports_of("*").find_map(|glob| {
            let from = self.absolute(path, glob)?;
            let has_it = self.modules.get(&from)?.has(name);
            has_it.then(|| [from.as_slice(), &[name.to_owned()]].concat())
        })
    }
}

impl Module {
    /// Its imports under this name.
    fn imports_of(&self, name: &str) -> impl Iterator<Item = &Named> {
        let imports = self.imports.iter();
        imports.filter(move |import| import.alias.as_deref() == Some(name))
    }

    fn has(&self, name: &str) -> bool {
        self.defined.contains(name) || self.imports_of(name).next().is_some()
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

/// The modules that have a file of their own.
fn declared(code: &str) -> Vec<String> {
    let statements = code.split_inclusive([';', '{', '}']);
    let declarations = statements.filter_map(|text| {
        // A raw name is written `r#name`.
        let words = words(text.strip_suffix(';')?).filter(|word| *word != "r");
        match words.collect::<Vec<&str>>().as_slice() {
            [.., "mod", name] => Some((*name).to_owned()),
            _ => None,
        }
    });
    declarations.collect()
}

/// The names of items, wherever they are in the module.
fn defined(code: &str) -> BTreeSet<String> {
    const KEYWORDS: &[&str] = &[
        "const",
        "enum",
        "fn",
        "macro_rules",
        "static",
        "struct",
        "trait",
        "type",
        "union",
    ];
    let words: Vec<&str> = words(code).collect();
    let pairs = words.windows(2).filter(|pair| KEYWORDS.contains(&pair[0]));
    pairs.map(|pair| pair[1].to_owned()).collect()
}

/// The code with every item under `#[cfg(test)]` blanked out.
fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        kept.push_str(&rest[..at]);
        let (item, after) = rest[at..].split_at(item_length(&rest[at..]));
        kept.extend(item.chars().filter(|c| *c == '\n'));
        rest = after;
    }
    kept.push_str(rest);
    kept
}

/// The length of the item at the beginning of the code, with its attributes: up to its `;`, or the end of its braces.
fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            // The end of what is around the item.
            '}' | ')' | ']' if depth == 0 => return at,
            '}' | ')' | ']' => depth -= 1,
            _ => {}
        }
        let is_group = || code[at + c.len_utf8()..].trim_start().starts_with(';');
        if depth == 0 && (c == ';' || (c == '}' && !is_group())) {
            return at + c.len_utf8();
        }
    }
    code.len()
}

#[test]
fn code_of_tests_is_left_out() {
    let text = "mod a;\n#[cfg(test)]\nmod b;\n#[cfg(test)]\nuse crate::{c, d};\nimpl E {\n    #[cfg(test)]\n    \
                fn f() { g(h) }\n    fn i() {}\n}\n#[cfg(test)]\n#[allow(unused)]\nmod tests {\n    fn j() {}\n}\n";
    let code = without_tests(text);
    assert_eq!(code.lines().count(), text.lines().count());
    let words: Vec<&str> = words(&code).collect();
    assert_eq!(words, ["mod", "a", "impl", "E", "fn", "i"]);
}

#[test]
fn modules_with_a_file_are_told_from_those_without() {
    let code = "#[macro_use]\nmod a;\npub(crate) mod r#continue;\nmod b { mod c; }\nlet mode = d;\npub mod e;\n";
    assert_eq!(declared(code), ["a", "continue", "c", "e"]);
}
