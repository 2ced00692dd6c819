//! Quantities with units: as types in code, as strings with a unit in TOML (`"250 MHz"`, `"4 ns"`,
//! `"128 B"`, `"4 GB/s"`).
//!
//! One form only: a number, optional white space, and the unit. Decimal prefixes are powers of ten
//! (`kB`, `MB`, `GB`), binary ones powers of two (`KiB`, `MiB`, `GiB`). A number without a unit is
//! refused, because it is ambiguous.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Picoseconds in a second.
const PS_PER_SECOND: u128 = 1_000_000_000_000;

/// A moment in virtual time: picoseconds since the run began. 63 bits are used: 106 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A duration in virtual time, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Time {
    /// The beginning of every run.
    pub const ZERO: Time = Time(0);
    /// Later than any event.
    pub const NEVER: Time = Time(i64::MAX as u64);

    /// The moment `ps` picoseconds after the beginning of the run.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// Picoseconds since the beginning of the run.
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this moment.
    ///
    /// # Panics
    /// In debug builds if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        debug_assert!(self.0 >= earlier.0);
        Span(self.0 - earlier.0)
    }

    /// The moment `span` earlier, or the beginning of the run if that is later.
    pub const fn saturating_sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }

    /// The next edge, at or after this moment, of a clock with this period and its first edge at
    /// zero.
    pub const fn edge(self, period: Span) -> Time {
        Time(self.0.div_ceil(period.0) * period.0)
    }
}

impl Span {
    /// No time.
    pub const ZERO: Span = Span(0);

    /// A span of `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Span {
        Span(ps)
    }

    /// A span of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns * 1_000)
    }

    /// In picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// In nanoseconds, for printing.
    pub fn as_ns(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The difference, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

/// Implements an operator of two quantities.
macro_rules! operator {
    ($Op:ident::$op:ident($left:ident: $Left:ty, $right:ident: $Right:ty) -> $Output:ty = $result:expr) => {
        impl $Op<$Right> for $Left {
            type Output = $Output;
            fn $op(self, $right: $Right) -> $Output {
                let $left = self;
                $result
            }
        }
    };
}

operator!(Add::add(time: Time, span: Span) -> Time = Time(time.0 + span.0));
operator!(Sub::sub(time: Time, earlier: Time) -> Span = time.since(earlier));
operator!(Add::add(span: Span, other: Span) -> Span = Span(span.0 + other.0));
operator!(Sub::sub(span: Span, other: Span) -> Span = Span(span.0 - other.0));
operator!(Mul::mul(span: Span, factor: u64) -> Span = Span(span.0 * factor));
operator!(Div::div(span: Span, divisor: u64) -> Span = Span(span.0 / divisor));
operator!(Div::div(span: Span, other: Span) -> u64 = span.0 / other.0);
operator!(Rem::rem(span: Span, other: Span) -> Span = Span(span.0 % other.0));

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, other: Span) {
        self.0 -= other.0;
    }
}

impl std::iter::Sum for Span {
    fn sum<I: Iterator<Item = Span>>(spans: I) -> Span {
        spans.fold(Span::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

/// A divisor with its inverse, because models divide at every event and a division is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Divisor {
    value: u64,
    /// 2^64 / value, rounded down.
    inverse: u64,
}

impl Divisor {
    const fn new(value: u64) -> Divisor {
        let inverse = if value > 1 { ((1u128 << 64) / value as u128) as u64 } else { u64::MAX };
        Divisor { value, inverse }
    }

    /// The quotient, rounded up.
    #[inline]
    const fn div_ceil(self, dividend: u64) -> u64 {
        let quotient = ((dividend as u128 * self.inverse as u128) >> 64) as u64;
        // The inverse is rounded down, so the quotient may be one too low.
        let rest = dividend - quotient * self.value;
        quotient + (rest > 0) as u64 + (rest > self.value) as u64
    }
}

/// A clock rate, in hertz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frequency {
    hz: u64,
    /// In picoseconds.
    period: Divisor,
}

impl Frequency {
    /// A frequency of `hz` hertz; zero is not a clock, see [`Frequency::period`].
    pub const fn from_hz(hz: u64) -> Frequency {
        let period = if hz == 0 { 0 } else { (PS_PER_SECOND + hz as u128 / 2) / hz as u128 };
        Frequency { hz, period: Divisor::new(period as u64) }
    }

