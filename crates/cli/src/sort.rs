//! The order of `--sort-by`: numbers and quantities by size, everything else as text.
//! One rule for the whole column, so that the order is total.

use serde_json::Value;

use crate::fieldpath::{FieldPath, plain};

/// Sorts items by the value at `path` in the object that `object` gives for each.
/// Objects without the field come first.
pub fn sort_by<T>(items: &mut Vec<T>, path: &FieldPath, object: impl Fn(&T) -> &Value) {
    let texts: Vec<Option<String>> = items.iter().map(|item| path.first(object(item)).map(plain)).collect();
    let numbers: Vec<Option<f64>> = texts.iter().map(|text| text.as_deref().and_then(quantity)).collect();
    let numeric = texts.iter().zip(&numbers).all(|(text, number)| text.is_none() || number.is_some());
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|a, b| {
        if numeric {
            match (numbers[*a], numbers[*b]) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                (a, b) => a.is_some().cmp(&b.is_some()),
            }
        } else {
            texts[*a].cmp(&texts[*b])
        }
    });
    let mut slots: Vec<Option<T>> = items.drain(..).map(Some).collect();
    items.extend(order.into_iter().filter_map(|at| slots[at].take()));
}

/// The size of `10Gi`, `500m`, `3`, `1e3`; precise enough to sort by.
fn quantity(text: &str) -> Option<f64> {
    let end = text.rfind(|c: char| c.is_ascii_digit() || c == '.').map(|at| at + 1)?;
    let number: f64 = text[..end].parse().ok().filter(|number: &f64| number.is_finite())?;
    let factor = match &text[end..] {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        "Pi" => 1024f64.powi(5),
        "Ei" => 1024f64.powi(6),
        _ => return None,
    };
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sorted(values: Vec<Value>) -> Vec<Value> {
        let mut objects: Vec<Value> =
            values.into_iter().map(|v| if v.is_null() { json!({}) } else { json!({"a": v}) }).collect();
        sort_by(&mut objects, &"a".parse().unwrap(), |object| object);
        objects.into_iter().map(|object| object["a"].clone()).collect()
    }

    #[test]
    fn sizes_sort_by_size() {
        let sizes = vec![json!("10Gi"), json!("9Gi"), json!("1Ti"), json!("512Mi"), json!(5)];
        assert_eq!(sorted(sizes), [json!(5), json!("512Mi"), json!("9Gi"), json!("10Gi"), json!("1Ti")]);
        assert_eq!(sorted(vec![json!(10), json!(9), json!(-1)]), [json!(-1), json!(9), json!(10)]);
    }

    #[test]
    fn names_and_times_sort_as_text_and_missing_ones_come_first() {
        assert_eq!(
            sorted(vec![json!("b"), Value::Null, json!("a"), json!("1")]),
            [Value::Null, json!("1"), json!("a"), json!("b")]
        );
        let times = vec![json!("2026-11-15T00:00:00Z"), json!("2025-01-01T00:00:00Z")];
        assert_eq!(sorted(times), [json!("2025-01-01T00:00:00Z"), json!("2026-11-15T00:00:00Z")]);
    }

    #[test]
    fn equal_values_keep_their_order() {
        let mut items = vec![json!({"a": 1, "n": 1}), json!({"a": 0, "n": 2}), json!({"a": 1, "n": 3})];
        sort_by(&mut items, &"a".parse().unwrap(), |object| object);
        let order: Vec<i64> = items.iter().filter_map(|item| item["n"].as_i64()).collect();
        assert_eq!(order, [2, 1, 3]);
    }
}
