//! How our colours look in each theme. The user's `config.toml` chooses the theme.

use agentd_core::catalog::Theme;
use anstyle::{AnsiColor, Style};
use std::sync::OnceLock;

/// Set once, before the first output.
static CHOSEN: OnceLock<Theme> = OnceLock::new();

/// Chooses the theme of this process. Only the first call counts.
pub fn choose(theme: Theme) {
    let _chosen_before = CHOSEN.set(theme);
}

pub fn chosen() -> Theme {
    CHOSEN.get().copied().unwrap_or_default()
}

/// The style of a marker in a theme; none if it is not the beginning of a colour.
pub const fn style(paint: char, theme: Theme) -> Option<Style> {
    match (paint, theme) {
        ('\u{FDD0}', Theme::Dark) => Some(AnsiColor::BrightGreen.on_default().bold()),
        ('\u{FDD0}', _) => Some(AnsiColor::Green.on_default().bold()),
        ('\u{FDD1}', Theme::Dark) => Some(AnsiColor::BrightRed.on_default().bold()),
        ('\u{FDD1}', _) => Some(AnsiColor::Red.on_default().bold()),
        ('\u{FDD2}', _) => Some(Style::new().bold()),
        // Faint text is hardly visible on a light background in some terminals.
        ('\u{FDD3}', Theme::Light) => Some(AnsiColor::BrightBlack.on_default()),
        ('\u{FDD3}', _) => Some(Style::new().dimmed()),
        ('\u{FDD4}', Theme::Dark) => Some(AnsiColor::BrightCyan.on_default()),
        ('\u{FDD4}', Theme::Light) => Some(AnsiColor::Blue.on_default()),
        ('\u{FDD4}', _) => Some(AnsiColor::Cyan.on_default()),
        ('\u{FDD5}', _) => Some(Style::new().italic()),
        ('\u{FDD6}', Theme::Dark) => Some(AnsiColor::BrightGreen.on_default()),
        ('\u{FDD6}', _) => Some(AnsiColor::Green.on_default()),
        ('\u{FDD7}', Theme::Dark) => Some(AnsiColor::BrightRed.on_default()),
        ('\u{FDD7}', _) => Some(AnsiColor::Red.on_default()),
        ('\u{FDD8}', Theme::Dark) => Some(AnsiColor::BrightMagenta.on_default()),
        ('\u{FDD8}', _) => Some(AnsiColor::Magenta.on_default()),
        ('\u{FDD9}', Theme::Dark) => Some(AnsiColor::BrightYellow.on_default()),
        ('\u{FDD9}', Theme::Light) => Some(AnsiColor::Blue.on_default()),
        ('\u{FDD9}', _) => Some(AnsiColor::Yellow.on_default()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anstyle::Color;

    #[test]
    fn a_light_theme_has_no_yellow_and_no_cyan() {
        let unreadable = [AnsiColor::Yellow, AnsiColor::Cyan].map(Color::Ansi);
        let mut seen = 0;
        for paint in '\u{FDD0}'..='\u{FDDF}' {
            let Some(style) = style(paint, Theme::Light) else {
                continue;
            };
            seen += 1;
            let colour = style.get_fg_color();
            assert!(!colour.is_some_and(|colour| unreadable.contains(&colour)));
            // Each theme has a style for each colour.
            assert!(super::style(paint, Theme::Dark).is_some());
            assert!(super::style(paint, Theme::Auto).is_some());
        }
        assert_eq!(seen, 10);
    }
}
