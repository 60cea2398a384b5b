//! The functions rules may call: those of Kubernetes, and our own where a function must be paid for before it
//! runs or where the library differs from Kubernetes.
//!
//! Owns the one context that all evaluations share. Must never offer a function whose result can outgrow
//! its arguments without drawing on the budget first.

#![expect(clippy::needless_pass_by_value, reason = "the library calls functions with values of their own")]

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use kube_cel::KubeCelExt as _;
use kube_cel::cel::extractors::{Arguments, This};
use kube_cel::cel::objects::{Key, OptionalValue};
use kube_cel::cel::{Context, ExecutionError, ResolveResult, Value};
use regex::{Regex, RegexBuilder};

use super::budget;

/// Names of types, for `type(x) == int`. A value that no string of a user can be.
const TYPES: &[&str] = &[
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "uint",
    "duration",
    "timestamp",
];

pub static CONTEXT: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    context.add_function("@spend", budget::spend);
    context.add_function("@optional", optional_field);
    context.add_function("@keys", keys);
    context.add_function("@sortBy", sort_by);
    context.add_function("@precision", limit_precision);
    context.add_function("dyn", |value: Value| -> ResolveResult { Ok(value) });
    context.add_function("bool", to_bool);
    context.add_function("type", type_of);
    context.add_function("size", size);
    context.add_function("lists.range", range);
    context.add_function("replace", replace);
    context.add_function("join", join);
    context.add_function("matches", matches);
    context.add_function("find", find);
    context.add_function("findAll", find_all);
    for name in TYPES {
        context.add_variable_from_value(*name, type_value(name));
    }
    context
});

/// All functions there are, besides operators and macros.
const NAMES: &str = "\
    add asApproximateFloat asInteger base64.decode base64.encode bool bytes charAt cidr compareTo \
    contains containsCIDR containsIP distinct double duration dyn endsWith family find findAll first \
    flatten format format.byte format.date format.datetime format.dns1035Label format.dns1035LabelPrefix \
    format.dns1123Label format.dns1123LabelPrefix format.dns1123Subdomain format.dns1123SubdomainPrefix \
    format.labelValue format.named format.qualifiedName format.uri format.uuid getDate getDayOfMonth \
    getDayOfWeek getDayOfYear getEscapedPath getFullYear getHost getHostname getHours getMilliseconds \
    getMinutes getMonth getPort getQuery getScheme getSeconds hasValue indexOf int ip ip.isCanonical \
    isCIDR isCIDRv4 isCIDRv6 isGlobalUnicast isGreaterThan isIP isIPv4 isIPv6 isInteger isLessThan \
    isLinkLocalMulticast isLinkLocalUnicast isLoopback isQuantity isSemver isSorted isURL isUnspecified \
    join jsonpatch.escapeKey last lastIndexOf lists.range lowerAscii major masked matches math.abs \
    math.bitAnd math.bitNot math.bitOr math.bitShiftLeft math.bitShiftRight math.bitXor math.ceil \
    math.floor math.greatest math.isFinite math.isInf math.isNaN math.least math.round math.sign \
    math.sqrt math.trunc max min minor optional.none optional.of optional.ofNonZeroValue or orValue \
    patch prefixLength quantity replace reverse semver sets.contains sets.equivalent sets.intersects \
    sign size slice sort split startsWith string strings.quote sub substring sum timestamp trim type \
    uint upperAscii url validate value \
";

pub fn is_function(name: &str) -> bool {
    NAMES.split_ascii_whitespace().any(|known| known == name)
}

/// Whether a name stands for a type.
pub fn is_type(name: &str) -> bool {
    TYPES.contains(&name)
}

fn type_value(name: &str) -> Value {
    Value::String(Arc::new(format!("\u{0}type:{name}")))
}

fn type_of(value: Value) -> ResolveResult {
    let name = match value {
        Value::Bool(_) => "bool",
        Value::Bytes(_) => "bytes",
        Value::Float(_) => "double",
        Value::Int(_) => "int",
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Null => "null_type",
        Value::String(_) => "string",
        Value::UInt(_) => "uint",
        Value::Duration(_) => "duration",
        Value::Timestamp(_) => "timestamp",
        Value::Function(..) | Value::Opaque(_) => "dyn",
    };
    Ok(type_value(name))
}

