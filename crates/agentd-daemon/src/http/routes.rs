//! Every route, with the callers that may use it. `Routes::route` requires an [`Access`], so no route is without one.

use super::access::{self, Access};
use super::{
    agents, backups, bindings, conversations, daemon, events, files, hooks, mcp, prompts, queue,
    schedules, search, secrets, tasks, trust, usage, verbs,
};
use crate::daemon::Daemon;
use agentd_failpoint as failpoint;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post, put};
use std::sync::Arc;

struct Routes {
    daemon: Arc<Daemon>,
    router: Router<Arc<Daemon>>,
}

impl Routes {
    fn route(mut self, access: Access, path: &str, handler: MethodRouter<Arc<Daemon>>) -> Self {
        let state = (Arc::clone(&self.daemon), access);
        let name: Arc<str> = failpoint_name(path).into();
        let handler = handler
            .route_layer(from_fn_with_state(state, access::check))
            .route_layer(from_fn_with_state(name, failpoints));
        self.router = self.router.route(path, handler);
        self
    }
}

/// A route whose requests may have attachments.
fn with_files(handler: MethodRouter<Arc<Daemon>>) -> MethodRouter<Arc<Daemon>> {
    handler.route_layer(from_fn(super::with_files))
}

/// Failpoints: before a request is handled and before it is answered.
async fn failpoints(State(name): State<Arc<str>>, request: Request, next: Next) -> Response {
    failpoint::hit_of("on", "request", &name);
    let response = next.run(request).await;
    failpoint::hit_of("before", "answer", &name);
    response
}

/// The name of a route in failpoints: the segments of its path after the version and the agent.
fn failpoint_name(path: &str) -> String {
    let path = path.trim_start_matches("/v1/");
    let path = path.strip_prefix("agents/{name}/").unwrap_or(path);
    let segments = path.split('/').map(|part| part.trim_matches(['{', '}']));
    let segments: Vec<&str> = segments.collect();
    match segments.as_slice() {
        ["agents", _] => "agents".to_owned(),
        segments => segments.join("_"),
    }
}

