//! Writes a spec as a file: the keys that differ from the default, in the order of the fields.

use super::yaml::{Fields, Out, leaf};
use super::{
    AgentSpec, AutoReset, Budget, Command, Limits, McpServer, Notify, Rule, Subagent, file,
};

impl AgentSpec {
    /// Writes the file that [`super::parse`] reads as this spec: `parse(to_markdown(s)) == s`, if
    /// `s` is valid, its prompt has no trailing space, and the file is not too large.
    pub fn to_markdown(&self) -> String {
        file::join(&spec(self).to_yaml(), &self.system)
    }
}

// The structs are destructured by name, so that a new field cannot be forgotten here.

fn spec(spec: &AgentSpec) -> Fields {
    let AgentSpec {
        description,
        title,
        provider,
        model,
        runtime,
        command: program,
        cwd,
        tools,
        server_tools,
        permissions,
        approval,
        sandbox,
        network,
        writable,
        readable,
        pass,
        mcp,
        agents,
        limits: bounds,
        hooks,
        on_crash,
        idle_ms,
        restart,
        env,
        pass_env,
        temperature,
        reasoning,
        verbosity,
        fast,
        compact_at,
        auto_reset: resets,
        notify: notified,
        instructions,
        system: _,
    } = spec;
    let default = AgentSpec::default();
    let mut out = Fields::default();
    out.put("description", description, &default.description);
    out.put("title", title, &default.title);
    out.put("provider", provider, &default.provider);
    out.put("model", model, &default.model);
    out.put("runtime", runtime, &default.runtime);
    if let Some(program) = program {
        out.push("command", Out::Map(command(program)));
    }
    out.put("cwd", cwd, &default.cwd);
    out.put("tools", tools, &default.tools);
    out.put("server_tools", server_tools, &default.server_tools);
    if !permissions.is_empty() {
        let rules = permissions.iter().map(|item| Out::Map(rule(item)));
        out.push("permissions", Out::List(rules.collect()));
    }
    out.put("approval", approval, &default.approval);
    out.put("sandbox", sandbox, &default.sandbox);
    out.put("network", network, &default.network);
    out.put("writable", writable, &default.writable);
    out.put("readable", readable, &default.readable);
    out.put("pass", pass, &default.pass);
    let mut servers = Fields::default();
    for (name, item) in mcp {
        servers.push(name, Out::Map(server(item)));
    }
    out.put_map("mcp", servers);
    let mut kinds = Fields::default();
    for (name, item) in agents {
        kinds.push(name, Out::Map(subagent(item)));
    }
    out.put_map("agents", kinds);
    out.put_map("limits", limits(bounds));
    out.put("hooks", hooks, &default.hooks);
    out.put("on_crash", on_crash, &default.on_crash);
    out.put("idle_ms", idle_ms, &default.idle_ms);
    out.put("restart", restart, &default.restart);
    out.put("env", env, &default.env);
    out.put("pass_env", pass_env, &default.pass_env);
    out.put("temperature", temperature, &default.temperature);
    out.put("reasoning", reasoning, &default.reasoning);
    out.put("verbosity", verbosity, &default.verbosity);
    out.put("fast", fast, &default.fast);
    out.put("compact_at", compact_at, &default.compact_at);
    out.put_map("auto_reset", auto_reset(resets));
    out.put_map("notify", notify(notified));
    out.put("instructions", instructions, &default.instructions);
    out
}

fn auto_reset(resets: &AutoReset) -> Fields {
    let AutoReset {
        by_tool,
        idle_ms,
        over_tokens,
    } = resets;
    let default = AutoReset::default();
    let mut out = Fields::default();
    out.put("by_tool", by_tool, &default.by_tool);
    out.put("idle_ms", idle_ms, &default.idle_ms);
    out.put("over_tokens", over_tokens, &default.over_tokens);
    out
}

fn notify(notify: &Notify) -> Fields {
    let Notify { on, to } = notify;
    let mut out = Fields::default();
    out.put("on", on, &None);
    out.put("to", to, &None);
    out
}

