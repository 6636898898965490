//! Our lines and colours as those of the screen.

use crate::live::Line;
use crate::terminal::Paint;
use anstyle::{AnsiColor, Color, Effects};
use ratatui::style::{Color as ScreenColor, Modifier, Style};
use ratatui::text::{Line as ScreenLine, Span};

/// Whether the screen has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    Shown,
    /// `NO_COLOR`: no colours and no emphasis. A selection is still shown, by its marker.
    None,
}

impl Colours {
    pub fn line(self, line: &Line) -> ScreenLine<'static> {
        let spans = line.spans().iter().map(|span| {
            let style = span.paint.map(|paint| self.style(paint));
            Span::styled(span.text.clone(), style.unwrap_or_default())
        });
        ScreenLine::from(spans.collect::<Vec<_>>())
    }

    pub fn style(self, paint: Paint) -> Style {
        match self {
            Self::Shown => of(paint.style()),
            Self::None => Style::default(),
        }
    }
}

fn of(style: anstyle::Style) -> Style {
    let mut shown = Style::default();
    if let Some(Color::Ansi(color)) = style.get_fg_color() {
        shown = shown.fg(colour(color));
    }
    let effects = style.get_effects();
    for (effect, modifier) in [
        (Effects::BOLD, Modifier::BOLD),
        (Effects::DIMMED, Modifier::DIM),
        (Effects::ITALIC, Modifier::ITALIC),
        (Effects::UNDERLINE, Modifier::UNDERLINED),
    ] {
        if effects.contains(effect) {
            shown = shown.add_modifier(modifier);
        }
    }
    shown
}

const fn colour(color: AnsiColor) -> ScreenColor {
    match color {
        AnsiColor::Black => ScreenColor::Black,
        AnsiColor::Red => ScreenColor::Red,
        AnsiColor::Green => ScreenColor::Green,
        AnsiColor::Yellow => ScreenColor::Yellow,
        AnsiColor::Blue => ScreenColor::Blue,
        AnsiColor::Magenta => ScreenColor::Magenta,
        AnsiColor::Cyan => ScreenColor::Cyan,
        AnsiColor::White => ScreenColor::Gray,
        AnsiColor::BrightBlack => ScreenColor::DarkGray,
        AnsiColor::BrightRed => ScreenColor::LightRed,
        AnsiColor::BrightGreen => ScreenColor::LightGreen,
        AnsiColor::BrightYellow => ScreenColor::LightYellow,
        AnsiColor::BrightBlue => ScreenColor::LightBlue,
        AnsiColor::BrightMagenta => ScreenColor::LightMagenta,
        AnsiColor::BrightCyan => ScreenColor::LightCyan,
        AnsiColor::BrightWhite => ScreenColor::White,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{BAD, QUIET};

    #[test]
    fn our_colours_are_those_of_the_screen() {
        let line = Line::painted(BAD, "no").and(Some(QUIET), " way");
        let shown = Colours::Shown.line(&line);
        let [no, way] = shown.spans.as_slice() else {
            panic!("{shown:?}");
        };
        assert_eq!(no.style.fg, Some(ScreenColor::Red));
        assert!(no.style.add_modifier.contains(Modifier::BOLD));
        assert!(way.style.add_modifier.contains(Modifier::DIM));
        let plain = Colours::None.line(&line);
        assert!(
            plain
                .spans
                .iter()
                .all(|span| span.style == Style::default())
        );
    }
}
