//! Figures that were measured several times.

use std::time::{Duration, Instant};

/// One figure, measured once in each round.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    rounds: Vec<f64>,
}

impl Samples {
    pub fn push(&mut self, value: f64) {
        self.rounds.push(value);
    }

    pub fn rounds(&self) -> &[f64] {
        &self.rounds
    }

    pub fn median(&self) -> f64 {
        median(&self.rounds)
    }

    pub fn least(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub fn most(&self) -> f64 {
        self.rounds
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max)
    }

    /// The difference to the floor, round by round.
    pub fn minus(&self, floor: &Self) -> Self {
        let pairs = self.rounds.iter().zip(&floor.rounds);
        Self {
            rounds: pairs.map(|(ours, floor)| ours - floor).collect(),
        }
    }

    /// Computed round by round, so that a slow moment of the machine affects both figures or neither.
    pub fn ratio_to(&self, floor: &Self) -> Self {
        let pairs = self.rounds.iter().zip(&floor.rounds);
        Self {
            rounds: pairs.map(|(ours, floor)| ours / floor).collect(),
        }
    }
}

/// Operations per second.
pub fn rate(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

/// The median time of `times` calls, in microseconds.
pub fn median_micros<E>(times: usize, mut call: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let mut micros = Vec::with_capacity(times);
    for _ in 0..times {
        let start = Instant::now();
        call()?;
        micros.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(&micros))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.len() % 2, sorted.get(middle)) {
        (0, Some(above)) => (sorted[middle - 1] + above) / 2.0,
        (_, Some(value)) => *value,
        (_, None) => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!(median(&[]).is_nan());
    }
}
