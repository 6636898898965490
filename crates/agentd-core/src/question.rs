//! A question of an MCP server, or of an agent's program, to the user: a form, or a page to visit. It is asked while a call runs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What the server or the program wants to know. All texts are its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The name of the server or of the program.
    pub server: String,
    pub message: String,
    /// JSON Schema of an object with plain fields; none if no field is to be filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Value>,
    /// A page that the user is asked to visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The user's reply to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionReply {
    Accept(Map<String, Value>),
    Decline,
}

/// A field of the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub description: Option<String>,
    /// `string`, `integer`, `number`, `boolean` or `array`.
    pub kind: String,
    /// The values that are accepted; empty if all are.
    pub options: Vec<String>,
    pub is_required: bool,
    pub default: Option<Value>,
}

impl Question {
    /// The fields of the form, sorted by name.
    pub fn fields(&self) -> Vec<Field> {
        let form = self.form.as_ref();
        let properties = form.and_then(|form| form.get("properties")?.as_object());
        let required = form.and_then(|form| form.get("required")?.as_array());
        let is_required = |name: &str| {
            required.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)))
        };
        let fields = properties.into_iter().flatten().map(|(name, of)| {
            let text = |key: &str| of.get(key).and_then(Value::as_str).map(str::to_owned);
            Field {
                name: name.clone(),
                description: text("description").or_else(|| text("title")),
                kind: text("type").unwrap_or_else(|| "string".to_owned()),
                options: options(of.get("items").unwrap_or(of)),
                is_required: is_required(name),
                default: of.get("default").cloned(),
            }
        });
        fields.collect()
    }

    /// The fields in a line that the user typed: `a=1 b=some words`. The only field of a form needs no name.
    pub fn fields_in(&self, line: &str) -> Vec<String> {
        let fields = self.fields();
        let begins = |word: &str| {
            let mut names = fields.iter().map(|it| it.name.as_str());
            names.any(|name| {
                word.strip_prefix(name)
                    .is_some_and(|it| it.starts_with('='))
            })
        };
        let mut found: Vec<String> = Vec::new();
        for word in line.split_whitespace() {
            match found.last_mut() {
                Some(last) if !begins(word) => {
                    last.push(' ');
                    last.push_str(word);
                }
                _ => found.push(word.to_owned()),
            }
        }
        if let ([only], [field]) = (found.as_mut_slice(), fields.as_slice())
            && !begins(only)
        {
            *only = format!("{}={only}", field.name);
        }
        found
    }

    /// The content of an answer, from fields as `name=value`. An error says what does not fit.
    pub fn filled(&self, given: &[String]) -> Result<Map<String, Value>, String> {
        let fields = self.fields();
        let mut content = Map::new();
        for text in given {
            let (name, typed) = text
                .split_once('=')
                .ok_or_else(|| format!("`{text}` is not of the form FIELD=VALUE"))?;
            let field = fields.iter().find(|field| field.name == name);
            let value = match field {
                Some(field) => field.value(typed)?,
                // The check below names the fields that there are.
                None => Value::from(typed),
            };
            content.insert(name.to_owned(), value);
        }
        self.check(&content)?;
        Ok(content)
    }

    /// What is wrong with the content of an answer.
    pub fn check(&self, content: &Map<String, Value>) -> Result<(), String> {
        let fields = self.fields();
        if let Some(name) = content
            .keys()
            .find(|name| fields.iter().all(|it| it.name != **name))
        {
            let known: Vec<&str> = fields.iter().map(|it| it.name.as_str()).collect();
            return Err(match known.is_empty() {
                true => format!("the question has no field `{name}`, nor any other"),
                false => format!(
                    "the question has no field `{name}`; it has: {}",
                    known.join(", ")
                ),
            });
        }
        for field in &fields {
            match content.get(&field.name) {
                Some(value) => field.check(value)?,
                None if field.is_required => {
                    return Err(format!("the field `{}` is missing", field.name));
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// The accepted values of a field, in one of the forms that the protocol has.
fn options(of: &Value) -> Vec<String> {
    let plain = of.get("enum").and_then(Value::as_array);
    let titled = of.get("oneOf").or_else(|| of.get("anyOf"));
    let titled = titled.and_then(Value::as_array);
    let titled = titled
        .into_iter()
        .flatten()
        .filter_map(|it| it.get("const"));
    let values = plain.into_iter().flatten().chain(titled);
    values
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

impl Field {
    /// The value that the user typed.
    pub fn value(&self, typed: &str) -> Result<Value, String> {
        let not = |what: &str| format!("`{}` must be {what}", self.name);
        let value = match self.kind.as_str() {
            "boolean" => match typed.to_ascii_lowercase().as_str() {
                "true" | "yes" | "y" => Value::Bool(true),
                "false" | "no" | "n" => Value::Bool(false),
                _ => return Err(not("yes or no")),
            },
            "integer" => Value::from(typed.parse::<i64>().map_err(|_| not("a whole number"))?),
            "number" => {
                let number = typed.parse::<f64>().ok();
                let number = number.and_then(serde_json::Number::from_f64);
                Value::Number(number.ok_or_else(|| not("a number"))?)
            }
            "array" => {
                let parts = typed.split(',').map(str::trim);
                let parts = parts.filter(|part| !part.is_empty());
                parts.map(Value::from).collect()
            }
            _ => Value::from(typed),
        };
        self.check(&value)?;
        Ok(value)
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        let is_kind = match self.kind.as_str() {
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "array" => value.is_array(),
            _ => value.is_string(),
        };
        if !is_kind {
            return Err(format!("`{}` must be of type {}", self.name, self.kind));
        }
        let one = std::slice::from_ref(value);
        let mut values = value.as_array().map_or(one, Vec::as_slice).iter();
        let is_option = |value: &Value| {
            value
                .as_str()
                .is_some_and(|text| self.options.iter().any(|option| option == text))
        };
        match self.options.is_empty() || values.all(is_option) {
            true => Ok(()),
            false => Err(format!(
                "`{}` must be one of: {}",
                self.name,
                self.options.join(", ")
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn question() -> Question {
        Question {
            server: "fs".to_owned(),
            message: "Where?".to_owned(),
            form: Some(
                json!({"type": "object", "required": ["path"], "properties": {
                    "path": {"type": "string", "description": "A directory."},
                    "depth": {"type": "integer"},
                    "sure": {"type": "boolean"},
                    "mode": {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
                    "tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
                }}),
            ),
            url: None,
        }
    }

    #[test]
    fn what_the_user_types_becomes_a_value_of_the_field() {
        let question = question();
        let typed = [
            ("path", "/a b", json!("/a b")),
            ("depth", "3", json!(3)),
            ("sure", "Yes", json!(true)),
            ("mode", "b", json!("b")),
            ("tags", "x, y", json!(["x", "y"])),
        ];
        let mut content = Map::new();
        for (name, text, expected) in typed {
            let field = question.fields().into_iter().find(|it| it.name == name);
            let value = field.unwrap().value(text).unwrap();
            assert_eq!(value, expected, "{name}");
            content.insert(name.to_owned(), value);
        }
        assert_eq!(question.check(&content), Ok(()));
    }

    #[test]
    fn a_wrong_answer_is_named() {
        let question = question();
        for (content, expected) in [
            (json!({}), "the field `path` is missing"),
            (json!({"path": 1}), "`path` must be of type string"),
            (json!({"path": "a", "mode": "c"}), "one of: a, b"),
            (json!({"path": "a", "tags": ["z"]}), "one of: x, y"),
            (json!({"path": "a", "other": 1}), "no field `other`"),
        ] {
            let Value::Object(content) = content else {
                panic!()
            };
            let error = question.check(&content).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        for (name, typed) in [("depth", "x"), ("sure", "maybe"), ("mode", "c")] {
            let field = question.fields().into_iter().find(|it| it.name == name);
            assert!(field.unwrap().value(typed).is_err(), "{name}");
        }
    }

    #[test]
    fn fields_are_given_by_name() {
        let question = question();
        let of = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(|&it| it.to_owned()).collect();
            question.filled(&given)
        };
        let expected = json!({"depth": 7, "path": "a=b"});
        assert_eq!(
            Value::Object(of(&["depth=7", "path=a=b"]).unwrap()),
            expected
        );
        assert!(of(&["path"]).unwrap_err().contains("FIELD=VALUE"));
        assert!(of(&["path=a", "x=2"]).unwrap_err().contains("no field `x`"));
        assert!(of(&[]).unwrap_err().contains("`path` is missing"));
        let line = question.fields_in(" depth=7  path=some more words ");
        assert_eq!(line, ["depth=7", "path=some more words"]);
        let form = json!({"properties": {"name": {"type": "string"}}});
        let one = Question {
            form: Some(form),
            ..question
        };
        assert_eq!(one.fields_in("Ann Lee"), ["name=Ann Lee"]);
    }
}
