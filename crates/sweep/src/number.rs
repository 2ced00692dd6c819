//! Values of parameters as numbers: plain ones, and quantities with a unit.

use bellwire_model::units::{Bytes, Frequency, Rate, Span};
use toml::Value;

/// A value that lies on a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Integer(i64),
    /// A decimal number.
    Real(f64),
    /// A quantity.
    Quantity(Dimension, u64),
}

/// What a quantity measures. Its number counts the smallest unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// In picoseconds.
    Time,
    /// In hertz.
    Frequency,
    /// In bytes.
    Size,
    /// In bytes per second.
    Rate,
}

impl Number {
    /// The number that a value stands for, if it stands for one.
    pub fn of(value: &Value) -> Option<Number> {
        match value {
            Value::Integer(number) => Some(Number::Integer(*number)),
            Value::Float(number) if number.is_finite() => Some(Number::Real(*number)),
            Value::String(text) => {
                let quantity = |dimension, count| Some(Number::Quantity(dimension, count));
                if let Ok(span) = text.parse::<Span>() {
                    return quantity(Dimension::Time, span.ps());
                }
                if let Ok(frequency) = text.parse::<Frequency>() {
                    return quantity(Dimension::Frequency, frequency.hz());
                }
                if let Ok(bytes) = text.parse::<Bytes>() {
                    return quantity(Dimension::Size, bytes.count());
                }
                let rate = text.parse::<Rate>().ok()?;
                quantity(Dimension::Rate, rate.bytes_per_second())
            }
            _ => None,
        }
    }

    /// The same number as a float; a quantity counts the smallest unit.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Integer(number) => number as f64,
            Number::Real(number) => number,
            Number::Quantity(_, count) => count as f64,
        }
    }

    /// Whether two numbers can be the ends of a range.
    pub fn is_like(self, other: Number) -> bool {
        match (self, other) {
            (Number::Quantity(one, _), Number::Quantity(two, _)) => one == two,
            (Number::Quantity(..), _) | (_, Number::Quantity(..)) => false,
            _ => true,
        }
    }

    /// The value of the same kind that is nearest to a float. Both ends of a range must be whole
    /// for whole values.
    pub fn nearest(self, to: f64) -> Value {
        match self {
            Number::Integer(_) => Value::Integer(to.round() as i64),
            // Twelve digits: the last ones of a power differ between libraries.
            Number::Real(_) => Value::Float(format!("{to:.11e}").parse().unwrap_or(to)),
            Number::Quantity(dimension, _) => {
                let count = to.round() as u64;
                Value::String(match dimension {
                    Dimension::Time => Span::from_ps(count).to_string(),
                    Dimension::Frequency => Frequency::from_hz(count).to_string(),
                    Dimension::Size => Bytes::new(count).to_string(),
                    Dimension::Rate => Rate::from_bytes_per_second(count).to_string(),
                })
            }
        }
    }
}

/// The unit that a quantity is written in, and its size in the smallest unit.
pub fn unit(value: &Value) -> Option<(String, f64)> {
    let (text, Number::Quantity(dimension, _)) = (value.as_str()?, Number::of(value)?) else {
        return None;
    };
    let name = text.trim_start_matches(|c: char| c.is_ascii_digit() || ". _".contains(c)).trim();
    let one = format!("1 {name}");
    let size = match dimension {
        Dimension::Time => one.parse::<Span>().ok()?.ps(),
        Dimension::Frequency => one.parse::<Frequency>().ok()?.hz(),
        Dimension::Size => one.parse::<Bytes>().ok()?.count(),
        Dimension::Rate => one.parse::<Rate>().ok()?.bytes_per_second(),
    };
    Some((name.to_owned(), size as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::String(text.to_owned())
    }

    /// Quantities are counted in their smallest unit, and other texts are no numbers.
    #[test]
    fn texts_with_units_are_numbers() {
        let is = |value: &str, dimension, count| {
            assert_eq!(Number::of(&text(value)), Some(Number::Quantity(dimension, count)));
        };
        is("2.5 ns", Dimension::Time, 2500);
        is("250 MHz", Dimension::Frequency, 250_000_000);
        is("2 KiB", Dimension::Size, 2048);
        is("4 GB/s", Dimension::Rate, 4_000_000_000);
        assert_eq!(Number::of(&text("put")), None);
        assert_eq!(Number::of(&Value::Boolean(true)), None);
        assert_eq!(unit(&text("2.5 GB/s")), Some(("GB/s".to_owned(), 1e9)));
        assert_eq!(unit(&text("12KiB")), Some(("KiB".to_owned(), 1024.0)));
        assert_eq!(unit(&text("put")), None);
    }

    /// What is nearest has the same kind, and can be read again.
    #[test]
    fn nearest_values_are_of_the_same_kind() {
        let nearest = |of: Value, to: f64| Number::of(&of).unwrap().nearest(to);
        assert_eq!(nearest(Value::Integer(1), 2.6), Value::Integer(3));
        assert_eq!(nearest(Value::Float(1.0), 0.1 + 0.2), Value::Float(0.3));
        let clock = nearest(text("100 MHz"), 223_606_797.7);
        assert_eq!(Number::of(&clock), Some(Number::Quantity(Dimension::Frequency, 223_606_798)));
        assert_eq!(nearest(text("1 us"), 2_000_000.2), text("2 us"));
    }
}
