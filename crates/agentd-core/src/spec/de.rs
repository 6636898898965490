//! Serde over the tree: the structs define what is valid, and the tree gives the position of an error.

use super::Error;
use super::fault::Fault;
use super::path::Step;
use super::scalar::Scalar;
use super::tree::{Entry, Kind, Node};
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;

pub(crate) fn from_node<'de, T: Deserialize<'de>>(root: &'de Node) -> Result<T, Error> {
    T::deserialize(root).map_err(|fault| fault.into_error(root.line))
}

impl Node {
    fn scalar(&self) -> Option<Scalar<'_>> {
        match &self.kind {
            Kind::Word { text, plain: true } => Some(Scalar::of_plain(text)),
            Kind::Word { text, plain: false } => Some(Scalar::Text(text)),
            _ => None,
        }
    }

    /// Whether the value is missing.
    fn is_empty(&self) -> bool {
        matches!(&self.kind, Kind::Word { text, plain: true } if text.is_empty())
    }

    fn expected(&self, what: &str) -> Fault {
        let found = match (&self.kind, self.scalar()) {
            _ if self.is_empty() => "nothing",
            (Kind::List(_), _) => "a list",
            (Kind::Map(_), _) => "a mapping",
            (_, Some(Scalar::Null)) => "null",
            (_, Some(Scalar::Bool(_))) => "true or false",
            (_, Some(Scalar::Unsigned(_) | Scalar::Signed(_) | Scalar::Float(_))) => "a number",
            _ => "text",
        };
        Fault::invalid(format!("expected {what}, found {found}"))
    }

    fn unsigned(&self, max: u64) -> Result<u64, Fault> {
        match self.scalar() {
            Some(Scalar::Unsigned(value)) if value <= max => Ok(value),
            Some(Scalar::Unsigned(_) | Scalar::Signed(_) | Scalar::Float(_)) => Err(
                Fault::invalid(format!("expected a whole number from 0 to {max}")),
            ),
            _ => Err(self.expected("a whole number")),
        }
    }
}

fn finite(value: f64) -> Result<f64, Fault> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Fault::invalid("expected a finite number"))
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.scalar() {
            Some(Scalar::Null) => visitor.visit_unit(),
            Some(Scalar::Bool(value)) => visitor.visit_bool(value),
            Some(Scalar::Unsigned(value)) => visitor.visit_u64(value),
            Some(Scalar::Signed(value)) => visitor.visit_i64(value),
            Some(Scalar::Float(value)) => visitor.visit_f64(finite(value)?),
            Some(Scalar::Text(text)) => visitor.visit_borrowed_str(text),
            None if matches!(self.kind, Kind::List(_)) => self.deserialize_seq(visitor),
            None => self.deserialize_map(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        // `tools:` with all lines below it commented out more likely means "none" than "the default", which an absent
        // key means. So the user must write what is meant.
        if self.is_empty() {
            return Err(Fault::invalid(
                "it has no value; give it one, or remove the key",
            ));
        }
        match self.scalar() {
            Some(Scalar::Null) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    // A text field accepts `8080` and `1.10` as they are spelled.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match (&self.kind, self.scalar()) {
            (_, Some(Scalar::Null)) => Err(self.expected("text (`\"\"` for an empty text)")),
            (Kind::Word { text, .. }, _) => visitor.visit_borrowed_str(text),
            _ => Err(self.expected("text")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_u64(self.unsigned(u32::MAX.into())?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_u64(self.unsigned(u64::MAX)?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.scalar() {
            Some(Scalar::Unsigned(value)) => visitor.visit_u64(value),
            Some(Scalar::Signed(value)) => visitor.visit_i64(value),
            Some(Scalar::Float(value)) => visitor.visit_f64(finite(value)?),
            _ => Err(self.expected("a number")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.kind {
            Kind::Word { text, .. } if !self.is_empty() => {
                visitor.visit_enum(text.as_str().into_deserializer())
            }
            _ => Err(self.expected(&format!("one of: {}", known.join(", ")))),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.kind {
            Kind::List(items) => visitor.visit_seq(Items {
                rest: items.iter().enumerate(),
            }),
            _ => Err(self.expected("a list such as `[a, b]`")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.kind {
            Kind::Map(entries) => visitor.visit_map(Entries {
                rest: entries.iter(),
                current: None,
            }),
            _ => Err(self.expected("a mapping such as `{key: value}`")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_map(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u128 f32 char bytes byte_buf unit unit_struct
        newtype_struct tuple tuple_struct identifier ignored_any
    }
}

struct Items<'de> {
    rest: std::iter::Enumerate<std::slice::Iter<'de, Node>>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some((index, node)) = self.rest.next() else {
            return Ok(None);
        };
        let item = seed.deserialize(node);
        item.map(Some)
            .map_err(|fault| fault.at(node.line).below(Step::Index(index)))
    }
}

struct Entries<'de> {
    rest: std::slice::Iter<'de, Entry>,
    current: Option<&'de Entry>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        self.current = self.rest.next();
        let Some(entry) = self.current else {
            return Ok(None);
        };
        let key = BorrowedStrDeserializer::new(&entry.key);
        // The error of an unknown key already contains the key.
        let key = seed.deserialize(key);
        key.map(Some).map_err(|fault: Fault| fault.at(entry.line))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some(entry) = self.current else {
            return Err(Fault::invalid("its value is missing"));
        };
        let value = seed.deserialize(&entry.value);
        value.map_err(|fault| fault.at(entry.line).below(Step::Key(entry.key.clone())))
    }
}
