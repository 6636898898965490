//! How long the machine has worked, and how fast it is. On a virtual machine the hypervisor gives a part of the time to others; a
//! budget does not count that part.

use std::fs;
use std::hint::black_box;
use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

/// The kernel counts in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// How long [`work`] takes, on all cores at once, on the machine that budgets are written for.
const REFERENCE: Duration = Duration::from_millis(700);
/// A machine that is slower than this needs a larger budget by hand.
const MOST: f64 = 1.8;
const ROUNDS: usize = 3;

/// How many times slower this machine is than the one that budgets are written for. At least 1: a faster machine keeps the
/// budgets.
pub fn slowness() -> f64 {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let round = || {
        let began = Stopwatch::start();
        thread::scope(|scope| {
            for _ in 0..cores {
                scope.spawn(|| black_box(work()));
            }
        });
        began.took().counted()
    };
    let best = (0..ROUNDS).map(|_| round()).min().unwrap_or(REFERENCE);
    (best.as_secs_f64() / REFERENCE.as_secs_f64()).clamp(1.0, MOST)
}

/// Arithmetic, and reads from memory in an order that no cache foresees: what a compiler does.
fn work() -> u64 {
    const WORDS: usize = 1 << 21;
    const STEPS: usize = 6_000_000;
    let mut table = vec![0_u64; WORDS];
    let mut x: u64 = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..STEPS {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let at = usize::try_from(x % WORDS as u64).unwrap_or(0);
        if let Some(word) = table.get_mut(at) {
            *word = word.wrapping_add(x);
            x = x.wrapping_add(*word);
        }
    }
    x
}

/// Measures from the moment it is made.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    began: Instant,
    stolen_before: Duration,
}

/// How long something took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    pub wall: Duration,
    /// The part of it that the machine did not run, at least: the mean of all cores, as if each had had work.
    pub stolen: Duration,
}

impl Took {
    /// What counts against a budget.
    pub fn counted(self) -> Duration {
        self.wall.saturating_sub(self.stolen)
    }
}

impl Stopwatch {
    pub fn start() -> Self {
        Self {
            began: Instant::now(),
            stolen_before: stolen(),
        }
    }

    pub fn took(&self) -> Took {
        let wall = self.began.elapsed();
        let stolen = stolen().saturating_sub(self.stolen_before);
        Took {
            wall,
            // The clocks are not read at the same moment.
            stolen: stolen.min(wall),
        }
    }
}

/// Since the machine started, for each core. Zero where the kernel does not tell.
fn stolen() -> Duration {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    stolen_of(&text, cores)
}

fn stolen_of(stat: &str, cores: usize) -> Duration {
    // user nice system idle iowait irq softirq steal
    let fields = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let steal = fields.and_then(|fields| fields.split_whitespace().nth(7));
    let ticks: u32 = steal.and_then(|steal| steal.parse().ok()).unwrap_or(0);
    Duration::from_secs_f64(f64::from(ticks) / TICKS_PER_SECOND / cores as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_mean_of_the_cores() {
        let stat = "cpu  55730 0 5876 49639 1188 0 80 20530 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(stolen_of(stat, 2), Duration::from_millis(102_650));
        for odd in ["", "cpu", "cpu  1 2 3", "cpu  1 2 3 4 5 6 7 x"] {
            assert_eq!(stolen_of(odd, 2), Duration::ZERO, "{odd}");
        }
    }

    #[test]
    fn no_machine_gets_less_than_its_budget_and_none_gets_any_time() {
        let slowness = slowness();
        assert!((1.0..=MOST).contains(&slowness), "{slowness}");
    }

    #[test]
    fn stolen_time_does_not_count() {
        let took = Took {
            wall: Duration::from_secs(60),
            stolen: Duration::from_secs(20),
        };
        assert_eq!(took.counted(), Duration::from_secs(40));
    }
}
