//! The share of connections that streams have. A stream may stay open for days: it gives the place of its connection back, so
//! that short requests always have room.

use super::respond::Fault;
use crate::error::{Error, Kind};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The place of one connection, and the places for streams of its socket.
#[derive(Clone)]
pub struct Share {
    /// None once a stream has begun on the connection.
    place: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
    streams: Arc<Semaphore>,
}

/// The place of a stream, for as long as it is sent.
pub struct StreamPlace {
    _permit: OwnedSemaphorePermit,
}

impl Share {
    pub fn new(place: Option<OwnedSemaphorePermit>, streams: Arc<Semaphore>) -> Self {
        Self {
            place: Arc::new(Mutex::new(place)),
            streams,
        }
    }

    /// Takes the place of a stream, and gives back that of a short request. The connection must not serve another request
    /// after the stream.
    pub fn begin_stream(&self) -> Result<StreamPlace, Fault> {
        let Ok(permit) = Arc::clone(&self.streams).try_acquire_owned() else {
            tracing::warn!("stream refused: limit of open streams reached");
            let what = "too many streams are open";
            let error = Error::new(Kind::Unavailable, what);
            return Err(error
                .next("close other followers, or try again later")
                .into());
        };
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        *place = None;
        Ok(StreamPlace { _permit: permit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: open streams took the places of short requests.
    #[test]
    fn a_stream_gives_back_the_place_of_its_connection() {
        let all = Arc::new(Semaphore::new(1));
        let streams = Arc::new(Semaphore::new(1));
        let place = Arc::clone(&all).try_acquire_owned().unwrap();
        let share = Share::new(Some(place), Arc::clone(&streams));
        assert_eq!(
            (all.available_permits(), streams.available_permits()),
            (0, 1)
        );
        let stream = share.begin_stream().ok().unwrap();
        assert_eq!(
            (all.available_permits(), streams.available_permits()),
            (1, 0)
        );
        assert!(share.begin_stream().is_err());
        drop(stream);
        assert_eq!(streams.available_permits(), 1);
    }
}
