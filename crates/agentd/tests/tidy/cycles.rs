//! The modules of a crate depend downwards only. For each module, its children use each other without a cycle; each
//! child counts together with everything below it. That a parent and its child use each other is no cycle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::modules::{self, ModulePath, Modules, Use};
use super::tree::{self, File, Finding};

const RULE: &str = "cycle";

/// What the children of one module use of each other: the first use of the second child by the first one.
type Children<'a> = BTreeMap<ModulePath, BTreeMap<ModulePath, &'a Use>>;

fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for root in modules::roots(files) {
        let uses = Modules::read(files, root).uses();
        for children in siblings(&uses).values() {
            findings.extend(cycles(children).iter().map(|cycle| finding(cycle)));
        }
    }
    findings
}

/// The uses between children of the same module, by that module.
fn siblings(uses: &[Use]) -> BTreeMap<ModulePath, Children<'_>> {
    let mut all: BTreeMap<ModulePath, Children<'_>> = BTreeMap::new();
    for one in uses {
        let pairs = one.from.iter().zip(&one.to);
        let shared = pairs.take_while(|(from, to)| from == to).count();
        // One of them is above the other.
        if shared == one.from.len() || shared == one.to.len() {
            continue;
        }
        let children = all.entry(one.from[..shared].to_vec()).or_default();
        let from = children.entry(one.from[..=shared].to_vec()).or_default();
        from.entry(one.to[..=shared].to_vec()).or_insert(one);
    }
    all
}

/// The shortest cycle through each module that is in one; modules that are in a cycle already have no second one.
fn cycles<'a>(children: &Children<'a>) -> Vec<Vec<&'a Use>> {
    let mut known = BTreeSet::new();
    let mut cycles = Vec::new();
    for child in children.keys() {
        if !known.contains(child)
            && let Some((members, cycle)) = cycle_through(children, child)
        {
            known.extend(members);
            cycles.push(cycle);
        }
    }
    cycles
}

/// The shortest way from a child back to itself: the children on it, and their uses.
fn cycle_through<'a>(
    children: &Children<'a>,
    start: &ModulePath,
) -> Option<(Vec<ModulePath>, Vec<&'a Use>)> {
    let mut ways = VecDeque::from([(vec![start.clone()], Vec::new())]);
    let mut seen = BTreeSet::new();
    while let Some((members, way)) = ways.pop_front() {
        for (next, one) in members.last().and_then(|last| children.get(last))? {
            let way: Vec<&Use> = [way.as_slice(), &[*one]].concat();
            if next == start {
                return Some((members, way));
            }
            if children.contains_key(next) && seen.insert(next) {
                ways.push_back((
                    [members.as_slice(), std::slice::from_ref(next)].concat(),
                    way,
                ));
            }
        }
    }
    None
}

fn finding(cycle: &[&Use]) -> Finding {
    let shown = |module: &[String]| module.join("::");
    let steps: Vec<String> = cycle
        .iter()
        .map(|one| {
            let (from, to) = (shown(&one.from), shown(&one.to));
            format!("`{from}` uses `{to}` ({}:{})", one.file, one.line)
        })
        .collect();
    let first = cycle.first();
    Finding {
        path: first.map_or_else(String::new, |one| one.file.clone()),
        line: first.map_or(0, |one| one.line),
        rule: RULE,
        message: format!(
            "modules use each other in a cycle: {}; move what is shared into a module below",
            steps.join(", ")
        ),
    }
}

#[test]
fn modules_depend_downwards_only() -> std::io::Result<()> {
    tree::assert_none(&check(&tree::read()?));
    Ok(())
}

/// The files of a made-up crate.
fn made_up(files: &[(&str, &str)]) -> Vec<File> {
    let files = files.iter();
    let file = |(path, text): &(&str, &str)| File::new(&format!("crates/made-up/src/{path}"), text);
    files.map(file).collect()
}

