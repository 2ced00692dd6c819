//! Columns of a table of results, and the cells of a row.

use serde::Serialize;
use toml::Value;

use crate::number::{Number, unit};

/// A column of a table of results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its name; for quantities it ends in the unit.
    pub name: String,
    /// What its cells are.
    pub kind: Kind,
}

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Whole numbers.
    Integer,
    /// Decimal numbers.
    Real,
    /// Yes or no.
    Flag,
    /// Text.
    Text,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// There is no value.
    Nothing,
    /// Of a column of whole numbers.
    Integer(i64),
    /// Of a column of decimal numbers.
    Real(f64),
    /// Of a column of yes or no.
    Flag(bool),
    /// Of a column of text.
    Text(String),
}

/// How the values of a parameter become cells.
#[derive(Clone, Debug)]
pub struct Form {
    /// The column.
    pub column: Column,
    /// The size of the unit.
    size: f64,
}

impl Form {
    /// The form for a parameter that has these values: the narrowest that suits all of them.
    pub fn of<'a>(path: &str, values: impl Iterator<Item = &'a Value> + Clone) -> Form {
        let form = |name: String, kind, size| Form { column: Column { name, kind }, size };
        let are = |test: fn(&Value) -> bool| values.clone().all(test);
        if are(Value::is_bool) {
            return form(path.to_owned(), Kind::Flag, 1.0);
        }
        if are(Value::is_integer) {
            return form(path.to_owned(), Kind::Integer, 1.0);
        }
        let mut numbers = values.clone().map(Number::of);
        let first = numbers.next().flatten();
        let alike = |number: Option<Number>| {
            first.zip(number).is_some_and(|(first, number)| first.is_like(number))
        };
        if first.is_none() || !numbers.all(alike) {
            return form(path.to_owned(), Kind::Text, 1.0);
        }
        match values.clone().next().and_then(unit) {
            Some((unit, size)) => {
                form(format!("{path}_{}", unit.replace('/', "_")), Kind::Real, size)
            }
            None => form(path.to_owned(), Kind::Real, 1.0),
        }
    }

    /// A value as a cell.
    pub fn cell(&self, value: &Value) -> Cell {
        match (self.column.kind, value) {
            (Kind::Flag, Value::Boolean(yes)) => Cell::Flag(*yes),
            (Kind::Integer, Value::Integer(number)) => Cell::Integer(*number),
            (Kind::Real, value) => {
                let number = Number::of(value);
                number.map_or(Cell::Nothing, |number| Cell::Real(number.as_f64() / self.size))
            }
            (_, Value::String(text)) => Cell::Text(text.clone()),
            (_, value) => Cell::Text(value.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns are as narrow as their values allow, and quantities have the unit of the first.
    #[test]
    fn columns_suit_their_values() {
        let of = |text: &str| {
            let table: toml::Table = toml::from_str(&format!("x = {text}")).unwrap();
            let values = table["x"].as_array().unwrap().clone();
            let form = Form::of("a.b", values.iter());
            let cells = values.iter().map(|value| form.cell(value)).collect::<Vec<_>>();
            (form.column.name, form.column.kind, cells)
        };
        use Cell::{Flag, Integer, Real};
        let text = |of: &str| Cell::Text(of.to_owned());
        let name = "a.b".to_owned();
        assert_eq!(of("[true]"), (name.clone(), Kind::Flag, vec![Flag(true)]));
        assert_eq!(of("[1, 2]"), (name.clone(), Kind::Integer, vec![Integer(1), Integer(2)]));
        assert_eq!(of("[1, 2.5]"), (name.clone(), Kind::Real, vec![Real(1.0), Real(2.5)]));
        let clocks = vec![Real(0.5), Real(0.25)];
        assert_eq!(of("[\"0.5 GHz\", \"250 MHz\"]"), ("a.b_GHz".to_owned(), Kind::Real, clocks));
        assert_eq!(of("[\"2 GB/s\"]"), ("a.b_GB_s".to_owned(), Kind::Real, vec![Real(2.0)]));
        let mixed = vec![text("put"), text("1 ns")];
        assert_eq!(of("[\"put\", \"1 ns\"]"), (name.clone(), Kind::Text, mixed));
        assert_eq!(of("[{ y = 1 }]"), (name, Kind::Text, vec![text("{ y = 1 }")]));
    }
}
