#!/bin/bash
# A whole agent: prompts end with a NUL on stdin, and each answer ends with a NUL on stdout.
trap 'stopped=yes' INT
turns=0
while IFS= read -r -d '' prompt; do
  turns=$((turns + 1)) stopped=no
  echo "Turn $turns. You said: $prompt"
  [ "$stopped" = yes ] && echo "(interrupted)"
  printf '\0'
done
