//! The `format`s of strings and numbers that Kubernetes checks; all others are ignored, as it does.
//!
//! Owns the decision whether one scalar has a format. Must never fail on any input, however strange.

mod net;
mod text;
mod time;

use super::Kind;

/// A format that is checked. The names are those of the `format` keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    BsonObjectId,
    Byte,
    Cidr,
    CreditCard,
    Date,
    DateTime,
    Duration,
    Email,
    HexColor,
    Hostname,
    Ipv4,
    Ipv6,
    Isbn,
    Isbn10,
    Isbn13,
    LongName,
    Mac,
    Password,
    /// Not a keyword: how built-in kinds write amounts, `500m` or `10Gi`.
    Quantity,
    RgbColor,
    ShortName,
    Ssn,
    Uri,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Int32,
    Int64,
    Float,
    Double,
}

const STRING_FORMATS: &[Format] = &[
    Format::BsonObjectId,
    Format::Byte,
    Format::Cidr,
    Format::CreditCard,
    Format::Date,
    Format::DateTime,
    Format::Duration,
    Format::Email,
    Format::HexColor,
    Format::Hostname,
    Format::Ipv4,
    Format::Ipv6,
    Format::Isbn,
    Format::Isbn10,
    Format::Isbn13,
    Format::LongName,
    Format::Mac,
    Format::Password,
    Format::RgbColor,
    Format::ShortName,
    Format::Ssn,
    Format::Uri,
    Format::Uuid,
    Format::Uuid3,
    Format::Uuid4,
    Format::Uuid5,
];

impl Format {
    /// The format of this name, if it is one that values of `kind` are held against. Dashes do not count.
    pub fn named(name: &str, kind: Kind) -> Option<Self> {
        match kind {
            Kind::Integer => [Self::Int32, Self::Int64].into_iter().find(|f| f.name() == name),
            Kind::Number => [Self::Float, Self::Double].into_iter().find(|f| f.name() == name),
            Kind::String | Kind::Any => {
                let plain = |text: &str| text.replace('-', "");
                STRING_FORMATS.iter().copied().find(|f| plain(f.name()) == plain(name))
            }
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::BsonObjectId => "bsonobjectid",
            Self::Byte => "byte",
            Self::Cidr => "cidr",
            Self::CreditCard => "creditcard",
            Self::Date => "date",
            Self::DateTime => "date-time",
            Self::Duration => "duration",
            Self::Email => "email",
            Self::HexColor => "hexcolor",
            Self::Hostname => "hostname",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Isbn => "isbn",
            Self::Isbn10 => "isbn10",
            Self::Isbn13 => "isbn13",
            Self::LongName => "k8s-long-name",
            Self::Mac => "mac",
            Self::Password => "password",
            Self::Quantity => "quantity",
            Self::RgbColor => "rgbcolor",
            Self::ShortName => "k8s-short-name",
            Self::Ssn => "ssn",
            Self::Uri => "uri",
            Self::Uuid => "uuid",
            Self::Uuid3 => "uuid3",
            Self::Uuid4 => "uuid4",
            Self::Uuid5 => "uuid5",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float => "float",
            Self::Double => "double",
        }
    }

