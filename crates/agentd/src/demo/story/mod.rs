//! The steps of the demo, one file each.

mod closing;
mod ended;
mod killed_agent;
mod killed_daemon;
mod reset;
mod work;

use super::claims::Claims;
use super::daemon::{Curtain, DemoDaemon, missing_sandbox};
use crate::error::Error;
use crate::output::{HEADING, Output};
use std::path::Path;
use std::time::Instant;

pub async fn tell(out: &mut Output, dir: &Path) -> Result<(), Error> {
    let begin = Instant::now();
    out.line(format_args!(
        "{HEADING}agentd demo{HEADING:#}: kills an agent and its daemon at work, and shows that nothing is lost"
    ))?;
    out.line("It runs offline, with the built-in model and real tools, in a temporary directory that is removed at the end.")?;
    if let Some(missing) = missing_sandbox() {
        out.line(format_args!(
            "Tools run without a sandbox (full-access): {missing}"
        ))?;
    }
    let mut claims = Claims::new(out);
    // Dropped last, however this ends.
    let _curtain = Curtain::raise()?;
    let mut demo = DemoDaemon::set(dir).await?;

    work::tell(&mut claims, &mut demo).await?;
    killed_agent::tell(&mut claims, &mut demo).await?;
    killed_daemon::tell(&mut claims, &mut demo).await?;
    let request_bytes = reset::tell(&mut claims, &mut demo).await?;
    let record = ended::tell(&mut claims, &mut demo).await?;
    let figures = closing::Figures {
        request_bytes,
        record,
        seconds: begin.elapsed().as_secs_f64(),
    };
    closing::tell(&mut claims, &figures)
}
