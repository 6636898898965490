//! Where the parts of the screen are.

use ratatui::layout::Rect;

/// The side list stands beside the history on a screen of this width, and in its place on a narrower one.
const WIDE: u16 = 90;
const SIDE: u16 = 30;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub width: u16,
    pub height: u16,
}

/// The rows that the parts need.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    pub notice: usize,
    pub approval: usize,
    pub plan: usize,
    pub queue: usize,
    pub prompt: usize,
    pub side: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub header: Rect,
    /// The history and the side list, or a page in their place.
    pub main: Rect,
    pub history: Rect,
    pub side: Option<Rect>,
    pub status: Rect,
    pub notice: Rect,
    pub approval: Rect,
    pub plan: Rect,
    pub queue: Rect,
    pub prompt: Rect,
    pub footer: Rect,
}

/// On a screen that is too low, the parts that are needed least have no rows.
pub fn layout(size: Size, needs: Needs) -> Layout {
    let mut left = size.height;
    let mut take = |wanted: usize, kept: u16| {
        let wanted = u16::try_from(wanted).unwrap_or(u16::MAX);
        let rows = wanted.min(left.saturating_sub(kept));
        left -= rows;
        rows
    };
    let prompt = take(needs.prompt.max(1), 0);
    let status = take(1, 1);
    let footer = take(1, 3);
    let header = take(1, 4);
    let approval = take(needs.approval, 1);
    let notice = take(needs.notice, 1);
    let queue = take(needs.queue, 2);
    let plan = take(needs.plan, 6);
    let mut y = 0;
    let mut part = |height: u16| {
        let part = Rect::new(0, y, size.width, height);
        y += height;
        part
    };
    let header = part(header);
    let main = part(left);
    let (history, side) = match needs.side {
        false => (main, None),
        true if size.width < WIDE => (Rect { height: 0, ..main }, Some(main)),
        true => {
            let width = (size.width / 3).max(SIDE);
            let x = size.width - width;
            let beside = Rect {
                // A column stays free between them.
                width: x.saturating_sub(1),
                ..main
            };
            (beside, Some(Rect { x, width, ..main }))
        }
    };
    Layout {
        header,
        main,
        history,
        side,
        notice: part(notice),
        approval: part(approval),
        plan: part(plan),
        queue: part(queue),
        status: part(status),
        prompt: part(prompt),
        footer: part(footer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_fill_the_screen_and_never_leave_it() {
        let needs = Needs {
            notice: 3,
            approval: 8,
            plan: 5,
            queue: 4,
            prompt: 2,
            side: true,
        };
        for (width, height) in (0..130).zip((0..60).chain(0..70)) {
            let all = layout(Size { width, height }, needs);
            let parts = [
                all.header,
                all.main,
                all.notice,
                all.approval,
                all.plan,
                all.queue,
                all.status,
                all.prompt,
                all.footer,
            ];
            let rows: u16 = parts.iter().map(|part| part.height).sum();
            assert_eq!(rows, height, "{all:?}");
            let screen = Rect::new(0, 0, width, height);
            for part in parts.into_iter().chain([all.history]).chain(all.side) {
                assert_eq!(part.intersection(screen), part, "{all:?}");
            }
        }
        let low = layout(
            Size {
                width: 80,
                height: 3,
            },
            Needs::default(),
        );
        assert_eq!((low.prompt.height, low.status.height), (1, 1));
        assert_eq!(low.history.height, 1);
    }
}
