//! An axis: the values of one parameter.

use serde::Deserialize;
use toml::Value;

use crate::number::Number;

/// The values of one parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// These.
    Values(Vec<Value>),
    /// All between two ends, both included.
    Range(Range),
}

/// All values between two ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    from: Number,
    to: Number,
    is_logarithmic: bool,
    /// The ends as they stand in the file.
    pub ends: [Value; 2],
}

/// A range in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    from: Value,
    to: Value,
    steps: Option<u64>,
    #[serde(default)]
    scale: Scale,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Scale {
    #[default]
    Linear,
    Log,
}

/// Steps of a range in a grid, at most.
const MOST_STEPS: u64 = 1_000_000;

impl Axis {
    /// Reads an axis of a grid, whose ranges have steps.
    ///
    /// # Errors
    /// The rest of a sentence that begins with the parameter.
    pub fn of_grid(value: &Value) -> Result<Axis, String> {
        match value {
            Value::Array(values) => listed(values),
            Value::Table(_) => {
                let form: Form = read(value)?;
                let steps = form.steps.ok_or("is a range in a grid, so it needs `steps`")?;
                if !(2..=MOST_STEPS).contains(&steps) {
                    return Err(format!("has {steps} steps; it must have 2 to {MOST_STEPS}"));
                }
                let range = Range::new(form)?;
                let at = |step: u64| range.at(step as f64 / (steps - 1) as f64);
                let mut values: Vec<Value> = (0..steps).map(at).collect();
                // Whole numbers that lie close together.
                values.dedup();
                Ok(Axis::Values(values))
            }
            _ => Err(SHAPE.to_owned()),
        }
    }

    /// Reads an axis of a sample, whose ranges have no steps.
    ///
    /// # Errors
    /// The rest of a sentence that begins with the parameter.
    pub fn of_sample(value: &Value) -> Result<Axis, String> {
        match value {
            Value::Array(values) => listed(values),
            Value::Table(_) => {
                let form: Form = read(value)?;
                if form.steps.is_some() {
                    return Err("has `steps`, but a sample takes any value of a range".to_owned());
                }
                Ok(Axis::Range(Range::new(form)?))
            }
            _ => Err(SHAPE.to_owned()),
        }
    }

    /// The value at a place from 0 to below 1.
    pub fn at(&self, place: f64) -> Value {
        match self {
            Axis::Values(values) => values[(place * values.len() as f64) as usize].clone(),
            Axis::Range(range) => range.within(place),
        }
    }

    /// Values that stand for all: those of a list, or the ends of a range.
    pub fn values(&self) -> &[Value] {
        match self {
            Axis::Values(values) => values,
            Axis::Range(range) => &range.ends,
        }
    }
}

const SHAPE: &str =
    "must be a list of values, or a range such as { from = \"1 us\", to = \"8 us\", steps = 4 }";

fn read(value: &Value) -> Result<Form, String> {
    value.clone().try_into().map_err(|error: toml::de::Error| {
        format!("is no range: {}", error.to_string().trim_end().replace('\n', ", "))
    })
}

fn listed(values: &[Value]) -> Result<Axis, String> {
    if values.is_empty() {
        return Err("has no values, so there would be no point; give one or more".to_owned());
    }
    if let Some(twice) = values.iter().enumerate().find(|(at, of)| values[..*at].contains(of)) {
        return Err(format!("has the value {} twice", twice.1));
    }
    Ok(Axis::Values(values.to_vec()))
}

impl Range {
    fn new(Form { from, to, scale, .. }: Form) -> Result<Range, String> {
        let number = |value: &Value| {
            let why = format!("is a range, but {value} is neither a number nor a quantity");
            Number::of(value).ok_or(why)
        };
        let (low, high) = (number(&from)?, number(&to)?);
        if !low.is_like(high) {
            return Err(format!("is a range from {from} to {to}, which cannot be compared"));
        }
        if low.as_f64() >= high.as_f64() {
            return Err(format!("is a range from {from} to {to}; the first must be lower"));
        }
        let is_logarithmic = scale == Scale::Log;
        if is_logarithmic && low.as_f64() <= 0.0 {
            return Err(format!("has a logarithmic scale, which cannot begin at {from}"));
        }
        // Decimal if one end is.
        let from_like = match (low, high) {
            (Number::Integer(whole), Number::Real(_)) => Number::Real(whole as f64),
            _ => low,
        };
        Ok(Range { from: from_like, to: high, is_logarithmic, ends: [from, to] })
    }

