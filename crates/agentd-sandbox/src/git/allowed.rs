//! Which settings of a repository a tool may make. None of them names a program.

use super::config::Entry;

/// Keys without a subsection that a repository may have which a tool made.
const HARMLESS: &[&str] = &[
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.precomposeunicode",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.sharedrepository",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
    "core.worktree",
    "extensions.objectformat",
    "extensions.partialclone",
    "extensions.preciousobjects",
    "extensions.refstorage",
    "extensions.relativeworktrees",
    "extensions.worktreeconfig",
    "fetch.prune",
    "gc.auto",
    "init.defaultbranch",
    "merge.conflictstyle",
    "merge.ff",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "user.email",
    "user.name",
];

/// The same of the sections that have one subsection for each name.
const NAMED: &[(&str, &[&str])] = &[
    (
        "branch",
        &["description", "merge", "pushremote", "rebase", "remote"],
    ),
    (
        "remote",
        &[
            "fetch",
            "mirror",
            "partialclonefilter",
            "promisor",
            "prune",
            "push",
            "pushurl",
            "tagopt",
            "url",
        ],
    ),
    ("submodule", &["active", "branch", "url"]),
];

/// What a tool may add to a repository that the user made, if it is new there.
const ADDED: &[&str] = &["user.email", "user.name"];
const ADDED_NAMED: &[(&str, &[&str])] = &[
    ("branch", &["merge", "pushremote", "rebase", "remote"]),
    ("remote", &["fetch", "url"]),
    ("submodule", &["active", "url"]),
];

/// Whether a repository that a tool made may have it.
pub fn is_harmless(entry: &Entry) -> bool {
    is_listed(entry, HARMLESS, NAMED)
}

/// Whether a tool may add it to these entries: no value that the user has changes its meaning.
pub fn may_add(entry: &Entry, present: &[Entry]) -> bool {
    let is_new = match &entry.subsection {
        None => !present.iter().any(|other| is_same_key(other, entry)),
        // A new remote or branch, as a whole.
        Some(_) => !present
            .iter()
            .any(|other| other.section == entry.section && other.subsection == entry.subsection),
    };
    is_new && is_listed(entry, ADDED, ADDED_NAMED)
}

fn is_same_key(one: &Entry, other: &Entry) -> bool {
    (&one.section, &one.subsection, &one.key) == (&other.section, &other.subsection, &other.key)
}

fn is_listed(entry: &Entry, plain: &[&str], named: &[(&str, &[&str])]) -> bool {
    let is_listed = match &entry.subsection {
        None => plain.contains(&name(entry).as_str()),
        Some(_) => named
            .iter()
            .any(|(section, keys)| *section == entry.section && keys.contains(&entry.key.as_str())),
    };
    let mut names = entry.subsection.iter().flat_map(|name| name.chars());
    is_listed
        && !names.any(char::is_control)
        && entry
            .value
            .as_deref()
            .is_none_or(|value| is_plain(entry, value))
}

/// An address may name a program (`ext::sh -c …`), or be taken for an option.
fn is_plain(entry: &Entry, value: &str) -> bool {
    let is_address = matches!(
        entry.key.as_str(),
        "url" | "pushurl" | "remote" | "pushremote"
    );
    let is_printable = !value.chars().any(char::is_control);
    is_printable && !(is_address && (value.contains("::") || value.starts_with('-')))
}

/// `remote.origin.url`.
pub fn name(entry: &Entry) -> String {
    match &entry.subsection {
        Some(sub) => format!("{}.{sub}.{}", entry.section, entry.key),
        None => format!("{}.{}", entry.section, entry.key),
    }
}

