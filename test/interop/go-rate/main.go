// Command rate is a worker of Go asynq whose tasks take a token of asynq's x/rate semaphore: v0.19 is the newest asynq that the
// module proxy has together with it.
//
// On stdin: "try <id>" enqueues a task of that id and runs it, "end <id>" lets one that holds a token release it and end. It tells
// each attempt as {"id": …, "acquired": …} on stdout. The end of stdin ends the process.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"log"
	"os"
	"strings"
	"sync"

	"github.com/hibiken/asynq"
	"github.com/hibiken/asynq/x/rate"
)

func main() {
	address := flag.String("redis", "127.0.0.1:6379", "host:port of the Redis server")
	scope := flag.String("scope", "scope", "name of the semaphore")
	tokens := flag.Int("tokens", 1, "tokens of the semaphore")
	flag.Parse()

	redis := asynq.RedisClientOpt{Addr: *address}
	semaphore := rate.NewSemaphore(redis, *scope, *tokens)
	var gates sync.Map // id to a channel that is closed when the task may end
	gate := func(id string) chan struct{} {
		made, _ := gates.LoadOrStore(id, make(chan struct{}))
		return made.(chan struct{})
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)

	handler := asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		acquired, err := semaphore.Acquire(ctx)
		if err != nil {
			return err
		}
		mu.Lock()
		err = out.Encode(map[string]any{"id": id, "acquired": acquired})
		mu.Unlock()
		if err != nil || !acquired {
			return err
		}
		<-gate(id)
		return semaphore.Release(ctx)
	})
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency: 10,
		LogLevel:    asynq.ErrorLevel,
	})
	if err := server.Start(handler); err != nil {
		log.Fatalf("rate: starting the server: %v", err)
	}
	client := asynq.NewClient(redis)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		do, id, _ := strings.Cut(lines.Text(), " ")
		if do == "end" {
			close(gate(id))
		} else if _, err := client.Enqueue(asynq.NewTask("t", nil), asynq.TaskID(id)); err != nil {
			log.Fatalf("rate: enqueuing: %v", err)
		}
	}
}
