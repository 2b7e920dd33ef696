//! Splits a JSON list or object into its elements without parsing them.
//!
//! A [`Splitter`] finds the end of each element by its brackets and quotes, which takes a fraction of the time
//! of parsing it. Of the whole it checks brackets, commas and keys; whether an element is JSON, its parser
//! finds out. An element stays in a buffer only until the next one is asked for.

use std::io::{self, BufRead};

use memchr::memchr2;

/// Why the elements end early.
#[derive(Debug)]
pub(super) enum Broken {
    /// The file could not be read.
    Io(io::Error),
    /// The file is not JSON, or neither a list nor an object.
    Json,
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<serde_json::Error> for Broken {
    fn from(_: serde_json::Error) -> Self {
        Self::Json
    }
}

/// One element: its key, if it is one of an object, and its JSON.
pub(super) type Element<'a> = (Option<String>, &'a [u8]);

/// The elements of a JSON list or object.
pub(super) struct Splitter<R> {
    reader: R,
    /// What was read; everything before `at` is used up.
    buffer: Vec<u8>,
    at: usize,
    /// The closing bracket: of a list or of an object.
    close: u8,
    /// Whether the first element was asked for.
    is_begun: bool,
}

impl<R: BufRead> Splitter<R> {
    /// Reads up to the opening bracket.
    pub(super) fn new(reader: R) -> Result<Self, Broken> {
        let mut splitter = Self { reader, buffer: Vec::new(), at: 0, close: 0, is_begun: false };
        splitter.close = match splitter.token()? {
            Some(b'[') => b']',
            Some(b'{') => b'}',
            _ => return Err(Broken::Json),
        };
        splitter.at += 1;
        Ok(splitter)
    }

    /// The next element, or `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Element<'_>>, Broken> {
        let token = self.token()?;
        if token == Some(self.close) {
            self.at += 1;
            return if self.token()?.is_none() { Ok(None) } else { Err(Broken::Json) };
        }
        if std::mem::replace(&mut self.is_begun, true) {
            self.pass(b',')?;
        }
        let mut key = None;
        if self.close == b'}' {
            key = Some(serde_json::from_slice(self.value()?)?);
            self.pass(b':')?;
        }
        Ok(Some((key, self.value()?)))
    }

    /// Passes over `token`, which must be next.
    fn pass(&mut self, token: u8) -> Result<(), Broken> {
        if self.token()? != Some(token) {
            return Err(Broken::Json);
        }
        self.at += 1;
        Ok(())
    }

    /// The next byte that is not white space, which stays next; `None` at the end of the file.
    fn token(&mut self) -> io::Result<Option<u8>> {
        loop {
            let is_token = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            match self.buffer[self.at..].iter().position(is_token) {
                Some(spaces) => {
                    self.at += spaces;
                    return Ok(Some(self.buffer[self.at]));
                }
                None => {
                    self.at = self.buffer.len();
                    if !self.read_more()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Passes over the next value and returns its bytes.
    fn value(&mut self) -> Result<&[u8], Broken> {
        let length = match self.token()?.ok_or(Broken::Json)? {
            b'"' | b'[' | b'{' => self.quoted_or_bracketed()?,
            _ => self.bare()?,
        };
        let start = self.at;
        self.at += length;
        Ok(&self.buffer[start..self.at])
    }

    /// The length of the text, list or object that is next.
    fn quoted_or_bracketed(&mut self) -> Result<usize, Broken> {
        let (mut length, mut depth, mut is_quoted) = (0, 0_usize, false);
        loop {
            // An escaped byte may still be unread.
            let Some(rest) = self.buffer.get(self.at + length..).filter(|rest| !rest.is_empty()) else {
                if !self.read_more()? {
                    return Err(Broken::Json);
                }
                continue;
            };
            let found = match is_quoted {
                true => memchr2(b'"', b'\\', rest),
                false => rest.iter().position(|byte| matches!(byte, b'"' | b'[' | b'{' | b']' | b'}')),
            };
            let Some(found) = found else {
                length += rest.len();
                continue;
            };
            match rest[found] {
                b'\\' => length += 1,
                b'"' => is_quoted = !is_quoted,
                b'[' | b'{' => depth += 1,
                _ => depth = depth.checked_sub(1).ok_or(Broken::Json)?,
            }
            length += found + 1;
            if depth == 0 && !is_quoted {
                return Ok(length);
            }
        }
    }

    /// The length of the number or word that is next.
    fn bare(&mut self) -> Result<usize, Broken> {
        let mut length = 0;
        loop {
            let rest = &self.buffer[self.at + length..];
            let is_end = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b':' | b' ' | b'\t' | b'\n' | b'\r');
            match rest.iter().position(is_end) {
                Some(end) if length + end == 0 => return Err(Broken::Json),
                Some(end) => return Ok(length + end),
                None => length += rest.len(),
            }
            if !self.read_more()? {
                return Err(Broken::Json);
            }
        }
    }

    /// Reads further and forgets what is used up; `false` at the end of the file.
    fn read_more(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let more = self.reader.fill_buf()?;
        let n_read = more.len();
        self.buffer.extend_from_slice(more);
        self.reader.consume(n_read);
        Ok(n_read > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    /// The elements, keys before a colon; `None` if the whole is not JSON.
    fn split(json: &str) -> Option<Vec<String>> {
        // One byte is read at a time, so that a read ends everywhere.
        let mut splitter = Splitter::new(BufReader::with_capacity(1, json.as_bytes())).ok()?;
        let mut elements = Vec::new();
        while let Some((key, value)) = splitter.next().ok()? {
            let value = std::str::from_utf8(value).unwrap();
            elements.push(key.map_or_else(|| value.to_owned(), |key| format!("{key}:{value}")));
        }
        Some(elements)
    }

    #[test]
    fn elements_are_the_bytes_between_the_commas() {
        let cases: [(&str, &[&str]); 6] = [
            (" [] ", &[]),
            ("{}", &[]),
            ("[ 1 , null,\"a\" ]\n", &["1", "null", "\"a\""]),
            (r#"[{"a":[1,{"b":"]}"}]},[]]"#, &[r#"{"a":[1,{"b":"]}"}]}"#, "[]"]),
            (r#"["\"","\\",{"a\\":"\\\""}]"#, &[r#""\"""#, r#""\\""#, r#"{"a\\":"\\\""}"#]),
            (r#"{ "a" : {"x":1} , "b\u00e9":2 }"#, &[r#"a:{"x":1}"#, "bé:2"]),
        ];
        for (json, elements) in cases {
            assert_eq!(split(json).unwrap(), elements, "{json}");
        }
    }

    #[test]
    fn what_is_no_list_or_object_is_refused() {
        for json in [
            "",
            "7",
            "[",
            "{",
            "[1",
            "[1,",
            "[1 2]",
            "[1,]",
            "[,1]",
            "[]]",
            "[1]2",
            "[\"a",
            "[{]",
            "[{}}",
            "{1:2}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\" 1}",
            "{\"a\":1",
            "{\"a\":1]",
        ] {
            let parsed = split(json).map(|elements| {
                elements.iter().all(|element| serde_json::from_str::<serde_json::Value>(element).is_ok())
            });
            assert_ne!(parsed, Some(true), "{json}");
        }
    }
}
