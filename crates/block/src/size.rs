//! Sizes as people write and read them.

/// Bytes, with a unit of powers of 1024 (`K`, `Ki`, `KiB`, … to `P`) or of 1000 (`KB`, `MB`, …).
pub fn parse(text: &str) -> Result<u64, SizeError> {
    let refused = || SizeError(text.to_owned());
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = factor(unit.trim()).ok_or_else(refused)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().map_err(|_| refused())?;
    let bytes = whole.checked_mul(factor).ok_or_else(refused)?;
    if number.contains('.') {
        // Exact: 1.5 GiB is a number of bytes, a third of one is not.
        let scale = 10u64.checked_pow(fraction.len() as u32).ok_or_else(refused)?;
        let part: u64 = fraction.parse().map_err(|_| refused())?;
        let part = part.checked_mul(factor).filter(|part| part % scale == 0).ok_or_else(refused)? / scale;
        return bytes.checked_add(part).ok_or_else(refused);
    }
    Ok(bytes)
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no size: write bytes, or a number with a unit such as 10GiB, 10Gi, 10G (all 1024³) or 10GB (1000³)"
)]
pub struct SizeError(String);

fn factor(unit: &str) -> Option<u64> {
    let mut letters = unit.chars();
    let Some(first) = letters.next() else { return Some(1) };
    if unit.eq_ignore_ascii_case("b") {
        return Some(1);
    }
    let power = "kmgtp".find(first.to_ascii_lowercase())? as u32 + 1;
    match letters.as_str() {
        "" | "i" | "iB" => Some(1024u64.pow(power)),
        "B" => Some(1000u64.pow(power)),
        _ => None,
    }
}

/// In the largest unit that leaves at least one of it: `1.5 GiB`, `512 B`.
pub fn show(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let Some(power) = (1..=units.len()).rev().find(|power| bytes >> (10 * power) > 0) else {
        return format!("{bytes} B");
    };
    let (unit, size) = (units[power - 1], 1u64 << (10 * power));
    let tenths = (u128::from(bytes) * 10 / u128::from(size)) as u64;
    match tenths % 10 {
        0 => format!("{} {unit}", tenths / 10),
        tenth => format!("{}.{tenth} {unit}", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_way_to_write_a_size_is_understood() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("1K", 1024),
            ("1k", 1024),
            ("1Ki", 1024),
            ("1KiB", 1024),
            ("1KB", 1000),
            ("10GiB", 10 << 30),
            ("10 GiB", 10 << 30),
            ("10G", 10 << 30),
            ("10GB", 10_000_000_000),
            ("1.5Gi", 3 << 29),
            ("64T", 64 << 40),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_the_grammar() {
        for text in ["", "G", "-1", "1X", "1GiBs", "1e9", "0.1", "1.", ".5G", "0.3K", "99999999999G", "1Gib"]
        {
            let refused = parse(text).unwrap_err().to_string();
            assert!(refused.contains("10GiB"), "{text}: {refused}");
        }
    }

    #[test]
    fn sizes_are_shown_short() {
        for (bytes, shown) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (10 << 30, "10 GiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(show(bytes), shown);
        }
    }
}
