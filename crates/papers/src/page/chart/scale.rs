//! Axes: positions of numbers, ticks, and the format of numbers.

use bellwire_model::experiment::Axis;

use super::cut;

/// An axis with its range.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    logarithmic: bool,
    low: f64,
    high: f64,
    ticks: Vec<Tick>,
    /// What stands for 0, 1, 2 and so on, if the values are no numbers.
    texts: Vec<String>,
}

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The number there.
    pub at: f64,
    /// The number as text; empty for a line without one.
    pub label: String,
}

/// Most ticks of an axis.
const ROOM: usize = 6;

impl Scale {
    /// The scale that covers all `values` that have a position.
    pub fn new(axis: &Axis, values: impl Iterator<Item = f64>) -> Scale {
        let placeable = |value: &f64| value.is_finite() && (!axis.logarithmic || *value > 0.0);
        let values: Vec<f64> = values.filter(placeable).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match (values.is_empty(), axis.logarithmic) {
            (true, false) => linear(0.0, 1.0),
            (true, true) => decimal(1.0, 10.0),
            (false, true) if values.iter().all(|value| is_power_of_two(*value)) && high > low => {
                binary(low, high, axis.unit == "B")
            }
            (false, true) => decimal(low, high),
            (false, false) => linear(low, high),
        }
    }

    /// The scale of texts, which stand for 0, 1, 2 and so on. Each has a tick, as far as there is
    /// room. Long ones are cut there.
    pub fn of_texts(texts: &[String]) -> Scale {
        /// In one line below a chart.
        const LETTERS: usize = 56;
        let every = texts.len().div_ceil(ROOM).max(1);
        let letters = LETTERS / texts.len().div_ceil(every).max(1);
        let tick = |(at, text): (usize, &String)| Tick { at: at as f64, label: cut(text, letters) };
        let ticks = texts.iter().enumerate().step_by(every).map(tick).collect();
        let high = texts.len() as f64 - 0.5;
        Scale { logarithmic: false, low: -0.5, high, ticks, texts: texts.to_owned() }
    }

    /// The same with room at both ends, so that no mark lies on the frame.
    pub fn with_margin(self) -> Scale {
        const SHARE: f64 = 0.04;
        let (low, high) = match self.logarithmic {
            true => {
                let factor = (self.high / self.low).powf(SHARE);
                (self.low / factor, self.high * factor)
            }
            false => {
                let margin = (self.high - self.low) * SHARE;
                (self.low - margin, self.high + margin)
            }
        };
        Scale { low, high, ..self }
    }

    /// A value as text.
    pub fn text(&self, value: f64) -> String {
        self.texts.get(value as usize).cloned().unwrap_or_else(|| number(value))
    }

    /// The position of a number, from 0 at the low end to 1 at the high end; `None` if it has none
    /// on this scale.
    pub fn place(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || self.logarithmic && value <= 0.0 {
            return None;
        }
        let of = |value: f64| if self.logarithmic { value.log2() } else { value };
        Some((of(value) - of(self.low)) / (of(self.high) - of(self.low)))
    }

    /// The marks, from low to high.
    pub fn ticks(&self) -> &[Tick] {
        &self.ticks
    }
}