    /// The value at a place from 0 to 1: both ends are reached.
    fn at(&self, place: f64) -> Value {
        let (low, high) = (self.from.as_f64(), self.to.as_f64());
        self.from.nearest(match self.is_logarithmic {
            true => low * (high / low).powf(place),
            false => low + (high - low) * place,
        })
    }

    /// The value at a place from 0 to below 1: whole numbers have equal shares, the ends too.
    fn within(&self, place: f64) -> Value {
        let (Number::Integer(low), Number::Integer(high)) = (self.from, self.to) else {
            return self.at(place);
        };
        let (least, end) = (low as f64, high as f64 + 1.0);
        let found = match self.is_logarithmic {
            true => least * (end / least).powf(place),
            false => least + (end - least) * place,
        };
        Value::Integer((found.floor() as i64).clamp(low, high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Value {
        toml::from_str::<toml::Table>(&format!("axis = {text}")).unwrap()["axis"].clone()
    }

    fn grid(text: &str) -> Vec<Value> {
        Axis::of_grid(&of(text)).unwrap().values().to_vec()
    }

    /// Ranges in a grid reach both ends, in equal steps or equal ratios, with units.
    #[test]
    fn ranges_have_steps() {
        let values = |list: &str| of(list).as_array().unwrap().clone();
        assert_eq!(grid("{ from = 1, to = 9, steps = 3 }"), values("[1, 5, 9]"));
        let ratios = "{ from = 1, to = 64, steps = 4, scale = \"log\" }";
        assert_eq!(grid(ratios), values("[1, 4, 16, 64]"));
        let times = "{ from = \"1 us\", to = \"2 us\", steps = 3 }";
        assert_eq!(grid(times), values("[\"1 us\", \"1.5 us\", \"2 us\"]"));
        assert_eq!(grid("{ from = 0, to = 1.0, steps = 3 }"), values("[0.0, 0.5, 1.0]"));
        assert_eq!(grid("{ from = 1, to = 3, steps = 9 }"), values("[1, 2, 3]"));
    }

    /// A sample takes each value of a list, and each whole number of a range, equally often.
    #[test]
    fn samples_cover_an_axis() {
        let axis = |text: &str| Axis::of_sample(&of(text)).unwrap();
        for text in ["[1, 2, 3, 4]", "{ from = 1, to = 4 }"] {
            let axis = axis(text);
            let mut counts = [0; 4];
            for place in 0..1000 {
                let value = axis.at(f64::from(place) / 1000.0).as_integer().unwrap();
                counts[value as usize - 1] += 1;
            }
            assert_eq!(counts, [250; 4], "{text}");
        }
        let quantity = axis("{ from = \"1 GHz\", to = \"3 GHz\" }").at(0.5);
        assert_eq!(quantity, Value::String("2 GHz".to_owned()));
    }

    /// Wrong axes are refused with the reason.
    #[test]
    fn wrong_axes_are_refused() {
        let refused = |text: &str| Axis::of_grid(&of(text)).unwrap_err();
        assert!(refused("[]").contains("no values"));
        assert!(refused("[1, 2, 1]").contains("1 twice"));
        assert!(refused("3").contains("must be a list"));
        assert!(refused("{ from = 1, to = 2 }").contains("needs `steps`"));
        assert!(refused("{ from = 1, to = 2, steps = 1 }").contains("1 steps"));
        assert!(refused("{ from = 2, to = 1, steps = 2 }").contains("must be lower"));
        assert!(refused("{ from = \"1 us\", to = 2, steps = 2 }").contains("cannot be compared"));
        assert!(refused("{ from = \"a\", to = \"b\", steps = 2 }").contains("neither a number"));
        assert!(refused("{ from = 0, to = 2, steps = 2, scale = \"log\" }").contains("begin at 0"));
        assert!(refused("{ from = 1, to = 2, step = 2 }").contains("step"));
        assert!(Axis::of_sample(&of("{ from = 1, to = 2, steps = 2 }")).is_err());
    }
}
