//! What the kernel says a process has used: its time on a processor, and its memory.

use std::fs;

use anyhow::{Context, Result};

/// The unit of the times in `/proc/PID/stat`, which Linux keeps at a hundredth of a second.
const TICK_MICROS: f64 = 10_000.0;

/// Memory in MiB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    pub now: f64,
    pub peak: f64,
}

pub fn memory(pid: u32) -> Result<Memory> {
    let status = read(pid, "status")?;
    let of = |key| status_mib(&status, key).with_context(|| format!("the kernel reports no {key}"));
    Ok(Memory {
        now: of("VmRSS:")?,
        peak: of("VmHWM:")?,
    })
}

/// How many files a process has open; 0 if it is gone.
pub fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// The proportional memory (PSS) of a process in MiB: shared pages count in part. None if the process is gone.
pub fn share(pid: u32) -> Option<f64> {
    let rollup = read(pid, "smaps_rollup").ok()?;
    status_mib(&rollup, "Pss:")
}

/// All descendants of a process.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let child = name.to_str().and_then(|name| name.parse::<u32>().ok());
        let Some(child) = child else { continue };
        // It may have ended by now.
        let stat = read(child, "stat").unwrap_or_default();
        parents.extend(parent(&stat).map(|parent| (child, parent)));
    }
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(of) = found.get(at).copied() {
        let children = parents.iter().filter(|(_, parent)| *parent == of);
        found.extend(children.map(|(child, _)| child));
        at += 1;
    }
    found.remove(0);
    found
}

/// Field 4; the state is before it.
fn parent(stat: &str) -> Option<u32> {
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(1)?.parse().ok()
}

/// Microseconds on a processor, with those of the children that it has waited for.
///
/// `stat` counts whole ticks, which is coarse for a few turns; `schedstat` counts nanoseconds, but only of living
/// threads. Both are lower bounds, so the larger one is closer to the truth.
pub fn cpu_micros(pid: u32) -> Result<f64> {
    let ticks = ticks(&read(pid, "stat")?).context("/proc/PID/stat cannot be parsed")?;
    let mut nanos = 0;
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    for thread in threads.into_iter().flatten().flatten() {
        // A thread may have ended by now.
        let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        nanos += on_cpu_nanos(&text).unwrap_or(0);
    }
    let own = (ticks.own as f64 * TICK_MICROS).max(nanos as f64 / 1e3);
    Ok(own + ticks.children as f64 * TICK_MICROS)
}

fn read(pid: u32, file: &str) -> Result<String> {
    let path = format!("/proc/{pid}/{file}");
    fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
}

/// One line of `/proc/PID/status` that counts KiB.
fn status_mib(status: &str, key: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib / 1024.0)
}

#[derive(Debug, PartialEq, Eq)]
struct Ticks {
    own: u64,
    children: u64,
}

fn ticks(stat: &str) -> Option<Ticks> {
    // The name is in brackets and may hold anything, brackets too.
    let (_, behind) = stat.rsplit_once(')')?;
    // The state is field 3; utime, stime, cutime and cstime are fields 14 to 17.
    let mut fields = behind.split_whitespace().skip(11).map(str::parse);
    let mut next = || fields.next()?.ok();
    let (utime, stime, cutime, cstime): (u64, u64, u64, u64) = (next()?, next()?, next()?, next()?);
    Some(Ticks {
        own: utime + stime,
        children: cutime + cstime,
    })
}

/// The first number is the time on a processor.
fn on_cpu_nanos(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "12 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 20 0 5 0 99";
        let expected = Ticks {
            own: 120,
            children: 7,
        };
        assert_eq!(ticks(stat), Some(expected));
        assert_eq!(ticks("12 (a) S 1 2"), None);
        assert_eq!(parent(stat), Some(1));
    }

    #[test]
    fn memory_is_told_in_mebibytes() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t     512 kB\n";
        assert_eq!(status_mib(status, "VmHWM:"), Some(2.0));
        assert_eq!(status_mib(status, "VmRSS:"), Some(0.5));
        assert_eq!(status_mib(status, "VmSwap:"), None);
    }

    #[test]
    fn a_process_that_works_has_used_time() {
        let pid = std::process::id();
        let before = cpu_micros(pid).unwrap();
        let mut sum = 0_u64;
        while cpu_micros(pid).unwrap() <= before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(memory(pid).unwrap().peak >= memory(pid).unwrap().now * 0.5);
    }

    #[test]
    fn a_child_is_found() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        assert!(descendants(std::process::id()).contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_first_number_is_the_time_on_a_processor() {
        assert_eq!(on_cpu_nanos("123 45 6\n"), Some(123));
        assert_eq!(on_cpu_nanos(""), None);
    }
}
