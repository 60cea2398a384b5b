//! Printed columns, scale and selectable fields of a custom kind.
//!
//! Owns where their paths may point. Must never evaluate a path.

use serde_json::Value;

use super::super::access;
use super::super::field::Field;
use crate::error::{FieldError, FieldReason};

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const MAX_SELECTABLE: usize = 8;

/// The field of each version; once and directly below `spec` when all versions agree, as Kubernetes reports it.
fn shared<'a>(spec: &Field<'a>, name: &str) -> Vec<Field<'a>> {
    let each: Vec<Field> = spec.at("versions").items().map(|version| version.at(name)).collect();
    match each.split_first() {
        Some((first, rest)) if rest.iter().all(|other| access::same(first.value, other.value)) => {
            vec![first.clone().known_as(format!("{}.{name}", spec.path))]
        }
        _ => each,
    }
}

pub fn check_columns(spec: &Field, errors: &mut Vec<FieldError>) {
    for columns in shared(spec, "additionalPrinterColumns") {
        columns.items().for_each(|column| check_column(&column, errors));
    }
    for fields in shared(spec, "selectableFields") {
        check_selectable(&fields, errors);
    }
}

fn check_column(column: &Field, errors: &mut Vec<FieldError>) {
    column.at("name").need(errors);
    let one_of = |allowed: &[&str]| format!("must be one of {}", allowed.join(","));
    let kind = column.at("type");
    if kind.is_empty() {
        errors.push(kind.required(&one_of(&TYPES)));
    } else if !TYPES.contains(&kind.text()) {
        errors.push(kind.invalid(one_of(&TYPES)));
    }
    let format = column.at("format");
    if !format.is_empty() && !FORMATS.contains(&format.text()) {
        errors.push(format.invalid(one_of(&FORMATS)));
    }
    let path = column.at("jsonPath").known_as(format!("{}.JSONPath", column.path));
    if path.need(errors) {
        check_path(&path, errors);
    }
}

/// Says whether the path is well-formed.
fn check_path(path: &Field, errors: &mut Vec<FieldError>) -> bool {
    let good = path.text().starts_with('.');
    if !good {
        errors.push(path.invalid("must be a simple json path starting with ."));
    }
    good
}

pub fn check_scale(spec: &Field, errors: &mut Vec<FieldError>) {
    for scale in shared(spec, "subresources").iter().map(|s| s.at("scale")).filter(Field::is_set) {
        for (name, parent) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
            let path = scale.at(name);
            if path.need(errors) && check_path(&path, errors) && !path.text().starts_with(parent) {
                let detail = format!("should be a json path under {}", parent.trim_end_matches('.'));
                errors.push(path.invalid(detail));
            }
        }
        let labels = scale.at("labelSelectorPath");
        let inside = [".spec.", ".status."].iter().any(|parent| labels.text().starts_with(parent));
        if !labels.is_empty() && check_path(&labels, errors) && !inside {
            errors.push(labels.invalid("should be a json path under either .spec or .status"));
        }
    }
}

fn check_selectable(fields: &Field, errors: &mut Vec<FieldError>) {
    let mut seen: Vec<&str> = Vec::new();
    for path in fields.items().map(|field| field.at("jsonPath")) {
        if !path.need(errors) {
            continue;
        }
        if !path.text().starts_with('.') {
            let word = path.text().split(['.', '/', '[']).next().unwrap_or_default();
            errors.push(path.invalid(format!("is an invalid path: expected [ or . but got: {word}")));
            continue;
        }
        if path.text() == ".metadata" || path.text().starts_with(".metadata.") {
            errors.push(path.invalid("must not point to fields in metadata"));
        }
        if seen.contains(&path.text()) {
            errors.push(path.duplicate());
        } else {
            seen.push(path.text());
        }
    }
    if seen.len() > MAX_SELECTABLE {
        errors.push(FieldError {
            path: fields.path.clone(),
            reason: FieldReason::TooMany,
            value: Some(Value::from(seen.len())),
            detail: format!("must have at most {MAX_SELECTABLE} items"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::CUSTOM_RESOURCE_DEFINITION as CRD;
    use super::super::tests::crd;
    use crate::builtin::testing::{refusals, with};
    use serde_json::json;

    #[test]
    fn columns_have_a_type_and_a_path() {
        let columns = json!([
            { "name": "State", "type": "string", "jsonPath": ".status.state" },
            { "type": "text", "format": "big", "jsonPath": "status" },
        ]);
        let one = with(crd(), "/spec/versions/0/additionalPrinterColumns", columns);
        let refused = [
            "additionalPrinterColumns[1].name: Required value",
            "additionalPrinterColumns[1].type: Invalid value: \"text\": must be one of \
             boolean,date,integer,number,string",
            "additionalPrinterColumns[1].format: Invalid value: \"big\": must be one of \
             byte,date,date-time,double,float,int32,int64,password",
            "additionalPrinterColumns[1].JSONPath: Invalid value: \"status\": must be a simple json path starting \
             with .",
        ];
        assert_eq!(refusals(&CRD, &one), refused.map(|text| format!("spec.{text}")));

        let mut two = one.clone();
        let mut other = crd()["spec"]["versions"][0].clone();
        other["name"] = json!("v1beta1");
        other["storage"] = json!(false);
        two["spec"]["versions"].as_array_mut().unwrap().push(other);
        assert_eq!(refusals(&CRD, &two), refused.map(|text| format!("spec.versions[0].{text}")));
    }

    #[test]
    fn scale_points_into_spec_and_status() {
        let scale = json!({ "scale": { "specReplicasPath": ".status.n", "statusReplicasPath": "" } });
        assert_eq!(
            refusals(&CRD, &with(crd(), "/spec/versions/0/subresources", scale)),
            [
                "spec.subresources.scale.specReplicasPath: Invalid value: \".status.n\": should be a json path \
                 under .spec",
                "spec.subresources.scale.statusReplicasPath: Required value",
            ]
        );
    }

    #[test]
    fn selectable_fields_are_few_and_not_in_metadata() {
        let fields =
            json!([{ "jsonPath": ".spec.a" }, { "jsonPath": ".spec.a" }, { "jsonPath": ".metadata.uid" }]);
        let path = "spec.selectableFields";
        assert_eq!(
            refusals(&CRD, &with(crd(), "/spec/versions/0/selectableFields", fields)),
            [
                format!("{path}[1].jsonPath: Duplicate value: \".spec.a\""),
                format!(
                    "{path}[2].jsonPath: Invalid value: \".metadata.uid\": must not point to fields in metadata"
                ),
            ]
        );
        let many: Vec<_> = (0..9).map(|i| json!({ "jsonPath": format!(".spec.f{i}") })).collect();
        assert_eq!(
            refusals(&CRD, &with(crd(), "/spec/versions/0/selectableFields", json!(many))),
            [format!("{path}: Too many: 9: must have at most 8 items")]
        );
    }
}