fn places(findings: &[Finding]) -> Vec<(&str, usize)> {
    let places = findings.iter();
    places
        .map(|it| (it.path.trim_start_matches("crates/made-up/src/"), it.line))
        .collect()
}

#[test]
fn a_cycle_is_found_and_its_files_are_named() {
    let files = made_up(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\n"),
        (
            "a.rs",
            "//! A.\nuse std::io;\nuse crate::{d, b::{self, B}};\n",
        ),
        ("b.rs", "fn f() { super::c::g(); }\n"),
        ("c.rs", "use super::a as other;\n"),
        ("d.rs", "// use crate::a;\n"),
    ]);
    let findings = check(&files);
    assert_eq!(places(&findings), [("a.rs", 3)]);
    let message = &findings[0].message;
    for part in [
        "`a` uses `b` (crates/made-up/src/a.rs:3)",
        "`b` uses `c` (crates/made-up/src/b.rs:1)",
        "`c` uses `a` (crates/made-up/src/c.rs:1)",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn parent_and_child_are_no_cycle() {
    let files = made_up(&[
        ("lib.rs", "pub mod a;\npub use a::A;\npub struct Shared;\n"),
        (
            "a/mod.rs",
            "mod b;\nmod c;\npub use self::b::B;\nuse crate::Shared;\npub struct A;\n",
        ),
        ("a/b.rs", "use super::{A, c};\nuse crate::Shared;\n"),
        (
            "a/c.rs",
            "use super::A;\nuse self::inner::f;\nmod inner { use super::super::A; }\n",
        ),
    ]);
    tree::assert_none(&check(&files));
}

#[test]
fn a_child_counts_with_everything_below_it() {
    let files = made_up(&[
        ("main.rs", "mod a;\nmod b;\n"),
        ("a.rs", "mod one;\nmod two;\n"),
        (
            "a/one.rs",
            "fn f() -> crate::b::three::T { crate::b::three::T }\n",
        ),
        ("a/two.rs", ""),
        ("b.rs", "pub mod three;\nmod four;\n"),
        ("b/three.rs", ""),
        ("b/four.rs", "\nuse crate::a::two;\n"),
    ]);
    let findings = check(&files);
    assert_eq!(places(&findings), [("a/one.rs", 1)]);
    let message = &findings[0].message;
    assert!(
        message.contains("`b::four` uses `a::two` (crates/made-up/src/b/four.rs:2)"),
        "{message}"
    );
}

#[test]
fn a_re_export_does_not_hide_a_cycle() {
    let files = made_up(&[
        (
            "lib.rs",
            "mod a;\nmod b;\nmod c;\npub use a::A;\npub use b::*;\n",
        ),
        ("a.rs", "use crate::B;\npub struct A;\n"),
        ("b.rs", "pub struct B(crate::A);\n"),
        ("c.rs", "use crate::{A, B};\n"),
    ]);
    assert_eq!(places(&check(&files)), [("a.rs", 1)]);
    let files = made_up(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
        ("a.rs", "use crate::b::C;\n"),
        ("b.rs", "use crate::a;\npub use crate::c::*;\n"),
        ("c.rs", "pub struct C;\n"),
    ]);
    assert_eq!(places(&check(&files)), [("a.rs", 1)]);
}

#[test]
fn tests_and_other_crates_are_no_part_of_a_cycle() {
    let mut files = made_up(&[
        ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod c;\n"),
        (
            "a.rs",
            "use crate::b;\n#[cfg(test)]\nmod tests {\n    use crate::c;\n}\n",
        ),
        ("b.rs", "use a::A;\n#[cfg(test)]\nmod tests;\n"),
        ("b/tests.rs", "use crate::a;\n"),
        ("c.rs", "use crate::{a, b};\n"),
    ]);
    files.push(File::new("crates/other/src/lib.rs", "mod b;\nmod a;\n"));
    files.push(File::new("crates/other/src/b.rs", "use crate::a;\n"));
    files.push(File::new("crates/other/src/a.rs", ""));
    tree::assert_none(&check(&files));
}
