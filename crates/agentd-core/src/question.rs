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
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    /// What the server calls it.
    pub title: Option<String>,
    pub description: Option<String>,
    /// `string`, `integer`, `number`, `boolean` or `array`.
    pub kind: String,
    /// The values that are accepted; empty if all are.
    pub options: Vec<String>,
    /// What the server calls each of them, in the same order; empty if it has no names for them.
    pub option_titles: Vec<String>,
    pub bounds: Bounds,
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
                title: text("title"),
                description: text("description"),
                kind: text("type").unwrap_or_else(|| "string".to_owned()),
                options: options(of.get("items").unwrap_or(of)),
                option_titles: option_titles(of.get("items").unwrap_or(of)),
                bounds: Bounds::of(of),
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
        let content = self.with_defaults(content);
        self.check(&content)?;
        Ok(content)
    }

    /// The content of an answer, with the server's defaults for the fields that it leaves out.
    pub fn with_defaults(&self, mut content: Map<String, Value>) -> Map<String, Value> {
        for field in self.fields() {
            if let Some(default) = field.usable_default()
                && !content.contains_key(&field.name)
            {
                content.insert(field.name, default);
            }
        }
        content
    }

    /// How the user answers, in the words of the command: the fields that must be filled in, or none.
    pub fn to_fill_in(&self) -> Vec<String> {
        let fields = self.fields().into_iter();
        let open = fields.filter(|it| it.is_required && it.usable_default().is_none());
        let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let named = open.map(|field| match is_plain(&field.name) {
            true => format!("{}=…", field.name),
            false => "FIELD=…".to_owned(),
        });
        named.collect()
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

/// What the server calls the accepted values.
fn option_titles(of: &Value) -> Vec<String> {
    let titled = of.get("oneOf").or_else(|| of.get("anyOf"));
    if let Some(titled) = titled.and_then(Value::as_array) {
        let title = |it: &Value| {
            let value = it.get("const")?.as_str()?;
            Some(
                it.get("title")
                    .and_then(Value::as_str)
                    .unwrap_or(value)
                    .to_owned(),
            )
        };
        return titled.iter().filter_map(title).collect();
    }
    // The form of earlier revisions.
    let names = of.get("enumNames").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    let names: Vec<String> = names.map(str::to_owned).collect();
    match names.len() == options(of).len() {
        true => names,
        false => Vec::new(),
    }
}

/// The limits of a value. Which of them apply depends on the kind of the field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Characters of a text, or values of a list.
    pub least: Option<u64>,
    pub most: Option<u64>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
}

impl Bounds {
    fn of(field: &Value) -> Self {
        let number = |key: &str| field.get(key).and_then(Value::as_f64);
        let length = |keys: [&str; 2]| {
            let mut found = keys.iter().filter_map(|key| field.get(*key)?.as_u64());
            found.next()
        };
        Self {
            least: length(["minLength", "minItems"]),
            most: length(["maxLength", "maxItems"]),
            minimum: number("minimum"),
            maximum: number("maximum"),
        }
    }

    /// The limits that a value exceeds, in words; none if it fits.
    fn exceeded(&self, value: &Value) -> Option<String> {
        let (length, what) = match value {
            Value::String(text) => (Some(text.chars().count()), "characters"),
            Value::Array(items) => (Some(items.len()), "values"),
            _ => (None, ""),
        };
        let length = length.and_then(|length| u64::try_from(length).ok());
        if let Some(length) = length {
            return match (self.least, self.most) {
                (Some(least), _) if length < least => Some(format!("have at least {least} {what}")),
                (_, Some(most)) if length > most => Some(format!("have at most {most} {what}")),
                _ => None,
            };
        }
        let number = value.as_f64()?;
        match (self.minimum, self.maximum) {
            (Some(least), _) if number < least => Some(format!("be at least {least}")),
            (_, Some(most)) if number > most => Some(format!("be at most {most}")),
            _ => None,
        }
    }
}

impl Field {
    /// What is sent if the user fills in nothing. A default that the server itself would refuse is none.
    pub fn usable_default(&self) -> Option<Value> {
        let default = self.default.clone()?;
        self.check(&default).is_ok().then_some(default)
    }

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
        if !self.options.is_empty() && !values.all(is_option) {
            let options = self.options.join(", ");
            return Err(format!("`{}` must be one of: {options}", self.name));
        }
        match self.bounds.exceeded(value) {
            None => Ok(()),
            Some(what) => Err(format!("`{}` must {what}", self.name)),
        }
    }
}

#[cfg(test)]
mod tests;