    /// Whether a string has this format. Formats of numbers accept every string: its type is already wrong.
    pub fn accepts(self, value: &str) -> bool {
        match self {
            Self::BsonObjectId => value.len() == 24 && value.bytes().all(|b| b.is_ascii_hexdigit()),
            Self::Byte => text::is_base64(value),
            Self::Cidr => net::is_cidr(value),
            Self::CreditCard => text::is_credit_card(value),
            Self::Date => time::is_date(value),
            Self::DateTime => time::is_date_time(value),
            Self::Duration => time::is_duration(value),
            Self::Email => net::is_email(value),
            Self::HexColor => text::is_hex_color(value),
            Self::Hostname => net::is_hostname(value),
            Self::Ipv4 => value.contains('.') && net::is_ip(value),
            Self::Ipv6 => value.contains(':') && value.parse::<std::net::Ipv6Addr>().is_ok(),
            Self::Isbn => text::is_isbn10(value) || text::is_isbn13(value),
            Self::Isbn10 => text::is_isbn10(value),
            Self::Isbn13 => text::is_isbn13(value),
            Self::LongName => value.len() <= 253 && value.split('.').all(text::is_name_segment),
            Self::Mac => net::is_mac(value),
            Self::Quantity => text::is_quantity(value),
            Self::RgbColor => text::is_rgb_color(value),
            Self::ShortName => value.len() <= 63 && text::is_name_segment(value),
            Self::Ssn => text::is_ssn(value),
            Self::Uri => net::is_request_uri(value),
            Self::Uuid => text::is_uuid(value, None),
            Self::Uuid3 => text::is_uuid(value, Some(b'3')),
            Self::Uuid4 => text::is_uuid(value, Some(b'4')),
            Self::Uuid5 => text::is_uuid(value, Some(b'5')),
            Self::Password | Self::Int32 | Self::Int64 | Self::Float | Self::Double => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, good: &[&str], bad: &[&str]) {
        let format = Format::named(name, Kind::String).expect("a known format");
        for text in good {
            assert!(format.accepts(text), "{name} should accept {text:?}");
        }
        for text in bad {
            assert!(!format.accepts(text), "{name} should refuse {text:?}");
        }
    }

    #[test]
    fn times_and_durations() {
        check("date", &["2024-02-29"], &["2023-02-29", "24-02-29", "2024-2-9", ""]);
        check(
            "date-time",
            &["2024-02-29T23:59:59Z", "2024-02-29t01:02:03.5+01:00"],
            &["2024-02-29", "2024-02-29T24:00:00Z", "x"],
        );
        check(
            "duration",
            &["0", "1h30m", "-1.5s", "2 days", "22 ns"],
            &["", "h", "1", "five minutes", "1..5"],
        );
    }

    #[test]
    fn addresses() {
        check(
            "ipv4",
            &["10.0.0.1", "010.0.0.1", "::ffff:1.2.3.4"],
            &["10.0.0", "256.0.0.1", "::1", "1.2.3.4.5"],
        );
        check("ipv6", &["::1", "fe80::1"], &["10.0.0.1", ":::", "g::1"]);
        check(
            "cidr",
            &["10.0.0.0/8", "fd00::/64"],
            &["10.0.0.0", "10.0.0.0/33", "fd00::/129", "/8", "10.0.0.0/+8"],
        );
        check(
            "mac",
            &["00:11:22:33:44:55", "00-11-22-33-44-55", "0011.2233.4455"],
            &["00:11:22:33:44", "00:11:22:33:44:5g"],
        );
        check(
            "hostname",
            &["localhost", "a-b.example.com", "1st.example.org"],
            &["", "-a.com", "a..b", "a_b", "example.c"],
        );
        check(
            "uri",
            &["https://example.com/a?b=c", "/a/b", "urn:x"],
            &["example.com", "", "http://a b/", "http://x/%zz"],
        );
        check("email", &["a@b.example", "Ann <ann@b.example>"], &["a", "a@", "@b", "a b@c"]);
    }

    #[test]
    fn identifiers() {
        check(
            "uuid",
            &["6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "6ba7b8109dad11d180b400c04fd430c8"],
            &[
                "6ba7b810-9dad-11d1-80b4-00c04fd430c",
                "6ba7b8-109dad11d180b400c04fd430c8",
                "zba7b810-9dad-11d1-80b4-00c04fd430c8",
            ],
        );
        check("uuid4", &["6ba7b810-9dad-41d1-80b4-00c04fd430c8"], &["6ba7b810-9dad-11d1-80b4-00c04fd430c8"]);
        check("byte", &["aGk=", "aGVsbG8h"], &["", "a", "a*==", "aGk"]);
        check("isbn", &["0321751043", "978-0321751041"], &["0321751044", "97803217510412"]);
        check("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112"]);
        check("k8s-short-name", &["a-1"], &["A", "-a", "a.b"]);
        check("k8s-long-name", &["a-1.b"], &["a..b", ""]);
        check("rgbcolor", &["rgb(1, 2,255)"], &["rgb(1,2)", "rgb(1,2,256)"]);
        check("hexcolor", &["#fff", "a0b1c2"], &["#ffff"]);
        check("ssn", &["111-22-3333"], &["111223333"]);
    }

    #[test]
    fn quantities_of_built_in_kinds() {
        for good in ["1", "500m", "1.5Gi", ".5", "1e3", "-2E-1", "1E"] {
            assert!(Format::Quantity.accepts(good), "{good}");
        }
        for bad in ["", "m", "1KiB", "1 Gi", "1e", "0x1"] {
            assert!(!Format::Quantity.accepts(bad), "{bad}");
        }
    }

    #[test]
    fn a_format_counts_only_for_its_own_type() {
        assert_eq!(Format::named("int32", Kind::Integer), Some(Format::Int32));
        assert_eq!(Format::named("int32", Kind::String), None);
        assert_eq!(Format::named("datetime", Kind::String), Some(Format::DateTime));
        assert_eq!(Format::named("x-anything", Kind::String), None);
    }
}
