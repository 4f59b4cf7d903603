package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

// step is what one attempt of a task does.
type step struct {
	// ok, fail, skipRetry, revoke, panic, hold (until released, then ok), hang (until the context is over) or forward
	Do string `json:"do"`
	// Text of the failure, of what skipRetry and revoke wrap, or of the panic.
	Error string `json:"error"`
	// Written by the result writer before the attempt ends well.
	Result []byte `json:"result"`
	// Milliseconds of work before it does.
	Ms int64 `json:"ms"`
	// Queue of the task that forward enqueues, with the type, the payload and the trace of its own.
	To string `json:"to"`
}

type serveArgs struct {
	Name        string         `json:"name"`
	Queues      map[string]int `json:"queues"`
	Concurrency int            `json:"concurrency"`
	Strict      bool           `json:"strictPriority"`
	// Poll interval of an idle server and of the forwarder; 0 is asynq's default.
	TaskCheckMs    int64 `json:"taskCheckInterval"`
	DelayedCheckMs int64 `json:"delayedTaskCheckInterval"`
	RetryDelayMs   int64 `json:"retryDelay"`
	ShutdownMs     int64 `json:"shutdownTimeout"`
	// Type of the tasks that groups become; empty is no aggregator. Periods of 0 are asynq's defaults.
	AggregateTo  string `json:"aggregateTo"`
	GroupGraceMs int64  `json:"groupGracePeriod"`
	GroupDelayMs int64  `json:"groupMaxDelay"`
	GroupMaxSize int    `json:"groupMaxSize"`
	// By pattern of the task type. The attempt after n failures does step n, or the last one.
	Behaviours map[string][]step `json:"behaviours"`
}

type nameArgs struct {
	Name string `json:"name"`
}

// servers are the asynq servers of this process, by the name the driver gave them, and the attempts they hold.
type servers struct {
	redis   asynq.RedisConnOpt
	client  *asynq.Client
	out     *output
	mu      sync.Mutex
	running map[string]*asynq.Server
	held    map[string]chan struct{}
}

func newServers(redis asynq.RedisConnOpt, client *asynq.Client, out *output) *servers {
	return &servers{redis: redis, client: client, out: out, running: map[string]*asynq.Server{}, held: map[string]chan struct{}{}}
}

func addServerOperations(ops operations, s *servers) {
	ops["serve"] = action(s.start)
	ops["stop"] = action(s.named(func(server *asynq.Server) { server.Stop() }))
	ops["shutdown"] = action(s.named(func(server *asynq.Server) { server.Shutdown() }))
	ops["release"] = action(func(args taskArgs) error {
		gate := s.gate(args.ID)
		select {
		case <-gate:
		default:
			close(gate)
		}
		return nil
	})
}

func (s *servers) start(args serveArgs) error {
	mux := asynq.NewServeMux()
	for pattern, steps := range args.Behaviours {
		mux.HandleFunc(pattern, s.handler(args.Name, steps))
	}
	config := asynq.Config{
		Concurrency:              args.Concurrency,
		Queues:                   args.Queues,
		StrictPriority:           args.Strict,
		TaskCheckInterval:        milliseconds(args.TaskCheckMs),
		DelayedTaskCheckInterval: milliseconds(args.DelayedCheckMs),
		ShutdownTimeout:          milliseconds(args.ShutdownMs),
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return milliseconds(args.RetryDelayMs) },
		ErrorHandler:             asynq.ErrorHandlerFunc(s.reportError(args.Name)),
		LogLevel:                 asynq.ErrorLevel,
		GroupGracePeriod:         milliseconds(args.GroupGraceMs),
		GroupMaxDelay:            milliseconds(args.GroupDelayMs),
		GroupMaxSize:             args.GroupMaxSize,
	}
	if args.AggregateTo != "" {
		config.GroupAggregator = asynq.GroupAggregatorFunc(joinPayloads(args.AggregateTo))
	}
	server := asynq.NewServer(s.redis, config)
	if err := server.Start(mux); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[args.Name] = server
	return nil
}

