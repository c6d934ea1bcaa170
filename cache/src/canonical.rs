//! Canonical JSON: the unique form of a value that is hashed.

use serde_json::Value;
use std::fmt::Write as _;

/// Serialises `value` to JSON with sorted keys, no white space, and numbers in the shortest form that parses
/// to the same value.
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

/// Sorts the keys of all maps: their order depends on a feature of serde_json that any dependency may enable.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            let mut before = '{';
            for (key, value) in entries {
                text.push(before);
                scalar(&Value::from(key.as_str()), text);
                text.push(':');
                write(value, text);
                before = ',';
            }
            text.push_str(if before == '{' { "{}" } else { "}" });
        }
        Value::Array(items) => {
            let mut before = '[';
            for item in items {
                text.push(before);
                write(item, text);
                before = ',';
            }
            text.push_str(if before == '[' { "[]" } else { "]" });
        }
        other => scalar(other, text),
    }
}

fn scalar(value: &Value, text: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{value}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn keys_are_sorted_at_every_level() {
        let value = json!({"b": [1, {"z": null, "a": 0.1}], "a": "x\n"});
        assert_eq!(canonical_json(&value), r#"{"a":"x\n","b":[1,{"a":0.1,"z":null}]}"#);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        scalar.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value in any_value()) {
            let text = canonical_json(&value);
            let back: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&value, &back, "{}", text);
        }

        #[test]
        fn numbers_are_spelt_exactly(
            number in any::<f64>().prop_filter("JSON has no NaN", |x| x.is_finite()),
        ) {
            let text = canonical_json(&Value::from(number));
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), number.to_bits());
        }

        #[test]
        fn the_order_of_insertion_does_not_matter(
            fields in prop::collection::btree_map(any::<String>(), any::<i64>(), 0..8),
        ) {
            let pair = |(k, v): (&String, &i64)| (k.clone(), Value::from(*v));
            let forth: Value = Value::Object(fields.iter().map(pair).collect());
            let back: Value = Value::Object(fields.iter().rev().map(pair).collect());
            prop_assert_eq!(canonical_json(&forth), canonical_json(&back));
        }
    }
}
