//! Extractors, responses and problems.

use crate::problem;
use crate::spawn::{Died, spawn};
use agentd_client::{Kind, Problem};
use agentd_core::id::OpId;
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{self, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Time limit for receiving the body of a request.
const BODY: Duration = Duration::from_secs(30);

/// A problem as a response.
pub struct Fault(pub Problem);

pub type Answer<T> = Result<JsonBody<T>, Fault>;

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        (status, kind, Json(self.0)).into_response()
    }
}

macro_rules! invalid {
    ($($rejection:ty),*) => {
        $(impl From<$rejection> for Fault {
            fn from(rejection: $rejection) -> Self {
                let kind = match rejection.status() {
                    StatusCode::PAYLOAD_TOO_LARGE => Kind::TooLarge,
                    _ => Kind::Invalid,
                };
                let problem = Problem::new(kind, "the request cannot be read");
                Self(problem.because(rejection.body_text()))
            }
        })*
    };
}

invalid!(JsonRejection, QueryRejection, PathRejection);

/// The JSON body of a request.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Self, Fault> {
        let read = tokio::time::timeout(BODY, Json::from_request(request, state));
        let Ok(read) = read.await else {
            let what = format!("the request did not arrive within {} s", BODY.as_secs());
            let mut problem = Problem::new(Kind::Invalid, what);
            problem.status = 408;
            return Err(Fault(problem));
        };
        Ok(Self(read?.0))
    }
}

pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Fault> {
        let query = extract::Query::from_request_parts(parts, state).await?;
        Ok(Self(query.0))
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
        let path = extract::Path::from_request_parts(parts, state).await?;
        Ok(Self(path.0))
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
    work: impl Future<Output = problem::Result<T>> + Send + 'static,
) -> problem::Result<T> {
    match spawn("request", work).await {
        Ok(Ok(done)) => done,
        Ok(Err(Died)) | Err(_) => Err(died().0),
    }
}

/// The handler of the request panicked.
pub fn died() -> Fault {
    let problem = Problem::new(Kind::Internal, "the request could not be carried out");
    Fault(problem.next("check whether it was done before you retry; see the daemon's log"))
}

pub async fn no_such_path() -> Fault {
    Fault(Problem::new(Kind::NotFound, "this path does not exist"))
}

pub async fn no_such_method() -> Fault {
    let mut problem = Problem::new(Kind::Invalid, "this path does not support that method");
    problem.status = 405;
    Fault(problem)
}
