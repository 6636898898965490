//! An agent's plan as lines with colours.

use super::line::Line;
use crate::render::plan;
use crate::terminal::{HEADING, QUIET, visible_prose};
use agentd_core::event::{PlanSet, PlanStep, StepState};

/// The title, the steps, and why the plan has changed.
pub fn lines(set: &PlanSet) -> Vec<Line> {
    let mut lines = vec![Line::painted(HEADING, plan::title(set))];
    if let (Some(title), Some(why)) = (lines.last_mut(), &set.explanation) {
        let why = visible_prose(why).replace('\n', " ");
        title.push(Some(QUIET), &format!(" · {why}"));
    }
    lines.extend(set.steps.iter().map(step));
    lines
}

pub fn step(step: &PlanStep) -> Line {
    let text = plan::step(step);
    let line = Line::plain("  ");
    match step.state {
        StepState::Pending => line.and(None, text),
        StepState::InProgress => line.and(Some(HEADING), text),
        StepState::Done => line.and(Some(QUIET), text),
    }
}

/// The title and the steps around the current one, in at most this many rows. None for a plan that is finished.
pub fn panel(set: &PlanSet, most: usize, width: usize) -> Vec<Line> {
    if set.is_finished() || most < 2 {
        return Vec::new();
    }
    let room = most - 1;
    let current = set.current().and_then(|current| {
        let mut steps = set.steps.iter();
        steps.position(|step| std::ptr::eq(step, current))
    });
    // The step before the current one stays visible, and the end of the plan fills the rows.
    let last_first = set.steps.len().saturating_sub(room);
    let first = current
        .unwrap_or_default()
        .saturating_sub(1)
        .min(last_first);
    let steps = set.steps.iter().skip(first).take(room).map(step);
    let title = Line::painted(QUIET, plan::title(set));
    let rows = std::iter::once(title).chain(steps);
    rows.map(|row| row.truncated(width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal;

    fn set(states: &[StepState]) -> PlanSet {
        let step = |(n, state): (usize, &StepState)| PlanStep {
            step: format!("step\n{n}"),
            state: *state,
        };
        PlanSet {
            steps: states.iter().enumerate().map(step).collect(),
            explanation: Some("to be sure".to_owned()),
        }
    }

    fn texts(lines: &[Line]) -> Vec<String> {
        let text = |line: &Line| terminal::uncoloured(&line.to_string());
        lines.iter().map(text).collect()
    }

    #[test]
    fn a_plan_is_a_list_of_steps_with_their_states() {
        use StepState::{Done, InProgress, Pending};
        let expected = [
            "plan: 1 of 3 done · to be sure",
            "  [x] step 0",
            "  [>] step 1",
            "  [ ] step 2",
        ];
        assert_eq!(texts(&lines(&set(&[Done, InProgress, Pending]))), expected);
    }

    #[test]
    fn the_panel_shows_the_steps_around_the_current_one() {
        use StepState::{Done, InProgress, Pending};
        let long = set(&[Done, Done, Done, InProgress, Pending, Pending, Pending]);
        let expected = [
            "plan: 3 of 7 done",
            "  [x] step 2",
            "  [>] step 3",
            "  [ ] step 4",
        ];
        assert_eq!(texts(&panel(&long, 4, 80)), expected);
        let end = set(&[Done, Done, Done, InProgress]);
        assert_eq!(
            texts(&panel(&end, 3, 80))[1..],
            ["  [x] step 2", "  [>] step 3"]
        );
        assert_eq!(texts(&panel(&end, 9, 12))[1], "  [x] step 0");
        assert_eq!(panel(&set(&[Done, Done]), 9, 80), []);
        assert_eq!(panel(&long, 1, 80), []);
    }
}