// joinPayloads makes one task of the tasks of a group, with their payloads line by line.
func joinPayloads(typename string) func(string, []*asynq.Task) *asynq.Task {
	return func(_ string, tasks []*asynq.Task) *asynq.Task {
		payloads := make([][]byte, len(tasks))
		for i, task := range tasks {
			payloads[i] = task.Payload()
		}
		return asynq.NewTask(typename, bytes.Join(payloads, []byte("\n")))
	}
}

func (s *servers) named(do func(*asynq.Server)) func(nameArgs) error {
	return func(args nameArgs) error {
		s.mu.Lock()
		server, known := s.running[args.Name]
		s.mu.Unlock()
		if !known {
			return fmt.Errorf("no server is called %q", args.Name)
		}
		do(server)
		return nil
	}
}

// gate is what a held attempt of the task waits for; it may be opened before the attempt begins.
func (s *servers) gate(id string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate, known := s.held[id]
	if !known {
		gate = make(chan struct{})
		s.held[id] = gate
	}
	return gate
}

func (s *servers) handler(server string, steps []step) func(context.Context, *asynq.Task) error {
	return func(ctx context.Context, task *asynq.Task) error {
		event := describeAttempt(ctx, server, task)
		s.out.event("start", event)
		retried, _ := asynq.GetRetryCount(ctx)
		err := s.perform(ctx, task, event["id"].(string), steps[min(retried, len(steps)-1)])
		end := map[string]any{"server": server, "id": event["id"], "at": unixMilli(time.Now())}
		if err != nil {
			end["error"] = err.Error()
		}
		s.out.event("end", end)
		return err
	}
}

func describeAttempt(ctx context.Context, server string, task *asynq.Task) map[string]any {
	id, _ := asynq.GetTaskID(ctx)
	queue, _ := asynq.GetQueueName(ctx)
	retried, _ := asynq.GetRetryCount(ctx)
	maxRetry, _ := asynq.GetMaxRetry(ctx)
	deadline, _ := ctx.Deadline()
	return map[string]any{
		"server": server, "id": id, "type": task.Type(), "queue": queue, "payload": task.Payload(), "headers": task.Headers(),
		"retried": retried, "maxRetry": maxRetry, "deadline": unixMilli(deadline), "at": unixMilli(time.Now()),
	}
}

func (s *servers) perform(ctx context.Context, task *asynq.Task, id string, what step) error {
	time.Sleep(milliseconds(what.Ms))
	switch what.Do {
	case "ok":
		return writeResult(task, what.Result)
	case "hold":
		select {
		case <-s.gate(id):
			return writeResult(task, what.Result)
		case <-ctx.Done():
			return ctx.Err()
		}
	case "hang":
		<-ctx.Done()
		return ctx.Err()
	case "forward":
		return s.forward(task, what.To)
	case "fail":
		return errors.New(what.Error)
	case "skipRetry":
		return fmt.Errorf("%s: %w", what.Error, asynq.SkipRetry)
	case "revoke":
		return fmt.Errorf("%s: %w", what.Error, asynq.RevokeTask)
	case "panic":
		panic(what.Error)
	default:
		return fmt.Errorf("unknown step %q: %w", what.Do, asynq.SkipRetry)
	}
}

// forward enqueues a task within the trace of its own, as a service that is traced by W3C's rules does: with the id of a span of its own.
func (s *servers) forward(task *asynq.Task, queue string) error {
	headers := maps.Clone(task.Headers())
	parts := strings.Split(headers["traceparent"], "-")
	if len(parts) != 4 {
		return fmt.Errorf("no traceparent among the headers %v: %w", headers, asynq.SkipRetry)
	}
	parts[2] = "00f067aa0ba902b7"
	headers["traceparent"] = strings.Join(parts, "-")
	_, err := s.client.Enqueue(asynq.NewTaskWithHeaders(task.Type(), task.Payload(), headers), asynq.Queue(queue))
	return err
}

func writeResult(task *asynq.Task, result []byte) error {
	if result == nil {
		return nil
	}
	_, err := task.ResultWriter().Write(result)
	return err
}

// reportError tells of every failed attempt, those included that never reached a handler or outlived their context.
func (s *servers) reportError(server string) func(context.Context, *asynq.Task, error) {
	return func(ctx context.Context, _ *asynq.Task, err error) {
		id, _ := asynq.GetTaskID(ctx)
		s.out.event("error", map[string]any{"server": server, "id": id, "error": err.Error()})
	}
}
