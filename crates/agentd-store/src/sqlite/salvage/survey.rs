//! What a repair would find in files that SQLite cannot open.

use super::Salvage;
use crate::damage::Report;
use crate::error::Result;
use crate::sqlite::Options;
use crate::sqlite::head::Found;
use rusqlite::Connection;

pub fn survey(options: &Options, head: &Found) -> Result<Report> {
    let rows = Connection::open_in_memory()?;
    let salvage = Salvage::of_dir(options, &options.dir, head, rows)?;
    let mut report = Report::default();
    let (agents, nobodys) = salvage.follow_all(|_, _| {
        report.events += 1;
        Ok(())
    })?;
    report.agents = agents.len() as u64;
    for followed in agents {
        if let Some(line) = salvage.lines.get(&followed.num) {
            report.names.insert(followed.agent, line.name.clone());
        }
        let damage = followed.damage.map(|damage| (followed.agent, damage));
        report.damaged.extend(damage);
    }
    if nobodys > 0 {
        report
            .file
            .push(format!("{nobodys} events belong to no agent"));
    }
    Ok(report)
}
