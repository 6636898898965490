//! Power failure: everything that is not on disk at that moment is lost, and all processes end. The state directory
//! is on its own ext4 file system, which the kernel is told to shut down at a random moment, without writing its
//! journal. Everything that was acknowledged must exist after the next mount.

use super::ground::Disk;
use super::{completed, fault, verified, watched};
use crate::lab::dice::Dice;
use crate::lab::processes;
use crate::lab::testbed::{Result, Stuck, Testbed};
use crate::model::script::shell;
use serde_json::json;
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const AGENT: &str = "worker";
/// Power failures in one run.
pub const CUTS: usize = 3;
/// Prompts before each.
const MOST: u32 = 15;
/// The longest time from the first prompt to the cut, in milliseconds.
const LONGEST: u64 = 1500;

pub fn run(testbed: &Testbed) -> Result<()> {
    // The outcome of a command that ran during the power failure is unknown, and reported as such.
    testbed.expect("other_boot", json!(true));
    let disk = Disk::make(testbed, 96 << 20)?;
    testbed.create(AGENT, "")?;
    watched(testbed, AGENT, || cuts(testbed, &disk))?;
    verified(testbed)
}

fn cuts(testbed: &Testbed, disk: &Disk) -> Result<()> {
    let mut dice = Dice::new(testbed.spec.seed);
    let mut times = Vec::new();
    for _ in 0..CUTS {
        let after = Duration::from_millis(50 + dice.below(LONGEST));
        let is_cut = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| send_until(testbed, &is_cut));
            // tidy: polls nothing; the moment is as good as any
            std::thread::sleep(after);
            let off = testbed.record.at();
            let cut = cut(testbed);
            is_cut.store(true, Ordering::Relaxed);
            let ended = cut.and_then(|()| end_all(testbed));
            times.push([off, testbed.record.at()]);
            let back = ended.and_then(|()| {
                testbed.until("an unmounted disk", || disk.unmount(testbed).ok())?;
                another_boot(testbed, dice.next())?;
                disk.mount(testbed)
            });
            let sent = sender
                .join()
                .map_err(|_| Stuck::Wrong("a sender panicked".to_owned()))?;
            back.and(sent)
        })?;
        testbed.expect("power_off", json!(times));
        testbed.power.fetch_add(1, Ordering::SeqCst);
        completed(testbed, AGENT, "do: say there is light again")?;
    }
    Ok(())
}

/// Sends prompts one after the other, without waiting for answers.
fn send_until(testbed: &Testbed, is_cut: &AtomicBool) -> Result<()> {
    let mut n = 0;
    while !is_cut.load(Ordering::Relaxed) && n < MOST {
        n += 1;
        // Some run a command at the same time.
        let call = shell(&testbed.tool(&format!("power-{n}"), 150));
        let text = match n % 3 {
            0 => format!("do: {call} ;; say the command of number {n} has run"),
            _ => format!("do: slowly 4 this is a long answer of many words to number {n}"),
        };
        super::try_send(testbed, AGENT, &text)?;
    }
    Ok(())
}

/// From here on nothing reaches the disk. The kernel may report a sync that is in progress at this moment as done
/// although it is not: so the power is marked as off before, and answers from then on do not count.
fn cut(testbed: &Testbed) -> Result<()> {
    testbed.power.fetch_add(1, Ordering::SeqCst);
    fault(testbed, "disk", "power cut")?;
    shut_down(&testbed.home()).map_err(Stuck::Io)
}

/// The machine boots again, with another boot id: a file that is mounted in the namespace of this run.
fn another_boot(testbed: &Testbed, n: u64) -> Result<()> {
    const BOOT: &str = "/proc/sys/kernel/random/boot_id";
    let file = testbed.root.join("boot");
    let (high, low) = (n >> 48, n & 0xffff_ffff_ffff);
    fs::write(&file, format!("00000000-0000-4000-{high:04x}-{low:012x}\n"))?;
    let file = file.display().to_string();
    super::ground::run(testbed, "mount", &["--bind", &file, BOOT])
}

/// All processes that use the disk are gone, as after a power failure.
fn end_all(testbed: &Testbed) -> Result<()> {
    testbed.until("the end of all", || {
        let all = processes::descendants(&testbed.root);
        let alive: Vec<_> = all.iter().filter(|it| it.is_alive()).collect();
        for one in &alive {
            if let Some(pid) = super::as_pid(one.pid) {
                let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        alive.is_empty().then_some(())
    })
}

/// `EXT4_IOC_SHUTDOWN`, with `EXT4_GOING_FLAGS_NOLOGFLUSH`.
#[expect(unsafe_code, reason = "the system call has no safe name")]
fn shut_down(dir: &Path) -> std::io::Result<()> {
    const SHUTDOWN: rustix::ioctl::Opcode = rustix::ioctl::opcode::read::<u32>(b'X', 125);
    const NO_LOG_FLUSH: u32 = 2;
    let file = File::open(dir)?;
    // SAFETY: the kernel reads four bytes at the address, which are valid for the whole call.
    unsafe {
        let order = rustix::ioctl::Setter::<SHUTDOWN, u32>::new(NO_LOG_FLUSH);
        rustix::ioctl::ioctl(&file, order)?;
    }
    Ok(())
}
