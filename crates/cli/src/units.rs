//! Quantities as people write and read them.

/// Bytes with a binary unit: `8 B`, `4 KiB`, `1.5 GiB`.
pub fn bytes(count: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| count >> shift > 0) {
        None => format!("{count} B"),
        Some((unit, shift)) => {
            let whole = count as f64 / (1_u64 << shift) as f64;
            if whole.fract() == 0.0 || whole >= 100.0 {
                format!("{whole:.0} {unit}")
            } else {
                format!("{whole:.1} {unit}")
            }
        }
    }
}

/// The reverse of [`bytes`]: `8`, `8B`, `4KiB`, `4K`, `1MiB`, `1M`; units are binary whatever their
/// spelling.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].trim() {
        "" | "B" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        unit => return Err(format!("\"{unit}\" is no unit of bytes; use B, KiB, MiB or GiB")),
    };
    let number: usize =
        digits.parse().map_err(|_| format!("\"{text}\" is no size; write 8, 4KiB or 1MiB"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("\"{text}\" is too large"))
}

/// A time with three digits: `43 ns`, `1.25 us`, `310 ms`.
pub fn time(time_ns: f64) -> String {
    scaled(time_ns, &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)])
}

/// Events per second with three digits: `31.0 M/s`.
pub fn rate(per_s: f64) -> String {
    scaled(per_s, &[("/s", 1.0), ("k/s", 1e3), ("M/s", 1e6), ("G/s", 1e9)])
}

/// Bytes per second with three digits and decimal units, as networks count: `12.5 GB/s`.
pub fn bandwidth(bytes_per_s: f64) -> String {
    scaled(bytes_per_s, &[("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9)])
}

/// A ratio: `8.1 x`, `120 x`, `0.93 x`.
pub fn ratio(value: f64) -> String {
    format!("{} x", three_digits(value))
}

fn scaled(value: f64, units: &[(&str, f64)]) -> String {
    let fitting = units.iter().rev().find(|(_, size)| value >= *size).unwrap_or(&units[0]);
    format!("{} {}", three_digits(value / fitting.1), fitting.0)
}

fn three_digits(value: f64) -> String {
    match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round sizes are printed without a fraction, others with one digit.
    #[test]
    fn sizes_are_printed_with_a_fitting_unit() {
        let pairs = [
            (0, "0 B"),
            (1023, "1023 B"),
            (4096, "4 KiB"),
            (3 << 19, "1.5 MiB"),
            (u64::MAX, "17179869184 GiB"),
        ];
        for (count, text) in pairs {
            assert_eq!(bytes(count), text);
        }
    }

    /// Printed sizes parse again, and invalid ones are refused.
    #[test]
    fn sizes_are_understood() {
        for count in [8, 4096, 1 << 20, 3 << 30] {
            assert_eq!(parse_bytes(&bytes(count)), Ok(count as usize));
        }
        assert_eq!(parse_bytes("4K"), Ok(4096));
        for bad in ["", "x", "8 X", "4kb", "-1", "99999999999G", "KiB", "8é"] {
            assert!(parse_bytes(bad).is_err(), "{bad:?} was taken");
        }
    }

    /// Three digits whatever the magnitude.
    #[test]
    fn quantities_have_three_digits() {
        assert_eq!(time(43.2), "43.2 ns");
        assert_eq!(time(230.4), "230 ns");
        assert_eq!(time(999.99), "1000 ns");
        assert_eq!(time(1_250.0), "1.25 us");
        assert_eq!(rate(31e6), "31.0 M/s");
        assert_eq!(bandwidth(12.5e9), "12.5 GB/s");
        assert_eq!(ratio(0.934), "0.93 x");
    }
}