fn to_bool(value: Value) -> ResolveResult {
    match &value {
        Value::Bool(flag) => Ok(Value::Bool(*flag)),
        Value::String(text) => match text.as_str() {
            "true" | "True" | "TRUE" | "t" | "1" => Ok(Value::Bool(true)),
            "false" | "False" | "FALSE" | "f" | "0" => Ok(Value::Bool(false)),
            _ => Err(ExecutionError::function_error("bool", "type conversion error from 'string' to 'bool'")),
        },
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

/// Strings are measured in characters.
fn size(This(this): This<Value>) -> ResolveResult {
    let size = match &this {
        Value::List(list) => list.len(),
        Value::Map(map) => map.map.len(),
        Value::String(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(Value::Int(size as i64))
}

fn optional(value: Option<Value>) -> Value {
    Value::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

/// `operand.?field`: the operand may be an optional itself, and a missing field is no error.
fn optional_field(operand: Value, field: Arc<String>) -> ResolveResult {
    let inner = match &operand {
        Value::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>() {
            Some(optional) => optional.value().cloned(),
            None => return Err(ExecutionError::NoSuchOverload),
        },
        other => Some(other.clone()),
    };
    match inner {
        None => Ok(optional(None)),
        Some(Value::Map(map)) => Ok(optional(map.map.get(&Key::String(field)).cloned())),
        Some(_) => Err(ExecutionError::NoSuchOverload),
    }
}

/// What the first variable of a two-variable loop runs over.
fn keys(value: Value) -> ResolveResult {
    match value {
        Value::List(list) => Ok(Value::List(Arc::new((0..list.len() as i64).map(Value::Int).collect()))),
        Value::Map(map) => Ok(Value::List(Arc::new(map.map.keys().map(Value::from).collect()))),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

/// `list.sortBy(x, key)`, with the keys worked out already.
fn sort_by(list: Arc<Vec<Value>>, keys: Arc<Vec<Value>>) -> ResolveResult {
    budget::take(list.len() as u64 * 16)?;
    let mut pairs: Vec<(&Value, &Value)> = keys.iter().zip(list.iter()).collect();
    let mut comparable = true;
    pairs.sort_by(|a, b| {
        a.0.partial_cmp(b.0).unwrap_or_else(|| {
            comparable = false;
            std::cmp::Ordering::Equal
        })
    });
    if !comparable {
        return Err(ExecutionError::NoSuchOverload);
    }
    Ok(Value::List(Arc::new(pairs.into_iter().map(|(_, value)| value.clone()).collect())))
}

/// Guards the format string of `format`: `%.999999999f` would write as many digits.
fn limit_precision(format: Value) -> ResolveResult {
    const MAX_DIGITS: usize = 2;
    if let Value::String(text) = &format {
        let long = |part: &str| part.bytes().take_while(u8::is_ascii_digit).count() > MAX_DIGITS;
        if text.split("%.").skip(1).any(long) {
            return Err(ExecutionError::function_error("format", "precision is too large"));
        }
    }
    Ok(format)
}

fn range(n: i64) -> ResolveResult {
    let count = u64::try_from(n)
        .map_err(|_| ExecutionError::function_error("lists.range", "range argument must be non-negative"))?;
    budget::take(count)?;
    Ok(Value::List(Arc::new((0..n).map(Value::Int).collect())))
}

fn replace(This(this): This<Arc<String>>, Arguments(args): Arguments) -> ResolveResult {
    let (Some(Value::String(from)), Some(Value::String(to))) = (args.first(), args.get(1)) else {
        return Err(ExecutionError::NoSuchOverload);
    };
    let most = match args.get(2) {
        Some(Value::Int(n)) if *n >= 0 => *n as usize,
        _ => usize::MAX,
    };
    let times = this.matches(from.as_str()).take(most).count() as u64;
    budget::take((this.len() as u64 + times * to.len() as u64) / 16)?;
    Ok(Value::String(Arc::new(this.replacen(from.as_str(), to, most))))
}

fn join(This(this): This<Arc<Vec<Value>>>, Arguments(args): Arguments) -> ResolveResult {
    let separator = match args.first() {
        None => "",
        Some(Value::String(text)) => text.as_str(),
        Some(_) => return Err(ExecutionError::NoSuchOverload),
    };
    let mut parts = Vec::with_capacity(this.len());
    for value in this.iter() {
        let Value::String(text) = value else { return Err(ExecutionError::NoSuchOverload) };
        parts.push(text.as_str());
    }
    let length: usize = parts.iter().map(|part| part.len() + separator.len()).sum();
    budget::take(length as u64 / 16)?;
    Ok(Value::String(Arc::new(parts.join(separator))))
}

fn matches(This(this): This<Arc<String>>, pattern: Arc<String>) -> ResolveResult {
    with_regex(&pattern, &this, |regex| Value::Bool(regex.is_match(&this)))
}

fn find(This(this): This<Arc<String>>, pattern: Arc<String>) -> ResolveResult {
    let text = |found: regex::Match<'_>| found.as_str().to_string();
    with_regex(&pattern, &this, |regex| {
        Value::String(Arc::new(regex.find(&this).map(text).unwrap_or_default()))
    })
}

fn find_all(This(this): This<Arc<String>>, Arguments(args): Arguments) -> ResolveResult {
    let Some(Value::String(pattern)) = args.first() else { return Err(ExecutionError::NoSuchOverload) };
    let most = match args.get(1) {
        Some(Value::Int(n)) if *n >= 0 => *n as usize,
        _ => usize::MAX,
    };
    with_regex(pattern, &this, |regex| {
        let all = regex.find_iter(&this).take(most).map(|found| Value::from(found.as_str()));
        Value::List(Arc::new(all.collect()))
    })
}

/// Runs with a compiled expression; loops use the same one over and over.
fn with_regex(pattern: &str, text: &str, use_it: impl FnOnce(&Regex) -> Value) -> ResolveResult {
    const SIZE_LIMIT: usize = 256 * 1024;
    thread_local! {
        static LAST: RefCell<Option<Regex>> = const { RefCell::new(None) };
    }
    budget::take(1 + text.len() as u64 / 16)?;
    LAST.with_borrow_mut(|last| {
        let regex = match last {
            Some(regex) if regex.as_str() == pattern => regex,
            _ => {
                budget::take(10_000)?;
                let compiled =
                    RegexBuilder::new(pattern).size_limit(SIZE_LIMIT).dfa_size_limit(SIZE_LIMIT).build();
                last.insert(compiled.map_err(|error| ExecutionError::function_error("matches", error))?)
            }
        };
        Ok(use_it(regex))
    })
}
