//! The table: what was measured, its floor, the ratio, and the target.

use std::time::Duration;

use crate::measure::Samples;
use serde_json::{Value, json};

/// What a figure counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    PerSecond,
    Microseconds,
    Milliseconds,
    Mebibytes,
    Count,
}

/// The target of a ratio.
#[derive(Clone, Copy)]
pub enum Aim {
    AtLeast(f64),
    AtMost(f64),
    /// The figure itself, if a ratio says too little.
    OursAtMost(f64),
    /// The difference to the floor.
    ExcessAtMost(f64),
}

pub struct Line {
    pub what: String,
    pub floor_is: String,
    pub unit: Unit,
    pub ours: Samples,
    /// Empty if there is nothing to compare with.
    pub floor: Samples,
    pub aim: Option<Aim>,
}

impl Line {
    pub fn ratio(&self) -> Samples {
        self.ours.ratio_to(&self.floor)
    }

    fn has_floor(&self) -> bool {
        !self.floor.rounds().is_empty()
    }

    /// The difference to the floor. None for a rate, where the floor is the higher figure.
    fn excess(&self) -> Option<Samples> {
        (self.unit != Unit::PerSecond && self.has_floor()).then(|| self.ours.minus(&self.floor))
    }

    fn verdict(&self) -> Option<&'static str> {
        let ratio = self.ratio().median();
        let met = match self.aim? {
            Aim::AtLeast(aim) => ratio >= aim,
            Aim::AtMost(aim) => ratio <= aim,
            Aim::OursAtMost(aim) => self.ours.median() <= aim,
            Aim::ExcessAtMost(aim) => self.excess()?.median() <= aim,
        };
        Some(if met { "meets" } else { "misses" })
    }

    fn cells(&self) -> [String; COLUMNS] {
        [
            self.what.clone(),
            self.floor_is.clone(),
            figure(self.unit, &self.ours),
            match self.has_floor() {
                true => figure(self.unit, &self.floor),
                false => String::new(),
            },
            self.excess()
                .map(|excess| figure(self.unit, &excess))
                .unwrap_or_default(),
            match self.has_floor() {
                true => ratio(&self.ratio()),
                false => String::new(),
            },
            match self.aim {
                Some(Aim::AtLeast(aim)) => format!("≥ {aim}"),
                Some(Aim::AtMost(aim)) => format!("≤ {aim}"),
                Some(Aim::OursAtMost(aim)) => format!("≤ {}", amount(self.unit, aim)),
                Some(Aim::ExcessAtMost(aim)) => format!("≤ {} more", amount(self.unit, aim)),
                None => String::new(),
            },
            self.verdict().unwrap_or_default().to_owned(),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "what": self.what,
            "floor_is": self.floor_is,
            "unit": match self.unit {
                Unit::PerSecond => "per_second",
                Unit::Microseconds => "microseconds",
                Unit::Milliseconds => "milliseconds",
                Unit::Mebibytes => "mebibytes",
                Unit::Count => "count",
            },
            "ours": samples_json(&self.ours),
            "floor": samples_json(&self.floor),
            "excess": self.excess().as_ref().map(samples_json),
            "ratio": samples_json(&self.ratio()),
            "aim": match self.aim {
                Some(Aim::AtLeast(aim)) => json!({ "at_least": aim }),
                Some(Aim::AtMost(aim)) => json!({ "at_most": aim }),
                Some(Aim::OursAtMost(aim)) => json!({ "ours_at_most": aim }),
                Some(Aim::ExcessAtMost(aim)) => json!({ "excess_at_most": aim }),
                None => Value::Null,
            },
            "verdict": self.verdict(),
        })
    }
}

fn samples_json(samples: &Samples) -> Value {
    json!({
        "median": samples.median(),
        "least": samples.least(),
        "most": samples.most(),
        "rounds": samples.rounds(),
    })
}

type Show = fn(f64) -> String;

