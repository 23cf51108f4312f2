//! Where the labels of a drawing go, so that none lies on another.

/// Width of a letter and height of a line in units of a drawing whose text has 11 of them.
const LETTER: f64 = 6.4;
/// Free space before and after a text: numbers beside each other would look like one.
const SPACE: f64 = 3.0;
const LINE: f64 = 12.0;
/// From the baseline up to the top of letters.
const ASCENT: f64 = 9.5;
/// From a point to the text beside it.
const BESIDE: f64 = 8.5;
/// How far labels are moved away before they are left where they are.
const RINGS: usize = 14;

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Area {
    /// Whether two have more than an edge in common.
    pub(super) fn overlaps(&self, other: &Area) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    fn is_within(&self, other: &Area) -> bool {
        self.left >= other.left && self.right <= other.right && self.top >= other.top && self.bottom <= other.bottom
    }

    /// Of a text that begins at a place of its baseline.
    pub(super) fn of_text(text: &str, x: f64, y: f64) -> Area {
        let width = LETTER * text.chars().count() as f64;
        Area { left: x - SPACE, top: y - ASCENT, right: x + width + SPACE, bottom: y - ASCENT + LINE }
    }

    /// Around a place.
    pub(super) fn around(x: f64, y: f64, radius: f64) -> Area {
        Area { left: x - radius, top: y - radius, right: x + radius, bottom: y + radius }
    }
}

/// A label that has its place: where its text begins, and whether it is so far away that a line has to lead to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Placed {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) is_far: bool,
}

/// What has a place already.
#[derive(Debug)]
pub(super) struct Labels {
    all: Area,
    taken: Vec<Area>,
}

impl Labels {
    /// A drawing of this size where nothing is yet.
    pub(super) fn new(all: Area) -> Labels {
        Labels { all, taken: Vec::new() }
    }

    /// Nothing may be here.
    pub(super) fn keep_free(&mut self, area: Area) {
        self.taken.push(area);
    }

    fn is_free(&self, area: &Area) -> bool {
        area.is_within(&self.all) && !self.taken.iter().any(|taken| taken.overlaps(area))
    }

    /// The place for a text that should begin at `x`, `y`: there, or above or below it.
    pub(super) fn in_column(&mut self, text: &str, x: f64, y: f64) -> Placed {
        let steps = (0..=RINGS).flat_map(|ring| [-(ring as f64), ring as f64]);
        let places = steps.map(|step| (x, y + step * LINE));
        self.place(text, (x, y), places)
    }

    /// The place for the text of a point: beside it, or further away.
    pub(super) fn at_point(&mut self, text: &str, x: f64, y: f64) -> Placed {
        let width = LETTER * text.chars().count() as f64;
        let right = (x + BESIDE, y + 4.0);
        let around = (0..RINGS).flat_map(move |ring| {
            let away = ring as f64 * LINE;
            [
                (x + BESIDE + away, y + 4.0),
                (x - BESIDE - away - width, y + 4.0),
                (x - width / 2.0, y - 8.0 - away),
                (x - width / 2.0, y + 16.0 + away),
                (x + BESIDE + away, y - 8.0 - away),
                (x + BESIDE + away, y + 16.0 + away),
                (x - BESIDE - away - width, y - 8.0 - away),
                (x - BESIDE - away - width, y + 16.0 + away),
            ]
        });
        self.place(text, right, around)
    }

    /// The first place that is free; if none is, the one that was wanted.
    fn place(&mut self, text: &str, wanted: (f64, f64), places: impl Iterator<Item = (f64, f64)>) -> Placed {
        let mut places = places.filter(|(x, y)| self.is_free(&Area::of_text(text, *x, *y)));
        let (x, y) = places.next().unwrap_or(wanted);
        self.taken.push(Area::of_text(text, x, y));
        let is_far = (x - wanted.0).abs() > 2.0 * LINE || (y - wanted.1).abs() > 1.5 * LINE;
        Placed { x, y, is_far }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_near_points_do_not_overlap() {
        let all = Area { left: 0.0, top: 0.0, right: 1000.0, bottom: 400.0 };
        let mut labels = Labels::new(all);
        // Thirty points on one place, three roofs that are nearly the same, and a corner.
        let mut areas = Vec::new();
        for number in 0..30 {
            let text = number.to_string();
            let placed = labels.at_point(&text, 500.0, 200.0);
            areas.push(Area::of_text(&text, placed.x, placed.y));
        }
        for (number, text) in ["vector f32", "vector f64", "matrix f16"].into_iter().enumerate() {
            let placed = labels.in_column(text, 860.0, 50.0 + number as f64);
            areas.push(Area::of_text(text, placed.x, placed.y));
        }
        let placed = labels.at_point("7", 998.0, 2.0);
        areas.push(Area::of_text("7", placed.x, placed.y));
        for (at, area) in areas.iter().enumerate() {
            assert!(area.is_within(&all), "{area:?}");
            assert!(areas[..at].iter().all(|other| !other.overlaps(area)), "{at}: {area:?}");
        }
    }

    #[test]
    fn a_label_that_has_room_stays() {
        let mut labels = Labels::new(Area { left: 0.0, top: 0.0, right: 100.0, bottom: 100.0 });
        let first = labels.at_point("1", 50.0, 50.0);
        assert_eq!(first, Placed { x: 58.5, y: 54.0, is_far: false });
        let second = labels.at_point("2", 50.0, 50.0);
        assert!(second.x < 50.0 && !second.is_far, "{second:?}");
    }
}
