//! A process of the file tools: does file work until its input ends. It is this program, started by the agent's runtime as a
//! task in a view of its own: see `file_process`.

use super::blocking::{Stop, broken};
use super::context::{Setup, ToolContext, Within};
use super::failure::Failure;
use super::file_process::{ARGUMENT, read_frame, write_frame};
use super::file_work::{FileWork, unpacked};
use super::{
    apply_patch, edit_file, list_files, named_files, read_file, replaced, search_files, write_file,
};
use agentd_core::id::BootId;
use agentd_failpoint::{self as failpoint, plan::Role};
use agentd_process::{RUNTIME_BYTES, limit_own_memory};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::ffi::OsString;
use std::io::{self, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// If this process was started for this: does the work until its input ends, and never returns.
pub fn run_if_asked(args: impl IntoIterator<Item = OsString>) {
    let mut args = args.into_iter().skip(1);
    if args.next().is_none_or(|first| first != ARGUMENT) {
        return;
    }
    if let Some(lab) = args.next() {
        // The lab's directory is visible only in some sandboxes.
        let _unseen = failpoint::enter(Path::new(&lab), Path::new(&lab), Role::Tool);
    }
    let code = match limit_own_memory(RUNTIME_BYTES).and_then(|()| serve()) {
        Ok(()) => 0,
        Err(_) => 1,
    };
    std::process::exit(code);
}

fn serve() -> io::Result<()> {
    // It knows the secrets that it redacts: other processes of the same user must not read its memory.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut from = BufReader::new(io::stdin().lock());
    let mut to = io::stdout().lock();
    let Some(setup) = read_frame(&mut from)? else {
        return Ok(());
    };
    let setup: Setup<'_> = serde_json::from_slice(&setup)?;
    // It starts no task, so the boot does not matter.
    let (context, escalation) = ToolContext::inside(setup, BootId::from_bytes([0; 16]));
    let context = context.under(&escalation);
    while let Some(request) = read_frame(&mut from)? {
        write_frame(&mut to, &report(context, &request)?)?;
    }
    Ok(())
}

type CarryOut = fn(Within<'_>, &[u8]) -> io::Result<Vec<u8>>;

/// All file work, by its name.
const KNOWN: [(&str, CarryOut); 12] = [
    known::<apply_patch::Apply>(),
    known::<apply_patch::Look>(),
    known::<apply_patch::Prepare>(),
    known::<edit_file::EditWork>(),
    known::<edit_file::Prepare>(),
    known::<list_files::Arguments>(),
    known::<named_files::Resolve>(),
    known::<read_file::Arguments>(),
    known::<replaced::Replaced>(),
    known::<search_files::Arguments>(),
    known::<write_file::Prepare>(),
    known::<write_file::Write>(),
];

const fn known<W: FileWork>() -> (&'static str, CarryOut) {
    (W::NAME, carry_out::<W>)
}

fn report(context: Within<'_>, request: &[u8]) -> io::Result<Vec<u8>> {
    let (name, work) = unpacked(request).ok_or_else(|| io::Error::other("no file work"))?;
    let found = KNOWN.iter().find(|(known, _)| *known == name);
    match found {
        Some((_, carry_out)) => carry_out(context, work),
        None => Err(io::Error::other("unknown file work")),
    }
}

fn carry_out<W: FileWork>(context: Within<'_>, work: &[u8]) -> io::Result<Vec<u8>> {
    let work: W = serde_json::from_slice(work)?;
    let done = catch_unwind(AssertUnwindSafe(|| {
        work.carry_out(context, &Stop::default())
    }));
    let report: Result<W::Report, Failure> = done.unwrap_or_else(|_| Err(broken()));
    Ok(serde_json::to_vec(&report)?)
}

#[cfg(test)]
mod tests {
    use super::KNOWN;
    use std::collections::BTreeSet;

    #[test]
    fn each_kind_of_work_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = KNOWN.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), KNOWN.len());
    }
}
