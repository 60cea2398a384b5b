//! Formats of identifiers, numbers in disguise and other single words.
//!
//! Owns these checks only.

use std::sync::LazyLock;

use regex::Regex;

static HEX_COLOR: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$").expect("a constant expression"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^rgb\(\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*(?:,\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*){2}\)$").expect("a constant expression")
});
static SSN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$").expect("a constant expression"));
static QUANTITY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$")
        .expect("a constant expression")
});
static CARD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$").expect("a constant expression")
});

/// `500m`, `1.5Gi`, `1e3`.
pub fn is_quantity(text: &str) -> bool {
    QUANTITY.is_match(text)
}

pub fn is_base64(text: &str) -> bool {
    use base64::Engine as _;
    !text.is_empty() && base64::engine::general_purpose::STANDARD.decode(text).is_ok()
}

pub fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let hex: Vec<u8> = text.bytes().filter(|b| *b != b'-').collect();
    if hex.len() != 32 || !hex.iter().all(u8::is_ascii_hexdigit) || !dashes_between_groups(text) {
        return false;
    }
    match version {
        None => true,
        Some(b'3') => hex[12] == b'3',
        Some(digit) => hex[12] == digit && matches!(hex[16].to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b'),
    }
}

/// Each dash of a UUID may be left out, but none may stand anywhere else.
fn dashes_between_groups(text: &str) -> bool {
    let mut digits = 0;
    let mut dashed = false;
    for byte in text.bytes() {
        if byte == b'-' {
            if dashed || ![8, 12, 16, 20].contains(&digits) {
                return false;
            }
            dashed = true;
        } else {
            digits += 1;
            dashed = false;
        }
    }
    true
}

pub fn is_name_segment(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(plain)
        && bytes.last().copied().is_some_and(plain)
        && bytes.iter().all(|b| plain(*b) || *b == b'-')
}

pub fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    CARD.is_match(&digits) && {
        let sum: u32 = digits
            .bytes()
            .rev()
            .map(|b| u32::from(b - b'0'))
            .enumerate()
            .map(|(at, digit)| if at % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 })
            .sum();
        sum.is_multiple_of(10)
    }
}

fn isbn_digits(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b'-').collect()
}

pub fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let value = |at: usize| match digits[at] {
        b'X' if at == 9 => Some(10),
        byte => byte.is_ascii_digit().then(|| u32::from(byte - b'0')),
    };
    digits.len() == 10
        && (0..10)
            .try_fold(0, |sum, at| value(at).map(|v| sum + (at as u32 + 1) * v))
            .is_some_and(|s| s % 11 == 0)
}

pub fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    digits.len() == 13 && digits.iter().all(u8::is_ascii_digit) && {
        let sum: u32 = digits
            .iter()
            .enumerate()
            .map(|(at, byte)| u32::from(byte - b'0') * if at % 2 == 0 { 1 } else { 3 })
            .sum();
        sum.is_multiple_of(10)
    }
}

pub fn is_hex_color(text: &str) -> bool {
    HEX_COLOR.is_match(text)
}

pub fn is_rgb_color(text: &str) -> bool {
    RGB_COLOR.is_match(text)
}

pub fn is_ssn(text: &str) -> bool {
    text.len() == 11 && SSN.is_match(text)
}
