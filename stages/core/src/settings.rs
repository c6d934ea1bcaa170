//! The configuration of one stage, read once.

use crate::error::ConfigProblem;
use crate::read::read;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

/// Declares structs of settings, each field with its default beside it: `pub period: usize = 20,`. A field
/// without one has the default of its type. Unknown keys are refused. Line breaks are kept as they are
/// written.
#[macro_export]
macro_rules! settings {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $ty:ty $(= $default:expr)?),* $(,)?
    })*) => {$(
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        $(#[$meta])*
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $ty,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $crate::default_of!($($default)?),)* }
            }
        }
    )*};
}

/// The default of a field of [`settings!`].
#[doc(hidden)]
#[macro_export]
macro_rules! default_of {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $default
    };
}

/// Returns whether a setting has the default of its type, for `skip_serializing_if`.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The resolved configuration of a stage, defaults filled in: the typed value that its kind checks and runs,
/// and its JSON form, which keys, records and people see.
///
/// A file's configuration is deserialised once and the typed value carried along. One that arrives as JSON,
/// from a job or a record, or whose JSON is changed, is deserialised at its first use.
#[derive(Clone)]
pub struct Settings {
    json: Value,
    typed: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Settings {
    /// Deserialises what is below `with:`, and fills in the defaults. `Null` stands for an absent `with:`.
    pub fn read<C>(with: Value) -> Result<Self, ConfigProblem>
    where
        C: Serialize + DeserializeOwned + Any + Send + Sync,
    {
        let with = Self::from(with);
        let config = with.typed::<C>()?;
        let json = serde_json::to_value(&*config).map_err(|err| ConfigProblem::new("", err.to_string()))?;
        Ok(Self {
            json,
            typed: with.typed,
        })
    }

    /// The typed value, deserialised from the JSON form if necessary.
    ///
    /// # Errors
    /// The first field that does not fit `C`, of settings that did not come from [`Settings::read`].
    pub fn typed<C: DeserializeOwned + Any + Send + Sync>(&self) -> Result<Arc<C>, ConfigProblem> {
        let known = self.typed.get().cloned().and_then(|typed| typed.downcast().ok());
        if let Some(known) = known {
            return Ok(known);
        }
        let empty = Value::Object(Map::new());
        let json = if self.json.is_null() { &empty } else { &self.json };
        let config: Arc<C> = Arc::new(read(json)?);
        // Another thread may have stored the same value meanwhile.
        let _ = self.typed.set(config.clone());
        Ok(config)
    }
}

impl From<Value> for Settings {
    fn from(json: Value) -> Self {
        Self {
            json,
            typed: OnceLock::new(),
        }
    }
}

impl From<Settings> for Value {
    fn from(settings: Settings) -> Self {
        settings.json
    }
}

impl Default for Settings {
    fn default() -> Self {
        Value::Null.into()
    }
}

/// The JSON form.
impl Deref for Settings {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.json
    }
}

/// Mutable access to the JSON form; the typed value is deserialised anew afterwards.
impl DerefMut for Settings {
    fn deref_mut(&mut self) -> &mut Value {
        self.typed = OnceLock::new();
        &mut self.json
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
}

impl PartialEq for Settings {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl PartialEq<Value> for Settings {
    fn eq(&self, other: &Value) -> bool {
        self.json == *other
    }
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Window {
        days: u32,
    }

    impl Default for Window {
        fn default() -> Self {
            Self { days: 5 }
        }
    }

    #[test]
    fn the_typed_value_is_read_once_and_again_after_a_change() {
        let mut settings = Settings::read::<Window>(Value::Null).unwrap();
        assert_eq!(*settings, json!({ "days": 5 }));
        let first = settings.typed::<Window>().unwrap();
        assert!(Arc::ptr_eq(&first, &settings.clone().typed().unwrap()));
        settings["days"] = json!(7);
        assert_eq!(settings.typed::<Window>().unwrap().days, 7);
        settings["weeks"] = json!(1);
        assert_eq!(settings.typed::<Window>().map(|_| ()).unwrap_err().field, "");
    }
}