const fn shown(unit: Unit) -> (Show, &'static str) {
    match unit {
        Unit::PerSecond => (whole, "/s"),
        Unit::Microseconds => (whole, " µs"),
        Unit::Milliseconds => (tenths, " ms"),
        Unit::Mebibytes => (tenths, " MiB"),
        Unit::Count => (whole, ""),
    }
}

fn amount(unit: Unit, value: f64) -> String {
    let (show, suffix) = shown(unit);
    format!("{}{suffix}", show(value))
}

/// The median, and the range of the rounds.
fn figure(unit: Unit, samples: &Samples) -> String {
    let (show, suffix) = shown(unit);
    format!(
        "{}{suffix} ({}–{})",
        show(samples.median()),
        show(samples.least()),
        show(samples.most())
    )
}

fn tenths(value: f64) -> String {
    format!("{value:.1}")
}

fn ratio(samples: &Samples) -> String {
    format!(
        "{:.2} ({:.2}–{:.2})",
        samples.median(),
        samples.least(),
        samples.most()
    )
}

/// A whole number with a comma between the thousands.
fn whole(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if value < 0.0 && digits != "0" {
        out.push('-');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

const COLUMNS: usize = 8;
const HEAD: [&str; COLUMNS] = [
    "what",
    "floor is",
    "ours",
    "floor",
    "ours − floor",
    "ratio",
    "aim",
    "",
];

/// One run of a benchmark.
pub struct Run<'a> {
    pub bench: &'a str,
    pub long: bool,
    pub file_system: &'a str,
    pub took: Duration,
}

impl Run<'_> {
    /// Prints the results, for people or for programs.
    pub fn print(&self, as_json: bool, lines: &[Line]) {
        let seconds = self.took.as_secs_f64();
        if as_json {
            let report = json!({
                "bench": self.bench,
                "long": self.long,
                "file_system": self.file_system,
                "seconds": seconds,
                "lines": lines.iter().map(Line::json).collect::<Value>(),
            });
            println!("{report:#}");
        } else {
            println!(
                "Medians of the rounds (least–most); differences and ratios are taken round by round.\n"
            );
            print_table(lines);
        }
        eprintln!("Took {seconds:.0} s.");
    }
}

fn print_table(lines: &[Line]) {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(lines.iter().map(Line::cells));
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    });
    for row in &rows {
        let cells: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        println!("{}", cells.join("  ").trim_end());
    }
    let missed: Vec<&Line> = lines
        .iter()
        .filter(|line| line.verdict() == Some("misses"))
        .collect();
    println!();
    match missed.len() {
        0 => println!("Every aim is met."),
        count => println!("{count} of the aims MISSED:"),
    }
    for line in missed {
        let by = match line.aim {
            Some(Aim::OursAtMost(_)) => figure(line.unit, &line.ours),
            _ => ratio(&line.ratio()),
        };
        println!("  {}: {by}", line.what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(whole(7.4), "7");
        assert_eq!(whole(999.0), "999");
        assert_eq!(whole(1000.0), "1,000");
        assert_eq!(whole(1234567.0), "1,234,567");
        assert_eq!(whole(-123.0), "-123");
        assert_eq!(whole(-1234.4), "-1,234");
        assert_eq!(whole(-0.1), "0");
    }

    #[test]
    fn the_verdict_follows_the_median_ratio() {
        let line = |aim| {
            let mut line = Line {
                what: String::new(),
                floor_is: String::new(),
                unit: Unit::PerSecond,
                ours: Samples::default(),
                floor: Samples::default(),
                aim,
            };
            for (ours, floor) in [(1.0, 2.0), (9.0, 10.0), (9.0, 1.0)] {
                line.ours.push(ours);
                line.floor.push(floor);
            }
            line.verdict()
        };
        assert_eq!(line(Some(Aim::AtLeast(0.8))), Some("meets"));
        assert_eq!(line(Some(Aim::AtMost(0.8))), Some("misses"));
        assert_eq!(line(Some(Aim::OursAtMost(9.0))), Some("meets"));
        assert_eq!(line(Some(Aim::OursAtMost(8.0))), Some("misses"));
        assert_eq!(line(None), None);
    }
}