    /// A frequency of `mhz` megahertz.
    pub const fn from_mhz(mhz: u64) -> Frequency {
        Frequency::from_hz(mhz * 1_000_000)
    }

    /// In hertz.
    pub const fn hz(self) -> u64 {
        self.hz
    }

    /// The duration of one cycle, rounded to the nearest picosecond (250 MHz: 4 ns).
    ///
    /// # Panics
    /// If the frequency is zero, or so high that a cycle rounds to zero; TOML cannot give either.
    #[inline]
    pub const fn period(self) -> Span {
        assert!(self.period.value > 0, "a cycle must last a picosecond or more");
        Span(self.period.value)
    }

    /// The next edge at or after `time`, with the first at zero: [`Time::edge`] without a division.
    #[inline]
    pub const fn edge(self, time: Time) -> Time {
        Time(self.period.div_ceil(time.0) * self.period().0)
    }
}

/// An amount of data, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// A size of `bytes` bytes.
    pub const fn new(bytes: u64) -> Bytes {
        Bytes(bytes)
    }

    /// As a plain number.
    pub const fn count(self) -> u64 {
        self.0
    }

    /// Number of pieces of `piece` bytes; the last may be shorter.
    pub const fn pieces(self, piece: Bytes) -> u64 {
        self.0.div_ceil(piece.0)
    }
}

/// A data rate, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    bytes_per_second: Divisor,
}

impl Rate {
    /// A rate of `rate` bytes per second.
    pub const fn from_bytes_per_second(rate: u64) -> Rate {
        Rate { bytes_per_second: Divisor::new(rate) }
    }

    /// In bytes per second.
    pub const fn bytes_per_second(self) -> u64 {
        self.bytes_per_second.value
    }

    /// How long `bytes` take at this rate, rounded up to a picosecond.
    ///
    /// # Panics
    /// If the rate is zero; TOML cannot give that.
    #[inline]
    pub const fn time(self, bytes: Bytes) -> Span {
        let rate = self.bytes_per_second();
        assert!(rate > 0, "at a rate of zero nothing ever comes");
        // A dividend of 64 bits needs no division.
        if bytes.0 < 1 << 24 {
            return Span(self.bytes_per_second.div_ceil(bytes.0 * PS_PER_SECOND as u64));
        }
        Span((bytes.0 as u128 * PS_PER_SECOND).div_ceil(rate as u128) as u64)
    }
}

/// Why a quantity is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what}: {why}; write a number and a unit, such as \"{example}\"")]
pub struct QuantityError {
    text: String,
    what: &'static str,
    why: String,
    example: &'static str,
}

/// A unit's name, and its size in base units.
type Unit = (&'static str, u128);

/// The kind of a quantity: its name, an example, its units and which of them it prints, whether
/// zero is allowed, and its maximum.
struct Kind {
    what: &'static str,
    example: &'static str,
    units: &'static [Unit],
    prints: [usize; 4],
    zero: bool,
    most: u128,
}

/// The largest quantity that is read: 2^62.
const MOST: u128 = 4_611_686_018_427_387_904;

const SPAN: Kind = Kind {
    what: "time",
    example: "4 ns",
    units: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
    ],
    prints: [0, 1, 2, 3],
    zero: true,
    most: MOST,
};

const FREQUENCY: Kind = Kind {
    what: "frequency",
    example: "250 MHz",
    units: &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)],
    prints: [0, 1, 2, 3],
    zero: false,
    most: PS_PER_SECOND,
};

const BYTES: Kind = Kind {
    what: "size",
    example: "128 B",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1_024),
        ("MiB", 1_048_576),
        ("GiB", 1_073_741_824),
    ],
    prints: [0, 4, 5, 6],
    zero: true,
    most: MOST,
};

const RATE: Kind = Kind {
    what: "data rate",
    example: "4 GB/s",
    units: &[
        ("B/s", 1),
        ("kB/s", 1_000),
        ("MB/s", 1_000_000),
        ("GB/s", 1_000_000_000),
        ("KiB/s", 1_024),
        ("MiB/s", 1_048_576),
        ("GiB/s", 1_073_741_824),
    ],
    prints: [0, 1, 2, 3],
    zero: false,
    most: MOST,
};

