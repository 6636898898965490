//! What keeping the content of a replaced file adds to a turn.
//!
//! A turn that writes a file and replaces it is compared with one that writes two new files. Both kinds have requests
//! and contents of the same length, and run in the order new, replaced, replaced, new. The conversation becomes longer
//! with each turn, and in this order that costs both kinds the same.

use agentd_testkit::model::{FakeModel, Format};
use anyhow::{Context, Result};

use super::Bed;
use super::agent::{Agent, Begin, Setup};
use super::kind::Kind;
use crate::measure::Samples;
use crate::report::{Aim, Line, Unit};
use crate::words::Words;

/// The most microseconds that the kept content of a file should add to a turn.
const KEPT: f64 = 1000.0;

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    let mut line = Line {
        what: Kind::Replace.what().to_owned(),
        floor_is: Kind::NewFiles.what().to_owned(),
        unit: Unit::Microseconds,
        ours: Samples::default(),
        floor: Samples::default(),
        aim: Some(Aim::ExcessAtMost(KEPT)),
    };
    for round in 0..bed.size(21, 81) {
        let (replaced, new) = measure(bed, round)?;
        line.ours.push(replaced);
        line.floor.push(new);
    }
    Ok(vec![line])
}

/// The mean times of a turn that replaces a file and of one that does not, in a conversation of their own.
fn measure(bed: &Bed, seed: u64) -> Result<(f64, f64)> {
    let model = FakeModel::start().context("cannot start the model server")?;
    let checkpoint = bed.bench_dir.fresh()?;
    let setup = Setup {
        program: &bed.program,
        url: model.base_url(Format::Anthropic),
    };
    let begin = checkpoint.path().join("kept");
    let mut agent = Agent::start(setup.command(&Begin::New(&begin)))?;
    let mut words = Words::new(seed);
    let mut turn = |kind: Kind| agent.turn(&kind.prompt(&mut words));
    turn(Kind::NewFiles)?;
    turn(Kind::Replace)?;
    let first = turn(Kind::NewFiles)?;
    let replaced = turn(Kind::Replace)? + turn(Kind::Replace)?;
    let new = first + turn(Kind::NewFiles)?;
    agent.peer.finish()?;
    Ok((replaced / 2.0, new / 2.0))
}
