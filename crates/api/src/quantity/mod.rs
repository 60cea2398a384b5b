//! Kubernetes quantities (`10Gi`, `500m`, `1e3`) as exact integers of a billionth, with the canonical text
//! that Kubernetes prints. Never goes through floating point, and never rounds down: a request that is
//! not a whole number of bytes becomes the next larger one.

mod parse;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Wire;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use parse::{BINARY_SUFFIXES, DECIMAL_SUFFIXES, Parts, Suffix};

const NANOS: i128 = 1_000_000_000;

/// Which family of suffixes a quantity was written in; the canonical text keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySi,
    /// `12M`
    DecimalSi,
}

/// The refusals of the parser, in the words of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QuantityError {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// Also given for decimal values beyond about 10^29, which Kubernetes would still carry.
    #[error("unable to parse numeric part of quantity")]
    Number,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// A number with the suffix family it was written in. Equality and order look at the number alone.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    pub const ZERO: Quantity = Quantity { nanos: 0, format: Format::DecimalSi };

    /// Reads what Kubernetes accepts; precision beyond a billionth is rounded away from zero, and binary
    /// values beyond 2^63-1 are capped there, as Kubernetes does.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let parts = Parts::split(text)?;
        let suffix = Suffix::interpret(parts.suffix)?;
        let (magnitude, format) = match suffix {
            Suffix::Decimal { exponent, format } => (parts.decimal(exponent)?, format),
            Suffix::Binary { exponent } => {
                let nanos = parts.binary(exponent)?.min(i128::from(i64::MAX) * NANOS);
                let tiny = nanos > 0 && nanos < NANOS;
                (nanos, if tiny { Format::DecimalSi } else { Format::BinarySi })
            }
        };
        Ok(Quantity { nanos: if parts.negative { -magnitude } else { magnitude }, format })
    }

    /// The text Kubernetes stores for `text` in a list of resources (requests, limits, capacity): the canonical
    /// one, rounded up to thousandths, except for texts that it takes for canonical and leaves alone.
    pub fn stored_text(text: &str) -> Result<String, QuantityError> {
        let quantity = Self::parse(text)?;
        let rounded = quantity.rounded_up_to_millis();
        let parts = Parts::split(text)?;
        let keep = rounded == quantity && parts.kept_as_written(&Suffix::interpret(parts.suffix)?);
        Ok(if keep { text.to_owned() } else { rounded.to_string() })
    }

    /// The next whole thousandth away from zero: Kubernetes keeps no finer resources.
    #[must_use]
    pub fn rounded_up_to_millis(self) -> Self {
        Quantity { nanos: self.millis().saturating_mul(NANOS / 1000), format: self.format }
    }

    /// A size in bytes, printed with binary suffixes.
    pub fn from_bytes(bytes: u64) -> Self {
        Quantity { nanos: i128::from(bytes) * NANOS, format: Format::BinarySi }
    }

    /// Whole bytes, rounded up; `None` when negative or beyond `u64`.
    pub fn to_bytes(self) -> Option<u64> {
        u64::try_from(self.value()).ok().filter(|_| self.nanos >= 0)
    }

    /// Whole units, rounded away from zero.
    pub fn value(self) -> i128 {
        divide_away_from_zero(self.nanos, NANOS)
    }

    /// Thousandths, rounded away from zero: what CPU requests are counted in.
    pub fn millis(self) -> i128 {
        divide_away_from_zero(self.nanos, NANOS / 1000)
    }

    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    pub fn format(self) -> Format {
        self.format
    }

    /// The sum in the format of `self`, or of `other` when `self` is zero; `None` on overflow.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let format = if self.is_zero() { other.format } else { self.format };
        Some(Quantity { nanos: self.nanos.checked_add(other.nanos)?, format })
    }

    /// The difference in the format of `self`, or of `other` when `self` is zero; `None` on overflow.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        let format = if self.is_zero() { other.format } else { self.format };
        Some(Quantity { nanos: self.nanos.checked_sub(other.nanos)?, format })
    }
}

