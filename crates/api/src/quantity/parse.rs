//! From the text of a quantity to a number of billionths, by integer arithmetic on its digits.
//! Also knows which texts Kubernetes leaves as they are. Gives numbers and texts, never a `Quantity`.

use super::{Format, NANOS, QuantityError};

/// Fractions are scaled digit by digit in `u128`; more digits than these could overflow.
const MAX_BINARY_FRACTION_DIGITS: usize = 37;

pub(super) const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
pub(super) const BINARY_SUFFIXES: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

pub(super) enum Suffix {
    Decimal { exponent: i32, format: Format },
    Binary { exponent: u32 },
}

impl Suffix {
    pub(super) fn interpret(text: &str) -> Result<Self, QuantityError> {
        if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == text) {
            return Ok(Suffix::Decimal { exponent: *exponent, format: Format::DecimalSi });
        }
        if let Some((_, exponent)) = BINARY_SUFFIXES.iter().find(|(name, _)| *name == text) {
            return Ok(Suffix::Binary { exponent: *exponent });
        }
        let digits = text.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
        let exponent = digits.parse().map_err(|_| QuantityError::Suffix)?;
        Ok(Suffix::Decimal { exponent, format: Format::DecimalExponent })
    }
}

/// The text of a quantity taken apart: digits before and after the point, and what follows them.
pub(super) struct Parts<'a> {
    pub(super) negative: bool,
    whole: &'a str,
    fraction: &'a str,
    pub(super) suffix: &'a str,
}

impl<'a> Parts<'a> {
    pub(super) fn split(text: &'a str) -> Result<Self, QuantityError> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = take_digits(unsigned);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(after) => take_digits(after),
            None => ("", rest),
        };
        let letters_end = suffix.find(|c| !"eEinumkKMGTP".contains(c)).unwrap_or(suffix.len());
        let exponent = &suffix[letters_end..];
        let (_, leftover) = take_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
        if !leftover.is_empty() || (whole.is_empty() && fraction.is_empty()) {
            return Err(QuantityError::Format);
        }
        Ok(Parts { negative: text.starts_with('-'), whole, fraction, suffix })
    }

    /// Billionths of `whole.fraction × 10^exponent`.
    pub(super) fn decimal(&self, exponent: i32) -> Result<i128, QuantityError> {
        let digits = format!("{}{}", self.whole, self.fraction);
        let shift = i64::from(exponent) - self.fraction.len() as i64 + 9;
        let digits = digits.trim_start_matches('0');
        if shift >= 0 {
            return match (whole_number(digits)?, u32::try_from(shift)) {
                (0, _) => Ok(0),
                (number, Ok(shift)) => {
                    10i128.checked_pow(shift).and_then(|s| number.checked_mul(s)).ok_or(QuantityError::Number)
                }
                (_, Err(_)) => Err(QuantityError::Number),
            };
        }
        let dropped = usize::try_from(-shift).unwrap_or(usize::MAX);
        let (kept, lost) = digits.split_at(digits.len().saturating_sub(dropped));
        let rounding = i128::from(lost.bytes().any(|digit| digit != b'0'));
        whole_number(kept)?.checked_add(rounding).ok_or(QuantityError::Number)
    }

    /// Billionths of `whole.fraction × 2^exponent`; overflow saturates because the caller caps anyway.
    pub(super) fn binary(&self, exponent: u32) -> Result<i128, QuantityError> {
        let fraction = self.fraction.trim_end_matches('0');
        if fraction.len() > MAX_BINARY_FRACTION_DIGITS {
            return Err(QuantityError::Number);
        }
        let denominator = 10u128.pow(fraction.len() as u32);
        let mut remainder = whole_number(fraction)?.unsigned_abs();
        let mut carried: i128 = 0;
        let doublings = std::iter::repeat_n(2, exponent as usize);
        for factor in doublings.chain(std::iter::repeat_n(10, 9)) {
            remainder *= factor;
            carried = carried * factor as i128 + (remainder / denominator) as i128;
            remainder %= denominator;
        }
        let rounding = i128::from(remainder > 0);
        let whole = whole_number(self.whole.trim_start_matches('0')).unwrap_or(i128::MAX);
        Ok(whole.saturating_mul(NANOS << exponent).saturating_add(carried + rounding))
    }

    /// Whether Kubernetes keeps the text as it is. Its test is a quick one: it also passes some texts that
    /// are not canonical, such as `1.500` or `007`, and those come back as they were written.
    pub(super) fn kept_as_written(&self, suffix: &Suffix) -> bool {
        let whole = match self.whole.trim_start_matches('0') {
            "" => "0",
            digits => digits,
        };
        match suffix {
            Suffix::Decimal { exponent, .. } => {
                let digits = format!("{whole}{}", self.fraction);
                let scale = i64::from(*exponent) - self.fraction.len() as i64;
                digits.len() <= 18
                    && scale >= -9
                    && scale % 3 == 0
                    && !digits.ends_with("000")
                    && !digits.starts_with('0')
            }
            Suffix::Binary { exponent } => {
                let exact = whole.len() + (*exponent as usize * 3 / 10) <= 14;
                exact && self.fraction.is_empty() && whole.parse::<u64>().is_ok_and(|number| number % 8 != 0)
            }
        }
    }
}

fn take_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn whole_number(digits: &str) -> Result<i128, QuantityError> {
    if digits.is_empty() { Ok(0) } else { digits.parse().map_err(|_| QuantityError::Number) }
}
