//! Value change dumps (IEEE 1364-2005, 18.2): waveforms for GTKWave and Surfer. Times are in
//! picoseconds.

use std::fmt::Write;

use crate::units::Time;

/// A dump under construction: first its signals, scope by scope, then their values, moment by
/// moment.
pub struct Dump {
    text: String,
    declared: usize,
    now: Option<Time>,
    /// Whether the values of the first moment are being written.
    is_first: bool,
}

/// A signal of a dump.
#[derive(Clone, Copy)]
pub struct Var(usize);

impl Dump {
    /// A dump without signals; `comment` is for human readers.
    pub fn new(comment: Option<&str>) -> Dump {
        let version = concat!("bellwire ", env!("CARGO_PKG_VERSION"));
        let mut text = format!("$version {version} $end\n$timescale 1 ps $end\n");
        if let Some(comment) = comment {
            text += &format!("$comment {comment} $end\n");
        }
        Dump { text, declared: 0, now: None, is_first: false }
    }

    /// Opens a scope inside the current one.
    pub fn open(&mut self, scope: &str) {
        self.line(format_args!("$scope module {} $end", scope.replace(' ', "_")));
    }

    /// Closes the innermost scope.
    pub fn close(&mut self) {
        self.line(format_args!("$upscope $end"));
    }

    /// A single bit.
    pub fn bit(&mut self, name: &str) -> Var {
        let var = self.next();
        self.line(format_args!("$var wire 1 {} {name} $end", code(var)));
        var
    }

    /// A number, at most `most`.
    pub fn number(&mut self, name: &str, most: u64) -> Var {
        self.vector(name, bits(most).len())
    }

    /// Digits, `width` of them.
    pub fn vector(&mut self, name: &str, width: usize) -> Var {
        let var = self.next();
        self.line(format_args!("$var wire {width} {} {name} [{}:0] $end", code(var), width - 1));
        var
    }

    /// Ends the declarations.
    pub fn begin(&mut self) {
        self.line(format_args!("$enddefinitions $end"));
    }

    /// The next values are at `time`, which is not before the last one.
    pub fn at(&mut self, time: Time) {
        if self.now == Some(time) {
            return;
        }
        if std::mem::take(&mut self.is_first) {
            self.line(format_args!("$end"));
        }
        self.line(format_args!("#{}", time.ps()));
        if self.now.is_none() {
            self.line(format_args!("$dumpvars"));
            self.is_first = true;
        }
        self.now = Some(time);
    }

    /// Changes a bit.
    pub fn set_bit(&mut self, var: Var, value: bool) {
        self.line(format_args!("{}{}", u8::from(value), code(var)));
    }

    /// Changes a number; `None` means no value.
    pub fn set_number(&mut self, var: Var, value: Option<u64>) {
        match value {
            Some(value) => self.line(format_args!("b{} {}", bits(value), code(var))),
            None => self.line(format_args!("bx {}", code(var))),
        }
    }

    /// Changes a vector to binary `digits`.
    pub fn set_vector(&mut self, var: Var, digits: &str) {
        self.line(format_args!("b{digits} {}", code(var)));
    }

    /// The text; it ends at `until`, if given.
    pub fn end(mut self, until: Option<Time>) -> String {
        if self.is_first {
            self.line(format_args!("$end"));
            self.is_first = false;
        }
        if let Some(until) = until {
            self.at(until);
            // A run without changes ends with an empty first dump.
            if self.is_first {
                self.line(format_args!("$end"));
            }
        }
        self.text
    }

    fn next(&mut self) -> Var {
        self.declared += 1;
        Var(self.declared - 1)
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing into a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// In binary, without leading zeros.
fn bits(value: u64) -> String {
    format!("{value:b}")
}

/// A short name of printable characters (18.2.1): a number in base 94.
fn code(Var(mut number): Var) -> String {
    let mut code = String::new();
    loop {
        code.push((b'!' + (number % 94) as u8) as char);
        number /= 94;
        if number == 0 {
            return code;
        }
        number -= 1;
    }
}
