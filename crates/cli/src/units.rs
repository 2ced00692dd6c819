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
}