pub fn all(daemon: &Arc<Daemon>) -> Router<Arc<Daemon>> {
    use Access::{All, Change, Look, Message, Order, User};
    let routes = Routes {
        daemon: Arc::clone(daemon),
        router: Router::new(),
    };
    let routes = routes
        .route(All, "/v1/daemon", get(daemon::show))
        .route(Order, "/v1/daemon/stop", post(daemon::stop))
        .route(User, "/v1/daemon/drain", post(daemon::drain))
        .route(User, "/v1/daemon/reload", post(daemon::reload))
        .route(Order, "/v1/agents", get(agents::list))
        .route(Order, "/v1/agents", with_files(post(agents::create)))
        .route(Order, "/v1/import", post(agents::import))
        .route(User, "/v1/backups", post(backups::make))
        .route(User, "/v1/prune", post(verbs::prune))
        .route(Order, "/v1/events", get(events::of_all))
        .route(User, "/v1/search", get(search::search))
        .route(Order, "/v1/usage", get(usage::usage))
        .route(Order, "/v1/tasks", get(tasks::of_all))
        .route(Order, "/v1/schedules", get(schedules::of_all))
        .route(Order, "/v1/tasks/{which}/stop", post(tasks::stop))
        .route(Order, "/v1/hooks", get(hooks::list))
        .route(Order, "/v1/hooks/check", post(hooks::check))
        .route(Change, "/v1/hooks/test", post(hooks::test))
        .route(Order, "/v1/trust", get(trust::show))
        .route(Change, "/v1/trust", post(trust::set))
        .route(User, "/v1/secrets", get(secrets::list))
        .route(User, "/v1/secrets/{secret}", put(secrets::set))
        .route(User, "/v1/secrets/{secret}/remove", post(secrets::remove))
        .route(User, "/v1/bindings", get(bindings::list))
        .route(
            User,
            "/v1/bindings/{address}/unbind",
            post(bindings::unbind),
        )
        .route(
            User,
            "/v1/bindings/{address}/messages",
            post(bindings::message),
        );
    let one = |verb: &str| format!("/v1/agents/{{name}}{verb}");
    let answer = |verb: &str| format!("/approvals/{{approval}}/{verb}");
    let schedule = |verb: &str| one(&format!("/schedules/{{schedule}}/{verb}"));
    let transcript = "/conversations/{which}/transcript";
    let routes = routes
        .route(Look, &one(""), get(agents::show))
        .route(Look, &one("/spec"), get(agents::spec))
        .route(Look, &one("/held"), get(agents::held))
        .route(User, &one("/process/log"), get(agents::process_log))
        .route(Look, &one("/context"), get(agents::context))
        .route(Look, &one("/conversations"), get(conversations::list))
        .route(
            Look,
            &one("/conversations/{which}"),
            get(conversations::show),
        )
        .route(Look, &one(transcript), get(conversations::transcript))
        .route(Look, &one("/turns/{turn}"), get(conversations::turn))
        .route(Look, &one("/queue"), get(queue::list))
        .route(Look, &one("/schedules"), get(schedules::of_agent))
        .route(Look, &one("/tasks"), get(tasks::of_agent))
        .route(Look, &one("/tasks/{task}/output"), get(tasks::output))
        .route(Look, &one("/export"), get(agents::export))
        .route(Look, &one("/events"), get(events::of_agent))
        .route(User, &one("/commands"), post(verbs::run_command))
        .route(User, &one("/bindings"), post(bindings::bind))
        .route(Look, &one("/mcp"), get(mcp::list))
        .route(User, &one("/mcp/lend"), post(mcp::lend))
        .route(User, &one("/mcp/{server}/tools"), post(mcp::tools))
        .route(User, &one("/mcp/{server}/call"), post(mcp::call))
        .route(User, &one("/mcp/{server}/read"), post(mcp::read))
        .route(User, &one("/mcp/{server}/prompt"), post(mcp::prompt))
        .route(Message, &one("/prompts"), with_files(post(prompts::send)))
        .route(Message, &one("/prompts/{prompt}"), get(prompts::answer));
    let routes = routes
        .route(Order, &one("/start"), post(verbs::start))
        .route(Order, &one("/stop"), post(verbs::stop))
        .route(Order, &one("/restart"), post(verbs::restart))
        .route(Order, &one("/interrupt"), post(verbs::interrupt))
        .route(Order, &one("/continue"), post(verbs::continue_turn))
        .route(Order, &one("/env"), post(verbs::merge_env))
        .route(Order, &one("/checkpoint"), post(verbs::checkpoint))
        .route(Change, &one("/reset"), post(verbs::reset))
        .route(Change, &one("/rewind"), post(verbs::rewind))
        .route(Change, &one("/fork"), with_files(post(verbs::fork)))
        .route(User, &one("/files"), get(files::list))
        .route(User, &one("/files/restore"), post(files::restore))
        .route(User, &one("/files/undo"), post(files::undo))
        .route(User, &one("/diff"), post(files::diff))
        .route(Change, &one("/compact"), post(verbs::compact))
        .route(Change, &one("/queue/edit"), post(queue::edit))
        .route(Change, &one("/queue/move"), post(queue::move_prompt))
        .route(Change, &one("/queue/remove"), post(queue::remove))
        .route(Change, &one("/schedules"), post(schedules::add))
        .route(Change, &schedule("pause"), post(schedules::pause))
        .route(Change, &schedule("resume"), post(schedules::resume))
        .route(Change, &schedule("run"), post(schedules::run))
        .route(Change, &schedule("remove"), post(schedules::remove))
        .route(Change, &one("/spec"), put(agents::set_spec))
        .route(Change, &one("/rename"), post(verbs::rename))
        .route(Change, &one("/archive"), post(verbs::archive))
        .route(Change, &one("/restore"), post(verbs::restore))
        .route(Change, &one("/purge"), post(verbs::purge))
        .route(Change, &one(&answer("approve")), post(verbs::approve))
        .route(Change, &one(&answer("deny")), post(verbs::deny))
        .route(Change, &one(&answer("answer")), post(verbs::answer));
    routes.router
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_names_its_failpoints() {
        for (path, name) in [
            ("/v1/daemon", "daemon"),
            ("/v1/daemon/stop", "daemon_stop"),
            ("/v1/agents", "agents"),
            ("/v1/agents/{name}", "agents"),
            ("/v1/agents/{name}/prompts", "prompts"),
            ("/v1/agents/{name}/prompts/{prompt}", "prompts_prompt"),
            ("/v1/tasks/{which}/stop", "tasks_which_stop"),
        ] {
            assert_eq!(failpoint_name(path), name);
        }
    }
}
