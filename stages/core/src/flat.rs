//! Structs of settings that share one map with the structs that hold them as fields.
//!
//! serde's `flatten` reads a map twice, and loses the places of mistakes. Here each key is read once, by the
//! struct that declares it.

use schemars::Schema;
use serde::Serialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::marker::PhantomData;

/// A struct of settings that [`flat_settings!`](crate::flat_settings) declares.
pub trait FlatSettings: Default {
    /// The struct's name.
    const NAME: &'static str;
    /// The known keys, in the order of declaration, with those of flattened fields in their places.
    fn keys() -> &'static [&'static str];

    /// Reads the value of a key, if the key is known.
    ///
    /// # Errors
    /// A value that does not fit.
    fn accept<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error>;
}

/// Declares structs as [`settings!`](crate::settings) does. The keys of a field that is marked
/// `#[serde(flatten)]`, itself a struct of this macro, stand beside the others in one map.
#[macro_export]
macro_rules! flat_settings {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$($attr:tt)*])* $field_vis:vis $field:ident: $ty:ty $(= $default:expr)?),* $(,)?
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::schemars::JsonSchema)]
        #[schemars(default, deny_unknown_fields, transform = $crate::flat::put_defaults::<$name>)]
        $vis struct $name {
            $($(#[$($attr)*])* $field_vis $field: $ty,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $crate::default_of!($($default)?),)* }
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::flat::deserialize(deserializer)
            }
        }

        impl $crate::flat::FlatSettings for $name {
            const NAME: &'static str = stringify!($name);

            fn keys() -> &'static [&'static str] {
                static KEYS: ::std::sync::LazyLock<Vec<&str>> = ::std::sync::LazyLock::new(|| {
                    [$($crate::flat_field!(@keys $field $ty; $([$($attr)*])*)),*].concat()
                });
                &KEYS
            }

            fn accept<'de, A: ::serde::de::MapAccess<'de>>(
                &mut self,
                key: &str,
                map: &mut A,
            ) -> Result<bool, A::Error> {
                Ok($($crate::flat_field!(@accept $field self key map; $([$($attr)*])*))||*)
            }
        }
    )*};
}

/// Reads one field of [`flat_settings!`], or lists its keys.
#[doc(hidden)]
#[macro_export]
macro_rules! flat_field {
    (@keys $field:ident $ty:ty; [serde(flatten)] $($rest:tt)*) => {
        <$ty as $crate::flat::FlatSettings>::keys()
    };
    (@keys $field:ident $ty:ty; [$($other:tt)*] $($rest:tt)*) => {
        $crate::flat_field!(@keys $field $ty; $($rest)*)
    };
    (@keys $field:ident $ty:ty;) => {
        &[stringify!($field)][..]
    };
    (@accept $field:ident $this:ident $key:ident $map:ident; [serde(flatten)] $($rest:tt)*) => {
        $crate::flat::FlatSettings::accept(&mut $this.$field, $key, $map)?
    };
    (@accept $field:ident $this:ident $key:ident $map:ident; [$($other:tt)*] $($rest:tt)*) => {
        $crate::flat_field!(@accept $field $this $key $map; $($rest)*)
    };
    (@accept $field:ident $this:ident $key:ident $map:ident;) => {
        ($key == stringify!($field) && {
            $this.$field = ::serde::de::MapAccess::next_value($map)?;
            true
        })
    };
}

/// Reads a map of settings over their defaults.
///
/// # Errors
/// An unknown key, or a value that does not fit.
pub fn deserialize<'de, T: FlatSettings, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_struct(T::NAME, T::keys(), SettingsVisitor(PhantomData))
}

struct SettingsVisitor<T>(PhantomData<T>);

impl<'de, T: FlatSettings> Visitor<'de> for SettingsVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "struct {}", T::NAME)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut settings = T::default();
        while let Some(key) = map.next_key::<String>()? {
            if !settings.accept(&key, &mut map)? {
                return Err(A::Error::unknown_field(&key, T::keys()));
            }
        }
        Ok(settings)
    }
}

/// Puts the defaults of a whole map into its schema, where those of a flattened struct stand.
pub fn put_defaults<T: Serialize + Default>(schema: &mut Schema) {
    let defaults = serde_json::to_value(T::default()).unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for (name, property) in properties {
        if let (Some(property), Some(default)) = (property.get_mut("default"), defaults.get(name)) {
            *property = default.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read::{Mistake, read};
    use serde_json::json;

    flat_settings! {
        /// Shared.
        struct Shared {
            /// The seed.
            seed: u64,
            /// The weights.
            weights: Vec<f64> = vec![1.0],
        }

        /// All.
        struct All {
            /// The first.
            first: u8 = 1,
            #[serde(flatten)]
            shared: Shared = Shared { seed: 7, ..Default::default() },
            /// The last.
            #[serde(skip_serializing_if = "Option::is_none")]
            last: Option<u8>,
        }
    }

    #[test]
    fn shared_settings_stand_in_one_map() {
        let all: All = read(&json!({ "weights": [2], "first": 3 })).unwrap();
        assert_eq!(
            all,
            All {
                first: 3,
                shared: Shared {
                    seed: 7,
                    weights: vec![2.0]
                },
                last: None
            }
        );
        assert_eq!(
            serde_json::to_value(&all).unwrap(),
            json!({ "first": 3, "seed": 7, "weights": [2.0] })
        );
    }

    #[test]
    fn mistakes_keep_their_place_and_the_known_keys() {
        let mistake = |value| read::<All>(&value).map_err(|err| (err.path, err.mistake)).unwrap_err();
        let (path, _) = mistake(json!({ "weights": [1, "x"] }));
        assert_eq!(path, "weights[1]");
        let (path, unknown) = mistake(json!({ "seeds": 1 }));
        let known = &["first", "seed", "weights", "last"];
        assert_eq!(
            (path.as_str(), unknown),
            (
                "",
                Mistake::UnknownKey {
                    name: "seeds".to_owned(),
                    known
                }
            )
        );
    }

    #[test]
    fn the_schema_has_the_defaults_of_the_whole_map() {
        let schema = schemars::schema_for!(All).to_value();
        assert_eq!(schema["properties"]["seed"]["default"], 7);
        assert_eq!(schema["properties"]["seed"]["description"], "The seed.");
        assert_eq!(schema["properties"]["first"]["default"], 1);
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["description"], "All.");
    }
}