/// Reads a decimal number and a unit, exactly, without floats.
fn parse(text: &str, kind: &Kind) -> Result<u64, QuantityError> {
    let wrong = |why: String| QuantityError {
        text: text.to_owned(),
        what: kind.what,
        why,
        example: kind.example,
    };
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim());
    if unit.is_empty() {
        return Err(wrong("it has no unit".to_owned()));
    }
    let factor =
        kind.units.iter().find(|known| known.0 == unit).map(|known| known.1).ok_or_else(|| {
            let known: Vec<&str> = kind.units.iter().map(|known| known.0).collect();
            wrong(format!("the unit `{unit}` is none of {}", known.join(", ")))
        })?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: String = whole.chars().chain(fraction.chars()).filter(|&c| c != '_').collect();
    if digits.is_empty() || digits.contains('.') {
        return Err(wrong(format!("`{number}` is not a number")));
    }
    let fraction_digits = fraction.chars().filter(char::is_ascii_digit).count();
    let scale = u32::try_from(fraction_digits).ok().and_then(|digits| 10u128.checked_pow(digits));
    let (Ok(value), Some(scale)) = (digits.parse::<u128>(), scale) else {
        return Err(wrong("it has too many digits".to_owned()));
    };
    let scaled = value.checked_mul(factor).ok_or_else(|| wrong("it is too large".to_owned()))?;
    if scaled % scale != 0 {
        return Err(wrong(format!("it is not a whole number of {}", kind.units[0].0)));
    }
    match scaled / scale {
        0 if !kind.zero => Err(wrong("it must not be zero".to_owned())),
        value if value > kind.most => Err(wrong("it is too large".to_owned())),
        value => Ok(value as u64),
    }
}

/// Prints in the largest unit that needs no more than three decimals.
fn print(f: &mut fmt::Formatter<'_>, value: u64, kind: &Kind) -> fmt::Result {
    let value = u128::from(value);
    let fits = |size: u128| value >= size && (value * 1_000).is_multiple_of(size);
    let units = kind.prints.map(|at| kind.units[at]);
    let (unit, size) = units.into_iter().rfind(|unit| fits(unit.1)).unwrap_or(units[0]);
    let thousandths = value % size * 1_000 / size;
    if thousandths == 0 {
        write!(f, "{} {unit}", value / size)
    } else {
        let decimals = format!("{thousandths:03}");
        write!(f, "{}.{} {unit}", value / size, decimals.trim_end_matches('0'))
    }
}

macro_rules! text_form {
    ($type:ident, $made_by:expr, $base:ident, $kind:expr) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                print(f, self.$base(), &$kind)
            }
        }

        impl std::str::FromStr for $type {
            type Err = QuantityError;
            fn from_str(text: &str) -> Result<$type, QuantityError> {
                parse(text, &$kind).map($made_by)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "a {} with its unit, such as \"{}\"", $kind.what, $kind.example)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Visitor)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

