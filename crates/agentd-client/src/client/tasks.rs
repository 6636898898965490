//! Requests about background tasks.

use super::{Client, escaped, of, with_query};
use crate::api::{Output, OutputQuery, ProcessLog, Tasks};
use crate::error::Error;
use std::fmt;

impl Client {
    pub async fn tasks(&self, name: &str) -> Result<Tasks, Error> {
        self.get(&of(name, "/tasks")).await
    }

    /// The tasks of all agents.
    pub async fn all_tasks(&self) -> Result<Tasks, Error> {
        self.get("/v1/tasks").await
    }

    /// Ends one task, or all of an agent's.
    pub async fn stop_tasks(&self, which: &str) -> Result<Tasks, Error> {
        let path = format!("/v1/tasks/{}/stop", escaped(which));
        self.post(&path, &()).await
    }

    /// What the agent's process and its predecessor have written to standard error.
    pub async fn process_log(&self, name: &str) -> Result<ProcessLog, Error> {
        self.get(&of(name, "/process/log")).await
    }

    /// The output of a task, by its id or the beginning of its id.
    pub async fn output(
        &self,
        name: &str,
        task: impl fmt::Display,
        query: &OutputQuery,
    ) -> Result<Output, Error> {
        let task = task.to_string();
        let path = of(name, &format!("/tasks/{}/output", escaped(&task)));
        self.get(&with_query(&path, query)?).await
    }
}
