complete --keep-order --exclusive --command agentd --arguments "(AGENTD_COMPLETE=fish agentd -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"