text_form!(Span, Span, ps, SPAN);
text_form!(Frequency, Frequency::from_hz, hz, FREQUENCY);
text_form!(Bytes, Bytes, count, BYTES);
text_form!(Rate, Rate::from_bytes_per_second, bytes_per_second, RATE);

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantities are read exactly, and the printed form reads back as the same.
    #[test]
    fn quantities_read_and_print() {
        assert_eq!("4 ns".parse(), Ok(Span::from_ns(4)));
        assert_eq!("0.3125ns".parse::<Span>().unwrap_err().why, "it is not a whole number of ps");
        assert_eq!("2.5 us".parse(), Ok(Span::from_ps(2_500_000)));
        assert_eq!("250 MHz".parse::<Frequency>().unwrap().period(), Span::from_ns(4));
        assert_eq!("2 KiB".parse(), Ok(Bytes::new(2048)));
        assert_eq!("4 GB/s".parse::<Rate>().unwrap().time(Bytes::new(16)), Span::from_ns(4));
        for text in ["4 ns", "1.242 us", "7 ps", "0 ps", "33.333 ns"] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.to_string(), text);
            assert_eq!(span.to_string().parse(), Ok(span));
        }
        assert_eq!(Bytes::new(4096).to_string(), "4 KiB");
        assert_eq!(Rate::from_bytes_per_second(3_200_000_000).to_string(), "3.2 GB/s");
    }

    /// A wrong quantity is refused with the quantity, the reason and an example.
    #[test]
    fn wrong_quantities_are_refused() {
        for (text, why) in [
            ("4", "it has no unit"),
            ("ns", "`` is not a number"),
            ("4 MHz", "the unit `MHz` is none of ps, ns, us, ms, s"),
            ("-4 ns", "the unit `-4 ns` is none of ps, ns, us, ms, s"),
            ("1.2.3 ns", "`1.2.3` is not a number"),
            ("99999999999 s", "it is too large"),
            ("9999999999999999999999999999999999999999999 s", "it has too many digits"),
        ] {
            let error = text.parse::<Span>().unwrap_err();
            assert_eq!(error.why, why, "{text}");
            assert!(error.to_string().contains("such as \"4 ns\""));
        }
        assert_eq!("0 GHz".parse::<Frequency>().unwrap_err().why, "it must not be zero");
    }

    /// A time at a rate is the exact one, rounded up.
    #[test]
    fn times_at_rates() {
        for rate in [1, 2, 3, 999, 4_000_000_000, 12_800_000_000, 999_999_999_989, u64::MAX] {
            for bytes in [0, 1, 2, 3, 16, 127, 4_096, 65_537, (1 << 24) - 1, 1 << 24] {
                let exact = (u128::from(bytes) * PS_PER_SECOND).div_ceil(u128::from(rate));
                let time = Rate::from_bytes_per_second(rate).time(Bytes::new(bytes));
                assert_eq!(u128::from(time.ps()), exact, "{bytes} B at {rate} B/s");
            }
        }
    }

    /// Sums and differences of times; a period is rounded to the nearest picosecond.
    #[test]
    fn times_add_up() {
        let (mut time, mut span) = (Time::from_ps(7), Span::from_ps(10));
        time += span;
        span += Span::from_ps(5);
        assert_eq!((time, span), (Time::from_ps(17), Span::from_ps(15)));
        span -= Span::from_ps(4);
        assert_eq!(span, Span::from_ps(11));
        assert_eq!(
            (span / Span::from_ps(4), span % Span::from_ps(4), span / 3),
            (2, Span::from_ps(3), Span::from_ps(3))
        );
        assert_eq!([1, 2, 3].map(Span::from_ps).into_iter().sum::<Span>(), Span::from_ps(6));
        assert_eq!(Frequency::from_mhz(600).period(), Span::from_ps(1_667));
        assert_eq!(Frequency::from_mhz(300).period(), Span::from_ps(3_333));
        assert_eq!(Bytes::new(9).pieces(Bytes::new(4)), 3);
        let far = Rate::from_bytes_per_second(1_000).time(Bytes::new(1 << 30));
        assert_eq!(far.ps(), (1 << 30) * 1_000_000_000);
        assert_eq!("1.005 us".parse::<Span>().unwrap().to_string(), "1.005 us");
        let most = "4611686018427387904 ps";
        assert_eq!(most.parse::<Span>().map(Span::ps), Ok(1 << 62));
        assert_eq!("4611686018427387905 ps".parse::<Span>().unwrap_err().why, "it is too large");
    }

    /// The next edge of a clock is the present moment if that is an edge.
    #[test]
    fn edges_of_clocks() {
        let period = Span::from_ns(4);
        assert_eq!(Time::from_ps(0).edge(period), Time::ZERO);
        assert_eq!(Time::from_ps(1).edge(period), Time::from_ps(4_000));
        assert_eq!(Time::from_ps(4_000).edge(period), Time::from_ps(4_000));
        for hz in [1, 3, 250_000_000, 333_333_333, 999_999_999_999, 1_000_000_000_000] {
            let clock = Frequency::from_hz(hz);
            let far = Time::NEVER.ps() - clock.period().ps();
            for time in [0, 1, 2, 3_999, 4_000, 12_003, far / 3, far - 1, far] {
                let time = Time::from_ps(time);
                assert_eq!(clock.edge(time), time.edge(clock.period()), "{clock} {time:?}");
            }
        }
    }
}
