//! Enums and values that are written as one word or text.

/// An enum whose variants have one name each: in YAML, in JSON and in messages.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name, as files and messages have it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;
            /// A name in any case, or a beginning that it shares with no other.
            fn from_str(text: &str) -> Result<Self, String> {
                let wanted = text.trim().to_ascii_lowercase();
                let mut found = Self::ALL.iter().filter(|value| value.name().starts_with(&wanted));
                match (found.next(), found.next()) {
                    (Some(value), None) if !wanted.is_empty() => Ok(*value),
                    _ => {
                        let known: Vec<_> = Self::ALL.iter().map(|value| value.name()).collect();
                        Err(format!("`{text}` is none of {}", known.join(", ")))
                    }
                }
            }
        }
    };
}

/// Reads and writes a type as its text, by its `Display` and `FromStr`: the name, the pattern and the
/// description of its schema.
#[macro_export]
macro_rules! as_text {
    ($type:ty, $name:literal, $pattern:literal, $about:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern, "description": $about })
            }
        }
    };
}

/// Reads a type that is written in several forms: their names for messages, what each becomes, and the
/// description and the forms of its schema.
#[macro_export]
macro_rules! as_forms {
    ($type:ident, $expected:literal; schema($generator:ident) $about:literal: $any_of:tt;
     $($form:ident $(as $of:ty)? => $make:expr;)*) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expected)
                    }
                    $($crate::as_forms!(@$form 'de, $type, ($($of)?), $make);)*
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema($generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "description": $about, "anyOf": $any_of })
            }
        }
    };
    (@flag $de:lifetime, $type:ty, (), $make:expr) => {
        fn visit_bool<E>(self, flag: bool) -> Result<$type, E> {
            Ok(($make)(flag))
        }
    };
    (@text $de:lifetime, $type:ty, (), $make:expr) => {
        fn visit_str<E>(self, text: &str) -> Result<$type, E> {
            Ok(($make)(text))
        }
    };
    (@number $de:lifetime, $type:ty, (), $make:expr) => {
        fn visit_f64<E>(self, number: f64) -> Result<$type, E> {
            Ok(($make)(number))
        }
        $crate::as_forms!(@whole $de, $type, (), |number: i128| ($make)(number as f64));
    };
    (@whole $de:lifetime, $type:ty, (), $make:expr) => {
        fn visit_i64<E>(self, number: i64) -> Result<$type, E> {
            Ok(($make)(number.into()))
        }
        fn visit_u64<E>(self, number: u64) -> Result<$type, E> {
            Ok(($make)(number.into()))
        }
    };
    (@map $de:lifetime, $type:ty, ($of:ty), $make:expr) => {
        fn visit_map<A: serde::de::MapAccess<$de>>(self, map: A) -> Result<$type, A::Error> {
            let map = serde::de::value::MapAccessDeserializer::new(map);
            <$of as serde::Deserialize>::deserialize(map).map($make)
        }
    };
    (@list $de:lifetime, $type:ty, ($of:ty), $make:expr) => {
        fn visit_seq<A: serde::de::SeqAccess<$de>>(self, list: A) -> Result<$type, A::Error> {
            let list = serde::de::value::SeqAccessDeserializer::new(list);
            <$of as serde::Deserialize>::deserialize(list).map($make)
        }
    };
}
