//! Queued prompts that are edited, moved and removed while a turn runs.

use crate::lab::clients::PromptNumber;
use crate::lab::reader;
use crate::lab::testbed::{Result, Testbed};
use crate::model::script::shell;

const AGENT: &str = "worker";
const NOTES: &str = "notes.md";

pub fn run(testbed: &Testbed) -> Result<()> {
    std::fs::write(testbed.work().join(NOTES), "notes that an edit keeps\n")?;
    testbed.create(AGENT, "")?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, AGENT));
        let done = turns(testbed);
        testbed.wait_idle(&[AGENT])?;
        done
    })
}

fn turns(testbed: &Testbed) -> Result<()> {
    let call = shell(&testbed.tool("first", 400));
    let first = testbed.send(AGENT, &format!("do: {call} ;; say the first is done"), &[])?;
    let edited = testbed.send(AGENT, "do: say this was not meant", &["--attach", NOTES])?;
    let moved = testbed.send(AGENT, "do: say this is more urgent", &[])?;
    let removed = testbed.send(AGENT, "do: say this is not needed", &[])?;
    let joins = testbed.send(AGENT, "do: say this is not said", &["--steer"])?;
    testbed.remove_prompt(joins, &testbed.op(1))?;
    testbed.edit_prompt(edited, "do: say this was meant", &testbed.op(2))?;
    testbed.move_prompt(moved, &testbed.op(3))?;
    testbed.remove_prompt(removed, &testbed.op(4))?;
    let all: [PromptNumber; 5] = [first, edited, moved, removed, joins];
    for number in all {
        testbed.answer(number)?;
    }
    // The last one is removed just when its turn may be beginning.
    let last = testbed.send(AGENT, "do: say it is the last one", &[])?;
    testbed.remove_prompt(last, &testbed.op(5))?;
    testbed.answer(last)?;
    Ok(())
}
