#!/bin/sh
# ask.sh TASK [KEY]: gives a task to an agent of the gateway $ATOLL_URL, by the token
# $ATOLL_TOKEN, and prints its answer. The same KEY is the same run.
set -eu
jq -n --arg task "$1" '{message: $task}' |
	curl -sS --fail-with-body "$ATOLL_URL/api/v1/ai/runs" \
		-H "Authorization: Bearer $ATOLL_TOKEN" -H 'Content-Type: application/json' -H 'Accept: application/json' \
		${2:+-H "Idempotency-Key: $2"} --data-binary @- |
	jq -r .text
