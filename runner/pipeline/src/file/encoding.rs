//! Binary encoding of values: numbers, and length-prefixed texts and lists. The reader rejects truncated and
//! malformed input.

use serde_json::{Number, Value as Json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Encodes values.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// A number as a little-endian base-128 varint.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    pub fn path(&mut self, path: &Path) {
        let bytes = path.as_os_str().as_encoded_bytes();
        self.number(bytes.len() as u64);
        self.bytes(bytes);
    }

    pub fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
        mut item: impl FnMut(&mut Self, T),
    ) {
        let items = items.into_iter();
        self.number(items.len() as u64);
        items.for_each(|value| item(self, value));
    }

    /// An optional number.
    pub fn option(&mut self, number: Option<u64>) {
        self.list(number, Self::number);
    }

    /// An optional text.
    pub fn option_text(&mut self, text: Option<&str>) {
        self.list(text, Self::text);
    }

    pub fn json(&mut self, value: &Json) {
        match value {
            Json::Null => self.0.push(0),
            Json::Bool(value) => self.0.push(1 + u8::from(*value)),
            Json::Number(value) => match (value.as_u64(), value.as_i64()) {
                (Some(value), _) => {
                    self.0.push(3);
                    self.number(value);
                }
                (None, Some(value)) => {
                    self.0.push(4);
                    self.bytes(&value.to_le_bytes());
                }
                (None, None) => {
                    self.0.push(5);
                    self.bytes(&value.as_f64().unwrap_or(f64::NAN).to_le_bytes());
                }
            },
            Json::String(text) => {
                self.0.push(6);
                self.text(text);
            }
            Json::Array(items) => {
                self.0.push(7);
                self.list(items, Self::json);
            }
            Json::Object(entries) => {
                self.0.push(8);
                self.list(entries, |out, (name, value)| {
                    out.text(name);
                    out.json(value);
                });
            }
        }
    }
}

/// Decodes the output of a [`Writer`]; `None` for malformed bytes.
pub(crate) struct Reader<'b>(&'b [u8]);

/// The maximum depth of encoded values.
const DEEPEST: usize = 128;

impl<'b> Reader<'b> {
    pub fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// True if all bytes have been read.
    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub fn index(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn slice(&mut self) -> Option<&'b [u8]> {
        let length = self.index()?;
        let (first, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(first)
    }

    pub fn text(&mut self) -> Option<String> {
        std::str::from_utf8(self.slice()?).ok().map(str::to_owned)
    }

    #[cfg(unix)]
    pub fn path(&mut self) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStrExt as _;
        Some(std::ffi::OsStr::from_bytes(self.slice()?).into())
    }

    pub fn list<T, C: FromIterator<T>>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<C> {
        let length = self.index()?;
        (0..length).map(|_| item(self)).collect()
    }

    /// A list of pairs as a map. Its few entries are inserted one by one, since `collect` would sort them in
    /// a list first.
    pub fn map<K: Ord, V>(
        &mut self,
        mut entry: impl FnMut(&mut Self) -> Option<(K, V)>,
    ) -> Option<BTreeMap<K, V>> {
        let mut map = BTreeMap::new();
        for _ in 0..self.index()? {
            let (key, value) = entry(self)?;
            map.insert(key, value);
        }
        Some(map)
    }

    /// An optional number.
    pub fn option(&mut self) -> Option<Option<u64>> {
        match self.number()? {
            0 => Some(None),
            1 => self.number().map(Some),
            _ => None,
        }
    }

    /// An optional text.
    pub fn option_text(&mut self) -> Option<Option<String>> {
        match self.number()? {
            0 => Some(None),
            1 => self.text().map(Some),
            _ => None,
        }
    }

    pub fn json(&mut self) -> Option<Json> {
        self.json_at(0)
    }

    fn json_at(&mut self, depth: usize) -> Option<Json> {
        let [kind] = self.array()?;
        Some(match kind {
            0 => Json::Null,
            1 => Json::Bool(false),
            2 => Json::Bool(true),
            3 => self.number()?.into(),
            4 => i64::from_le_bytes(self.array()?).into(),
            5 => Json::Number(Number::from_f64(f64::from_le_bytes(self.array()?))?),
            6 => Json::String(self.text()?),
            7 if depth < DEEPEST => Json::Array(self.list(|from| from.json_at(depth + 1))?),
            8 if depth < DEEPEST => {
                Json::Object(self.list(|from| Some((from.text()?, from.json_at(depth + 1)?)))?)
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<u64>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<f64>().prop_map(Json::from),
            any::<String>().prop_map(Json::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_come_back(value in json(), numbers in prop::collection::vec(any::<u64>(), 0..4),
            cut in any::<prop::sample::Index>()) {
            let mut out = Writer::default();
            out.json(&value);
            out.list(numbers.iter().copied(), Writer::number);
            let bytes = out.finish();
            let mut from = Reader::new(&bytes);
            prop_assert_eq!(from.json(), Some(value));
            prop_assert_eq!(from.list::<u64, Vec<u64>>(Reader::number), Some(numbers));
            prop_assert!(from.is_at_end());
            let mut cut = Reader::new(&bytes[..cut.index(bytes.len())]);
            let whole = cut.json().is_some() && cut.list::<u64, Vec<u64>>(Reader::number).is_some();
            prop_assert!(!whole);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Reader::new(&bytes).json();
        }
    }
}