fn command(command: &Command) -> Fields {
    let Command {
        program,
        args,
        per_turn,
        first_args,
        later_args,
        contract,
        extra_args,
    } = command;
    let mut out = Fields::default();
    out.put("program", program, &String::new());
    out.put("args", args, &Vec::new());
    out.put("per_turn", per_turn, &false);
    out.put("first_args", first_args, &Vec::new());
    out.put("later_args", later_args, &Vec::new());
    out.put("contract", contract, &None);
    out.put("extra_args", extra_args, &Vec::new());
    out
}

fn rule(rule: &Rule) -> Fields {
    let Rule {
        tool,
        pattern,
        decision,
        needs,
    } = rule;
    let mut out = Fields::default();
    out.push("tool", leaf(tool));
    out.put("pattern", pattern, &None);
    out.push("decision", leaf(decision));
    out.put("needs", needs, &Vec::new());
    out
}

fn server(server: &McpServer) -> Fields {
    let McpServer {
        command,
        args,
        env,
        cwd,
        url,
        headers,
        read_only,
        timeout_ms,
    } = server;
    let default = McpServer::default();
    let mut out = Fields::default();
    out.put("command", command, &default.command);
    out.put("args", args, &default.args);
    out.put("env", env, &default.env);
    out.put("cwd", cwd, &default.cwd);
    out.put("url", url, &default.url);
    out.put("headers", headers, &default.headers);
    out.put("read_only", read_only, &default.read_only);
    out.put("timeout_ms", timeout_ms, &default.timeout_ms);
    out
}

fn subagent(subagent: &Subagent) -> Fields {
    let Subagent {
        description,
        provider,
        model,
        tools,
        reasoning,
        budget: bound,
        system,
    } = subagent;
    let default = Subagent::default();
    let mut out = Fields::default();
    out.put("description", description, &default.description);
    out.put("provider", provider, &default.provider);
    out.put("model", model, &default.model);
    out.put("tools", tools, &default.tools);
    out.put("reasoning", reasoning, &default.reasoning);
    out.put_map("budget", budget(bound));
    out.put("system", system, &default.system);
    out
}

fn limits(limits: &Limits) -> Fields {
    let Limits {
        max_iterations,
        max_output_tokens,
        turn,
        conversation,
        day,
        subtree,
        max_tasks,
        max_children,
        max_depth,
        max_queue,
        tool_output_bytes,
        task_output_bytes,
        kept_output_bytes,
        file_history_bytes,
        task_memory_bytes,
        task_processes,
        task_open_files,
        program_calls,
        program_bytes,
        memory_bytes,
        cpu_percent,
    } = limits;
    let default = Limits::default();
    let mut out = Fields::default();
    out.put("max_iterations", max_iterations, &default.max_iterations);
    out.put("max_output_tokens", max_output_tokens, &None);
    out.put_map("turn", budget(turn));
    out.put_map("conversation", budget(conversation));
    out.put_map("day", budget(day));
    out.put_map("subtree", budget(subtree));
    out.put("max_tasks", max_tasks, &default.max_tasks);
    out.put("max_children", max_children, &default.max_children);
    out.put("max_depth", max_depth, &default.max_depth);
    out.put("max_queue", max_queue, &default.max_queue);
    out.put(
        "tool_output_bytes",
        tool_output_bytes,
        &default.tool_output_bytes,
    );
    out.put(
        "task_output_bytes",
        task_output_bytes,
        &default.task_output_bytes,
    );
    out.put("kept_output_bytes", kept_output_bytes, &None);
    out.put("file_history_bytes", file_history_bytes, &None);
    out.put("task_memory_bytes", task_memory_bytes, &None);
    out.put("task_processes", task_processes, &None);
    out.put("task_open_files", task_open_files, &None);
    out.put("program_calls", program_calls, &None);
    out.put("program_bytes", program_bytes, &None);
    out.put("memory_bytes", memory_bytes, &None);
    out.put("cpu_percent", cpu_percent, &None);
    out
}

fn budget(budget: &Budget) -> Fields {
    let Budget {
        tokens,
        usd,
        wall_ms,
    } = budget;
    let mut out = Fields::default();
    out.put("tokens", tokens, &None);
    if usd.is_some() {
        out.push("usd", leaf(&budget.dollars()));
    }
    out.put("wall_ms", wall_ms, &None);
    out
}