/// The entries as git writes them.
pub fn render(entries: &[Entry]) -> String {
    let mut text = String::new();
    let mut header = None;
    for entry in entries {
        let wanted = (&entry.section, &entry.subsection);
        if header != Some(wanted) {
            let sub = entry.subsection.as_ref().map(|sub| {
                let sub = sub.replace('\\', "\\\\").replace('"', "\\\"");
                format!(" \"{sub}\"")
            });
            text.push_str(&format!("[{}{}]\n", entry.section, sub.unwrap_or_default()));
            header = Some(wanted);
        }
        match &entry.value {
            Some(value) => {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"");
                text.push_str(&format!("\t{} = \"{value}\"\n", entry.key));
            }
            None => text.push_str(&format!("\t{}\n", entry.key)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::config::parse;
    use super::{is_harmless, may_add, render};

    fn one(text: &str) -> super::Entry {
        parse(text).unwrap().remove(0)
    }

    #[test]
    fn nothing_that_names_a_program_is_allowed() {
        for text in [
            "[core]\nfsmonitor = x",
            "[core]\nhooksPath = x",
            "[core]\npager = x",
            "[core]\neditor = x",
            "[core]\nsshCommand = x",
            "[core]\naskPass = x",
            "[core]\ngitProxy = x",
            "[core]\nattributesFile = x",
            "[core]\nalternateRefsCommand = x",
            "[alias]\nst = !x",
            "[filter \"f\"]\nclean = x",
            "[filter \"f\"]\nprocess = x",
            "[diff]\nexternal = x",
            "[diff \"d\"]\ntextconv = x",
            "[merge \"m\"]\ndriver = x",
            "[gpg]\nprogram = x",
            "[gpg \"ssh\"]\nprogram = x",
            "[credential]\nhelper = x",
            "[include]\npath = x",
            "[includeIf \"gitdir:/\"]\npath = x",
            "[submodule \"s\"]\nupdate = !x",
            "[remote \"r\"]\nuploadpack = x",
            "[remote \"r\"]\nvcs = x",
            "[remote \"r\"]\nurl = ext::sh -c x",
            "[remote \"r\"]\nurl = -x",
            "[branch \"b\"]\nremote = ext::x",
            "[sequence]\neditor = x",
            "[pager]\nlog = x",
            "[trailer \"t\"]\ncommand = x",
            "[uploadpack]\npackObjectsHook = x",
            "[url \"ext::x\"]\ninsteadOf = https://",
            "[browser \"b\"]\ncmd = x",
            "[protocol \"ext\"]\nallow = always",
            "[maintenance]\nrepo = x",
            "[user]\nsigningKey = x",
            "[commit]\ngpgSign = true",
        ] {
            assert!(!is_harmless(&one(text)), "{text}");
            assert!(!may_add(&one(text), &[]), "{text}");
        }
    }

    /// Regression: git read `remote.origin.uploadpack`.
    #[test]
    fn a_name_that_git_reads_as_a_shorter_one_is_none() {
        let text = "[remote \"origin.uploadpack\0\"]\nurl = x";
        assert_eq!(parse(text), None);
        let mut entry = one("[remote \"origin\"]\nurl = x");
        assert!(is_harmless(&entry) && may_add(&entry, &[]));
        for end in ['\0', '\u{1}', '\u{7f}'] {
            entry.subsection = Some(format!("origin.uploadpack{end}"));
            assert!(!is_harmless(&entry) && !may_add(&entry, &[]), "{end:?}");
        }
    }

    #[test]
    fn only_what_is_new_is_added() {
        let present = parse("[user]\nname = a\n[remote \"origin\"]\nfetch = x\n").unwrap();
        for (text, is_added) in [
            ("[user]\nname = b", false),
            ("[user]\nemail = b", true),
            ("[remote \"origin\"]\nurl = b", false),
            ("[remote \"other\"]\nurl = b", true),
            ("[branch \"main\"]\nmerge = b", true),
            ("[core]\nbare = false", false),
        ] {
            assert_eq!(may_add(&one(text), &present), is_added, "{text}");
        }
    }

    #[test]
    fn what_is_rendered_is_read_again() {
        let text = "[a]\nb = \"c;#\\\\ \\\"d\"\nflag\n[r \"x\\\"y\\\\\"]\nurl = \" z \"\n";
        let entries = parse(text).unwrap();
        assert_eq!(parse(&render(&entries)).unwrap(), entries);
    }
}
