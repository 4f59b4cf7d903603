// Command peer is the Go side of the interop tests: real asynq, driven over stdin and stdout.
//
// It reads one JSON request per line, {"id": 1, "op": "enqueue", "args": {…}}, and answers each with {"id": 1, "ok": …}
// or {"id": 1, "error": {"message": …, "kind": …}}. What servers do is told in between as {"event": …}. Requests run
// concurrently. The end of stdin ends the process, so that it never outlives its driver.
//
// Conventions of the JSON: bytes are base64 (null is Go's nil), durations and times are milliseconds (times since the Unix
// epoch, null is the zero time).
package main

import (
	"flag"
	"log"
	"os"

	"github.com/hibiken/asynq"
)

func main() {
	address := flag.String("redis", "127.0.0.1:6379", "host:port of the Redis server")
	flag.Parse()

	redis := asynq.RedisClientOpt{Addr: *address}
	out := newOutput(os.Stdout)
	client := asynq.NewClient(redis)
	ops := operations{"ping": operation(func(struct{}) (string, error) { return "pong", client.Ping() })}
	addClientOperations(ops, client)
	addServerOperations(ops, newServers(redis, client, out))
	inspector := asynq.NewInspector(redis)
	addInspectorOperations(ops, inspector)
	addOperatorOperations(ops, redis, inspector)
	addSchedulerOperations(ops, inspector)
	addSchedulingOperations(ops, newSchedulers(redis))
	addCronOperations(ops)
	addURIOperations(ops)

	out.event("ready", map[string]any{"pid": os.Getpid()})
	if err := ops.serve(os.Stdin, out); err != nil {
		log.Fatalf("peer: reading requests: %v", err)
	}
}
