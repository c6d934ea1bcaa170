//! The names of objects in a remote.

use cache::BlobRef;

/// The folder of the named documents.
pub(crate) const DOCUMENTS: &str = "policies";

/// The digest that represents a document's name, in hex.
pub(crate) fn document_hex(name: &str) -> String {
    BlobRef::of(name.as_bytes()).blob.to_hex()
}

/// The object name of a digest or key.
pub(crate) fn object_name(folder: &str, hex: &str) -> String {
    format!("{folder}/{}/{}", &hex[..2], &hex[2..])
}

/// The digest or key in an object's name, in hex; `None` for any other name.
pub(crate) fn parse_object_name(folder: &str, name: &str) -> Option<String> {
    let (shard, rest) = name.strip_prefix(folder)?.strip_prefix('/')?.split_once('/')?;
    let hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (shard.len() == 2 && rest.len() == 62 && hex(shard) && hex(rest)).then(|| format!("{shard}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache::BlobDigest;
    use proptest::prelude::*;

    #[test]
    fn names_of_records() {
        let hex = "ab".repeat(32);
        assert_eq!(
            parse_object_name("actions", &object_name("actions", &hex)),
            Some(hex.clone())
        );
        for wrong in [
            format!("actions/ab/{}", "AB".repeat(31)),
            format!("actions/../{}", "ab".repeat(31)),
            format!("memos/ab/{}", "ab".repeat(31)),
            format!("actions/ab/{}/x", "ab".repeat(31)),
            format!("actions/{hex}"),
            "actions/".to_owned(),
        ] {
            assert_eq!(parse_object_name("actions", &wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_listed_name_is_of_the_layout_or_ignored(name in ".{0,80}", tail in "[0-9a-f/.]{0,70}") {
            for name in [name, format!("actions/{tail}")] {
                if let Some(id) = parse_object_name("actions", &name) {
                    prop_assert_eq!(object_name("actions", &id), name);
                    prop_assert!(id.parse::<BlobDigest>().is_ok());
                }
            }
        }
    }
}
