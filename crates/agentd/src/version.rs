//! The version of the program, for people: with the commit and the date of its build. Programs compare the package's version.

const BUILT_FROM: &str = env!("BUILT_FROM");

/// For example `0.1.0 (commit 1a2b3c4d5e6f, 2026-11-17)`. `build.rs` sets the part in parentheses.
pub const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("BUILT_FROM"), ")");

/// The day of the build. Debug builds have none.
pub fn date() -> &'static str {
    let end = BUILT_FROM.rsplit_once(", ");
    end.map_or("undated", |(_, date)| date)
}

/// The code of the build script, for its tests.
#[cfg(test)]
#[path = "../build/commit.rs"]
mod commit;
