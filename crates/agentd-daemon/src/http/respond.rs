//! Extractors and responses. The only place where an error becomes an RFC 9457 problem.

use crate::error::{self, Error, Kind};
use crate::spawn::{Died, blocking, spawn};
use agentd_client::{self as client, Problem};
use agentd_core::id::OpId;
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{self, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::Path as FilePath;
use std::time::Duration;

/// Time limit for receiving the body of a request.
const BODY: Duration = Duration::from_secs(30);

/// An error as a response.
pub struct Fault(pub Error);

pub type Answer<T> = Result<JsonBody<T>, Fault>;

impl<E: Into<Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// An error as clients see it.
pub fn problem(error: Error) -> Problem {
    use client::Kind as Known;
    let (kind, status) = match error.kind {
        Kind::Invalid => (Known::Invalid, 400),
        Kind::NotFound => (Known::NotFound, 404),
        Kind::Ambiguous => (Known::Ambiguous, 400),
        Kind::WrongMethod => (Known::Invalid, 405),
        Kind::TooSlow => (Known::Invalid, 408),
        Kind::Conflict => (Known::Conflict, 409),
        Kind::Waiting => (Known::Waiting, 409),
        Kind::Refused => (Known::Refused, 403),
        Kind::TooLarge => (Known::TooLarge, 413),
        Kind::QueueFull => (Known::QueueFull, 429),
        Kind::Unavailable => (Known::Unavailable, 503),
        Kind::Internal => (Known::Internal, 500),
    };
    Problem {
        uri: "about:blank".to_owned(),
        kind,
        title: error.what,
        status,
        detail: error.why,
        next: error.next,
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let problem = problem(self.0);
        let status = StatusCode::from_u16(problem.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        (status, kind, Json(problem)).into_response()
    }
}

/// A request that has not the expected form.
pub fn unreadable(status: StatusCode, why: String) -> Fault {
    let kind = match status {
        StatusCode::PAYLOAD_TOO_LARGE => Kind::TooLarge,
        _ => Kind::Invalid,
    };
    Fault(Error::new(kind, "the request cannot be read").because(why))
}

/// The body of a request as it was sent, in a file without a name below `dir`: a large one is never in memory. It may take
/// long to arrive, but not without any progress.
pub async fn spooled(request: Request, dir: &FilePath, largest: u64) -> Result<File, Fault> {
    let file = tempfile::tempfile_in(dir).map_err(|error| not_spooled(&error))?;
    let chunks = request.into_body().into_data_stream();
    let mut file = written(chunks, file, largest, BODY).await?;
    file.rewind().map_err(|error| not_spooled(&error))?;
    Ok(file)
}

fn not_spooled(error: &io::Error) -> Fault {
    let what = "the request cannot be kept on disk while it arrives";
    Fault(Error::new(Kind::Unavailable, what).because(error))
}

/// Writes all chunks of a body, unless the next one takes longer than `idle`.
async fn written(
    mut chunks: impl Stream<Item = Result<Bytes, axum::Error>> + Unpin,
    mut file: File,
    largest: u64,
    idle: Duration,
) -> Result<File, Fault> {
    let mut bytes = 0;
    loop {
        let chunk = match tokio::time::timeout(idle, chunks.next()).await {
            Ok(Some(Ok(chunk))) => chunk,
            Ok(Some(Err(error))) => {
                return Err(unreadable(StatusCode::BAD_REQUEST, error.to_string()));
            }
            Ok(None) => return Ok(file),
            Err(_) => {
                let what = format!("no data arrived for {} s", idle.as_secs());
                return Err(Error::new(Kind::TooSlow, what).into());
            }
        };
        bytes += chunk.len() as u64;
        if bytes > largest {
            let why = format!("it has more than {largest} bytes");
            return Err(unreadable(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        let written = blocking(move || file.write_all(&chunk).map(|()| file)).await;
        file = written.map_err(|error| not_spooled(&error))?;
    }
}

/// The JSON body of a request.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Self, Fault> {
        let read = tokio::time::timeout(BODY, Json::from_request(request, state));
        let Ok(read) = read.await else {
            let what = format!("the request did not arrive within {} s", BODY.as_secs());
            return Err(Error::new(Kind::TooSlow, what).into());
        };
        let read = read.map_err(|why: JsonRejection| unreadable(why.status(), why.body_text()));
        Ok(Self(read?.0))
    }
}

pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Fault> {
        let query = extract::Query::from_request_parts(parts, state).await;
        let query = query.map_err(|why: QueryRejection| unreadable(why.status(), why.body_text()));
        Ok(Self(query?.0))
    }
}

/// The op of a change. If the request is sent again with the same op, the change is made once.
#[derive(Deserialize)]
pub struct Under {
    #[serde(default)]
    pub op: Option<OpId>,
}

pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Fault> {
        let path = extract::Path::from_request_parts(parts, state).await;
        let path = path.map_err(|why: PathRejection| unreadable(why.status(), why.body_text()));
        Ok(Self(path?.0))
    }
}

/// The JSON body of a response.
pub struct JsonBody<T>(pub T);

impl<T: Serialize> IntoResponse for JsonBody<T> {
    fn into_response(self) -> Response {
        Json(self.0).into_response()
    }
}

/// Completes the work even if the client disconnects.
pub async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = error::Result<T>> + Send + 'static,
) -> error::Result<T> {
    match spawn("request", work).await {
        Ok(Ok(done)) => done,
        Ok(Err(Died)) | Err(_) => Err(died().0),
    }
}

/// The handler of the request panicked.
pub fn died() -> Fault {
    let error = Error::new(Kind::Internal, "the request could not be carried out");
    Fault(error.next("check whether it was done before you retry; see the daemon's log"))
}

pub async fn no_such_path() -> Fault {
    Fault(Error::new(Kind::NotFound, "this path does not exist"))
}

pub async fn no_such_method() -> Fault {
    let what = "this path does not support that method";
    Fault(Error::new(Kind::WrongMethod, what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use std::io::Read as _;

    #[tokio::test]
    async fn a_body_whose_sender_stalls_is_given_up() {
        let idle = Duration::from_millis(20);
        let chunk = |text: &'static str| Ok(Bytes::from_static(text.as_bytes()));
        let whole = || stream::iter([chunk("a "), chunk("body")]);
        let file = || tempfile::tempfile().unwrap();
        let mut read = written(whole(), file(), 6, idle).await.ok().unwrap();
        let mut text = String::new();
        read.rewind().unwrap();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text, "a body");
        let Fault(error) = written(whole(), file(), 5, idle).await.err().unwrap();
        assert_eq!(error.kind, Kind::TooLarge);
        let stalls = stream::iter([chunk("a ")]).chain(stream::pending());
        let Fault(error) = written(stalls, file(), 6, idle).await.err().unwrap();
        assert_eq!(error.kind, Kind::TooSlow);
    }
}