/// From zero, unless the values are far from it.
fn linear(low: f64, high: f64) -> Scale {
    let (low, high) = match () {
        () if low >= 0.0 && low < 0.7 * high => (0.0, high),
        () if low < high => (low, high),
        () => (low - low.abs() * 0.1 - 0.5, high + high.abs() * 0.1 + 0.5),
    };
    let step = round_step((high - low) / (ROOM - 1) as f64);
    let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
    let ticks: Vec<Tick> = (0..=(last - first) as usize)
        .map(|count| (first + count as f64) * step)
        .map(|at| Tick { at, label: number(at) })
        .collect();
    let (low, high) = (first * step, last * step);
    Scale { logarithmic: false, low, high, ticks, texts: Vec::new() }
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_step(at_least: f64) -> f64 {
    let ten = 10f64.powf(at_least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * ten)
        .into_iter()
        .find(|step| *step >= at_least * 0.999)
        .unwrap_or(10.0 * ten)
}

fn decimal(low: f64, high: f64) -> Scale {
    // A small margin, so that no mark lies on the frame.
    let (low, high) = (low / 1.15, high * 1.15);
    let decades = (high / low).log10();
    let factors: &[f64] = match () {
        () if decades < 1.6 => &[1.0, 2.0, 3.0, 5.0, 7.0],
        () if decades < 2.6 => &[1.0, 2.0, 5.0],
        () => &[1.0],
    };
    let every = (decades / ROOM as f64).ceil().max(1.0) as i32;
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let ticks = (first..=last)
        .filter(|power| factors.len() > 1 || power.rem_euclid(every) == 0)
        .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
        .filter(|at| (low..=high).contains(at))
        .map(|at| Tick { at, label: number(at) })
        .collect();
    Scale { logarithmic: true, low, high, ticks, texts: Vec::new() }
}

fn is_power_of_two(value: f64) -> bool {
    value > 0.0 && value.log2().fract() == 0.0
}

/// Sizes and counts that double: ticks at some powers of two.
fn binary(low: f64, high: f64, in_bytes: bool) -> Scale {
    let (first, last) = (low.log2() as i32, high.log2() as i32);
    let every = ((last - first) as usize).div_ceil(ROOM + 2).max(1) as i32;
    let ticks = (first..=last)
        .filter(|power| (power - first) % every == 0)
        .map(|power| 2f64.powi(power))
        .map(|at| Tick { at, label: if in_bytes { size(at) } else { number(at) } })
        .collect();
    let (low, high) = (low / 1.15, high * 1.15);
    Scale { logarithmic: true, low, high, ticks, texts: Vec::new() }
}

/// A size in bytes with a binary prefix, if it is a whole multiple.
fn size(bytes: f64) -> String {
    let prefixes = [(30, "Gi"), (20, "Mi"), (10, "Ki")];
    let found = prefixes.iter().find(|(power, _)| bytes >= 2f64.powi(*power));
    found.map_or(number(bytes), |(power, prefix)| {
        format!("{}{prefix}", number(bytes / 2f64.powi(*power)))
    })
}

/// A number with four significant digits, without trailing zeros.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let power = value.abs().log10().floor() as i32;
    if !(-4..7).contains(&power) {
        let text = format!("{value:.3e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.'));
    }
    let places = (3 - power).max(0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A number with the half-width of its 95 % interval, if a random draw decides it.
pub fn with_interval(value: f64, half_width: Option<f64>) -> String {
    match half_width {
        Some(half_width) if half_width != 0.0 => {
            format!("{} ± {}", number(value), number(half_width))
        }
        _ => number(value),
    }
}

/// A relative error in percent, with its sign.
pub fn error(percent: f64) -> String {
    let text = format!("{percent:+.1} %");
    // Zero has no sign of its own.
    if text == "-0.0 %" { "+0.0 %".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let scale = Scale::new(axis, values.iter().copied());
        scale.ticks().iter().map(|tick| tick.label.clone()).collect()
    }

    const LINEAR: Axis = Axis::linear("x", "");
    const BYTES: Axis = Axis::logarithmic("x", "B");
    const RATIO: Axis = Axis::logarithmic("x", "");

    /// Ticks are round numbers that span all values.
    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(&LINEAR, &[0.2, 3.19]), ["0", "1", "2", "3", "4"]);
        assert_eq!(labels(&LINEAR, &[95.0, 100.0]), ["95", "96", "97", "98", "99", "100"]);
        assert_eq!(labels(&LINEAR, &[-3.0, 5.0]), ["-4", "-2", "0", "2", "4", "6"]);
        assert_eq!(
            labels(&BYTES, &[1.0, 1048576.0]),
            ["1", "8", "64", "512", "4Ki", "32Ki", "256Ki"]
        );
        assert_eq!(labels(&RATIO, &[3.0, 40_000.0]), ["10", "100", "1000", "10000"]);
        assert_eq!(labels(&RATIO, &[8.0, 30.0]), ["7", "10", "20", "30"]);
    }

    /// Every value with a position lies between 0 and 1, also if there is one only, or none, or all
    /// are equal.
    #[test]
    fn values_have_places() {
        let lists: [&[f64]; 7] = [
            &[],
            &[0.0],
            &[7.0],
            &[-7.0, -7.0],
            &[1e-9, 1e9],
            &[f64::NAN, f64::INFINITY, 4.0],
            &[2.0, 4.0, 8.0],
        ];
        for axis in [LINEAR, BYTES, RATIO] {
            for list in lists {
                let scale = Scale::new(&axis, list.iter().copied());
                assert!(scale.ticks().len() < 24, "{axis:?} {list:?} {scale:?}");
                for place in list.iter().filter_map(|value| scale.place(*value)) {
                    assert!((0.0..=1.0).contains(&place), "{axis:?} {list:?} {scale:?}");
                }
            }
            assert_eq!(Scale::new(&axis, [1.0].into_iter()).place(f64::NAN), None);
        }
        assert_eq!(Scale::new(&RATIO, [1.0].into_iter()).place(0.0), None);
    }

    /// Texts stand in the place of numbers: each has a tick, and of many every second or third.
    #[test]
    fn texts_have_ticks() {
        let texts = |count| (0..count).map(|at| format!("text {at}")).collect::<Vec<String>>();
        let scale = Scale::of_texts(&texts(2));
        let ticks: Vec<&str> = scale.ticks().iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(ticks, ["text 0", "text 1"]);
        assert_eq!([scale.place(0.0), scale.place(1.0)], [Some(0.25), Some(0.75)]);
        assert_eq!([scale.text(1.0), scale.text(7.0)], ["text 1", "7"]);
        let many = Scale::of_texts(&texts(13));
        let ticks: Vec<&str> = many.ticks().iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(ticks, ["text 0", "text 3", "text 6", "text 9", "text 12"]);
        let long = Scale::of_texts(&["a".repeat(99), "b".to_owned()]);
        assert_eq!(long.ticks()[0].label, "a".repeat(27) + "…");
        assert_eq!(long.text(0.0), "a".repeat(99));
        assert!(Scale::of_texts(&[]).ticks().is_empty());
    }

    /// A margin leaves the ticks as they are, and the ends away from the frame, by the same share
    /// of a linear and a logarithmic axis.
    #[test]
    fn a_margin_keeps_the_ends_from_the_frame() {
        for axis in [LINEAR, BYTES, RATIO] {
            let plain = Scale::new(&axis, [1.0, 8.0, 4096.0].into_iter());
            let scale = plain.clone().with_margin();
            assert_eq!(scale.ticks(), plain.ticks());
            let places = |at: f64| [plain.place(at).unwrap(), scale.place(at).unwrap()];
            for [without, with] in [1.0, 8.0, 4096.0].map(places) {
                assert!((0.03..=0.97).contains(&with), "{axis:?} {with}");
                assert!((with - (without + 0.04) / 1.08).abs() < 1e-9, "{axis:?} {with}");
            }
        }
    }

    /// Numbers keep their significant digits.
    #[test]
    fn numbers_are_short() {
        let pairs = [
            (0.0, "0"),
            (3.19, "3.19"),
            (1.2426, "1.243"),
            (262_144.0, "262144"),
            (0.0005252, "0.0005252"),
            (-12.5, "-12.5"),
            (1e12, "1e12"),
            (118_000_000.0, "1.18e8"),
            (0.000_01, "1e-5"),
            (f64::NAN, "-"),
        ];
        for (value, text) in pairs {
            assert_eq!(number(value), text);
        }
        assert_eq!(error(-0.01), "+0.0 %");
        assert_eq!(error(-7.25), "-7.2 %");
    }
}
