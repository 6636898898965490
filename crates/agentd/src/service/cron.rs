//! The line in the user's crontab, where there is no systemd.

use super::programs::run;
use super::units::{CRON_MARK, Unit};
use crate::error::{Error, Exit};

/// Whether there is a `crontab` program, and what the crontab has of ours.
pub fn installed() -> Option<bool> {
    read().ok().map(|table| table.lines().any(is_ours))
}

/// Adds the line, in place of an older one.
pub fn add(unit: &Unit) -> Result<(), Error> {
    let table = read().map_err(|why| failed(&why))?;
    write(&with_line(&table, Some(&unit.cron_line())))
}

/// Removes the line. False if there was none.
pub fn remove() -> Result<bool, Error> {
    let Ok(table) = read() else { return Ok(false) };
    if !table.lines().any(is_ours) {
        return Ok(false);
    }
    write(&with_line(&table, None)).map(|()| true)
}

fn is_ours(line: &str) -> bool {
    line.trim_end().ends_with(CRON_MARK)
}

fn with_line(table: &str, line: Option<&str>) -> String {
    let others = table.lines().filter(|line| !is_ours(line));
    others.chain(line).flat_map(|line| [line, "\n"]).collect()
}

/// The user's crontab; empty if there is none.
fn read() -> Result<String, String> {
    let ran = run("crontab", &["-l"], "").map_err(|error| error.to_string())?;
    match ran.is_ok || ran.err.contains("no crontab") {
        true => Ok(ran.out),
        false => Err(ran.why()),
    }
}

fn write(table: &str) -> Result<(), Error> {
    match run("crontab", &["-"], table) {
        Ok(ran) if ran.is_ok => Ok(()),
        Ok(ran) => Err(failed(&ran.why())),
        Err(error) => Err(failed(&error.to_string())),
    }
}

fn failed(why: &str) -> Error {
    Error::new(Exit::Unavailable, "the crontab cannot be changed")
        .because(why)
        .next("add the line by hand: `agentd daemon install --dry-run` prints it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_replaced_and_other_lines_stay() {
        let table = format!("MAILTO=ann\n@reboot old {CRON_MARK}\n0 3 * * * backup\n");
        let line = format!("@reboot new {CRON_MARK}");
        let added = with_line(&table, Some(&line));
        assert_eq!(added, format!("MAILTO=ann\n0 3 * * * backup\n{line}\n"));
        assert_eq!(with_line(&added, None), "MAILTO=ann\n0 3 * * * backup\n");
    }
}
