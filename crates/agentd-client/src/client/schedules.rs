//! Requests about schedules.

use super::transport::escaped;
use super::{Client, of};
use crate::api::{AddSchedule, Schedule, Schedules};
use crate::error::Error;

impl Client {
    /// The schedules of an agent.
    pub async fn schedules(&self, name: &str) -> Result<Schedules, Error> {
        self.get(&of(name, "/schedules")).await
    }

    /// The schedules of all agents.
    pub async fn all_schedules(&self) -> Result<Schedules, Error> {
        self.get("/v1/schedules").await
    }

    pub async fn add_schedule(&self, name: &str, add: &AddSchedule) -> Result<Schedule, Error> {
        self.post(&of(name, "/schedules"), add).await
    }

    pub async fn pause_schedule(&self, name: &str, schedule: &str) -> Result<Schedule, Error> {
        self.change_schedule(name, schedule, "pause").await
    }

    pub async fn resume_schedule(&self, name: &str, schedule: &str) -> Result<Schedule, Error> {
        self.change_schedule(name, schedule, "resume").await
    }

    /// Fires it now, outside of its due times.
    pub async fn run_schedule(&self, name: &str, schedule: &str) -> Result<Schedule, Error> {
        self.change_schedule(name, schedule, "run").await
    }

    /// Answered with the schedules that are left.
    pub async fn remove_schedule(&self, name: &str, schedule: &str) -> Result<Schedules, Error> {
        let path = format!("/schedules/{}/remove", escaped(schedule));
        self.post(&of(name, &path), &serde_json::json!({})).await
    }

    async fn change_schedule(
        &self,
        name: &str,
        schedule: &str,
        verb: &str,
    ) -> Result<Schedule, Error> {
        let path = format!("/schedules/{}/{verb}", escaped(schedule));
        self.post(&of(name, &path), &serde_json::json!({})).await
    }
}