/// The canonical text: no fraction digits, no precision lost, the largest suffix that allows both.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let whole = self.nanos % NANOS == 0;
        let small = self.nanos.abs() < 1024 * NANOS;
        match self.format {
            Format::BinarySi if whole && !small => {
                let (mantissa, steps) = strip_factors(self.nanos / NANOS, 1024, BINARY_SUFFIXES.len());
                write!(f, "{mantissa}{}", if steps == 0 { "" } else { BINARY_SUFFIXES[steps - 1].0 })
            }
            Format::BinarySi | Format::DecimalSi => {
                let (mantissa, steps) = strip_factors(self.nanos, 1000, DECIMAL_SUFFIXES.len() - 1);
                write!(f, "{mantissa}{}", DECIMAL_SUFFIXES[steps].0)
            }
            Format::DecimalExponent => {
                let (mantissa, steps) = strip_factors(self.nanos, 1000, usize::MAX);
                match steps as i32 * 3 - 9 {
                    0 => write!(f, "{mantissa}"),
                    exponent => write!(f, "{mantissa}e{exponent}"),
                }
            }
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl TryFrom<&Wire> for Quantity {
    type Error = QuantityError;

    fn try_from(wire: &Wire) -> Result<Self, Self::Error> {
        Self::parse(wire.0.trim())
    }
}

impl From<Quantity> for Wire {
    fn from(quantity: Quantity) -> Self {
        Wire(quantity.to_string())
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The wire type already takes both forms JSON clients send: strings and bare numbers.
        Quantity::try_from(&Wire::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

fn divide_away_from_zero(number: i128, divisor: i128) -> i128 {
    number / divisor + (number % divisor).signum()
}

/// Divides by `factor` as often as it goes without remainder, at most `limit` times.
fn strip_factors(mut number: i128, factor: i128, limit: usize) -> (i128, usize) {
    let mut steps = 0;
    while steps < limit && number % factor == 0 {
        number /= factor;
        steps += 1;
    }
    (number, steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> String {
        Quantity::parse(text).map_or_else(|error| error.to_string(), |q| q.to_string())
    }

    #[test]
    fn sizes_print_as_kubernetes_prints_them() {
        for (written, printed) in [
            ("0", "0"),
            ("0Mi", "0"),
            ("-0", "0"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1Ki", "1Ki"),
            ("1025Ki", "1025Ki"),
            ("1.1Ki", "1126400m"),
            ("0.0001Ki", "102400u"),
            ("10737418240", "10737418240"),
            ("1000", "1k"),
            ("1500M", "1500M"),
            ("1000000k", "1G"),
            ("0.5", "500m"),
            ("1.0", "1"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("1e3", "1e3"),
            ("10e3", "10e3"),
            ("1000e3", "1e6"),
            ("1E3", "1e3"),
            ("1500e-3", "1500e-3"),
            ("12E", "12E"),
            ("1000E", "1000E"),
            ("+5", "5"),
            (".5", "500m"),
            ("1.", "1"),
            ("-2.5Gi", "-2560Mi"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("-0.1n", "-1n"),
            ("1.0000000001", "1000000001n"),
            ("16Ei", "9223372036854775807"),
            ("7Ei", "7Ei"),
        ] {
            assert_eq!(canonical(written), printed, "{written}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_reason() {
        for text in ["", "-", ".", "aoeu", "1.1.M", "1+1.0M", "1 ", " 1", "1G1b", "0x10", "1e3.5", "١"] {
            assert_eq!(Quantity::parse(text), Err(QuantityError::Format), "{text:?}");
        }
        for text in ["1i", "0.1mi", "3.01e-", "1Gn", "1e", "1kk", "1Ee3", "1e99999999999"] {
            assert_eq!(Quantity::parse(text), Err(QuantityError::Suffix), "{text:?}");
        }
        for text in ["1e40", "1e2000000000", &"9".repeat(60)] {
            assert_eq!(Quantity::parse(text), Err(QuantityError::Number), "{text:?}");
        }
    }

    #[test]
    fn extreme_exponents_of_nothing_are_nothing_and_of_little_are_the_least() {
        assert_eq!(canonical("0e2147483647"), "0");
        assert_eq!(canonical("0e-2147483648"), "0");
        assert_eq!(canonical("1e-2147483648"), "1e-9");
    }

    #[test]
    fn bytes_round_up() {
        let bytes = |text: &str| Quantity::parse(text).unwrap().to_bytes();
        assert_eq!(bytes("1.1"), Some(2));
        assert_eq!(bytes("1n"), Some(1));
        assert_eq!(bytes("10Gi"), Some(10 << 30));
        assert_eq!(bytes("-1"), None);
        assert_eq!(bytes("18446744073709551615"), Some(u64::MAX));
        assert_eq!(bytes("18446744073709551616"), None);
        assert_eq!(Quantity::parse("1.0001").unwrap().millis(), 1001);
        assert_eq!(Quantity::parse("-1.5").unwrap().value(), -2);
    }

    #[test]
    fn comparison_ignores_how_a_number_was_written() {
        let q = |text: &str| Quantity::parse(text).unwrap();
        assert_eq!(q("1Gi"), q("1073741824"));
        assert_eq!(q("1"), q("1000m"));
        assert!(q("1G") < q("1Gi"));
        assert!(q("-1") < q("0"));
        assert_eq!(q("1Gi").checked_add(q("512Mi")).unwrap().to_string(), "1536Mi");
        assert_eq!(q("0").checked_add(q("1Ki")).unwrap().to_string(), "1Ki");
        assert_eq!(q("1Gi").checked_sub(q("1Gi")).unwrap().to_string(), "0");
    }

    #[test]
    fn json_takes_strings_and_numbers_and_gives_canonical_strings() {
        let from_json = |text: &str| serde_json::from_str::<Quantity>(text).map(|q| q.to_string());
        assert_eq!(from_json("\"1024Mi\"").unwrap(), "1Gi");
        assert_eq!(from_json("5368709120").unwrap(), "5368709120");
        assert_eq!(from_json("0.5").unwrap(), "500m");
        assert!(from_json("\"five\"").is_err());
        assert_eq!(serde_json::to_string(&Quantity::from_bytes(3 << 20)).unwrap(), "\"3Mi\"");
    }

    #[test]
    fn what_is_stored_is_what_a_server_stores() {
        for (written, stored) in [
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1000k", "1M"),
            ("0.5", "500m"),
            ("1.500", "1.500"),
            ("12.345k", "12.345k"),
            ("007", "007"),
            ("+5", "+5"),
            ("0.001", "1m"),
            ("1u", "1m"),
            ("4.48503", "4486m"),
            ("453e-7", "1e-3"),
            ("1.1Ki", "1126400m"),
            ("0", "0"),
        ] {
            assert_eq!(Quantity::stored_text(written).as_deref(), Ok(stored), "{written}");
        }
        assert_eq!(Quantity::stored_text("five"), Err(QuantityError::Format));
        let largest = format!("{}n", i128::MAX);
        assert!(Quantity::stored_text(&largest).is_ok(), "rounding up at the end of the range");
    }

    /// Any text the grammar allows, with digits and exponents in the range that stays exact.
    fn written() -> impl Strategy<Value = String> {
        let suffix = prop_oneof![
            prop::sample::select(vec![
                "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"
            ])
            .prop_map(str::to_owned),
            (-12..13i32).prop_map(|exponent| format!("e{exponent}")),
        ];
        ("[+-]?", 0..1_000_000u64, "(\\.[0-9]{0,12})?", suffix)
            .prop_map(|(sign, whole, fraction, suffix)| format!("{sign}{whole}{fraction}{suffix}"))
    }

    proptest! {
        #[test]
        fn the_canonical_text_means_the_same_and_is_a_fixed_point(text in written()) {
            let quantity = Quantity::parse(&text).unwrap();
            let printed = quantity.to_string();
            let again = Quantity::parse(&printed).unwrap();
            prop_assert_eq!(again, quantity);
            prop_assert_eq!(again.to_string(), printed.clone());
            prop_assert!(!printed.contains('.'));
        }

        #[test]
        fn the_stored_text_means_the_same_to_the_thousandth(text in written()) {
            let stored = Quantity::parse(&Quantity::stored_text(&text).unwrap()).unwrap();
            prop_assert_eq!(stored, Quantity::parse(&text).unwrap().rounded_up_to_millis());
        }

        #[test]
        fn bytes_survive_the_trip_through_text(bytes in 0..=i64::MAX as u64) {
            let printed = Quantity::from_bytes(bytes).to_string();
            prop_assert_eq!(Quantity::parse(&printed).unwrap().to_bytes(), Some(bytes));
        }

        #[test]
        fn fractions_agree_with_exact_division(numerator in 0..1_000_000i128, digits in 0..9usize, step in 0..6usize) {
            let (suffix, exponent) = BINARY_SUFFIXES[step];
            let scale = 10i128.pow(digits as u32);
            let text = format!("{}.{:0width$}{suffix}", numerator / scale, numerator % scale, width = digits.max(1));
            let text = if digits == 0 { format!("{numerator}{suffix}") } else { text };
            let exact = (numerator << exponent) * NANOS;
            let cap = i128::from(i64::MAX) * NANOS;
            let expected = divide_away_from_zero(exact, scale).min(cap);
            prop_assert_eq!(Quantity::parse(&text).unwrap().nanos, expected, "{}", text);
        }

        #[test]
        fn order_is_the_order_of_the_numbers(a in -1_000_000..1_000_000i64, b in -1_000_000..1_000_000i64) {
            let (left, right) = (format!("{a}m"), format!("{b}m"));
            let (left, right) = (Quantity::parse(&left).unwrap(), Quantity::parse(&right).unwrap());
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            prop_assert_eq!(left.checked_add(right).unwrap().millis(), i128::from(a + b));
            prop_assert_eq!(left.checked_sub(right).unwrap().millis(), i128::from(a - b));
        }

        #[test]
        fn no_input_makes_the_parser_panic(text in "\\PC{0,40}", close in "[+-]?[0-9.]{0,60}[eEinumkKMGTP]{0,3}[+-]?[0-9]{0,12}") {
            for text in [text, close] {
                if let Ok(quantity) = Quantity::parse(&text) {
                    let _printed = quantity.to_string();
                    let _bytes = quantity.to_bytes();
                    prop_assert!(Quantity::stored_text(&text).is_ok());
                }
            }
        }
    }
}
