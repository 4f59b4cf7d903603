package main

import (
	"context"
	"encoding/hex"
	"errors"
	"sort"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// A capturedTask is one task as the Go client, or a Go server, left it in Redis, and as the Go inspector reads it.
type capturedTask struct {
	Name string
	// All keys of the database, sorted.
	Keys []string
	// The value of the hash field msg, in hexadecimal.
	Msg       string
	State     string
	Group     string `json:",omitempty"`
	UniqueKey string `json:",omitempty"`
	// What a unique key was made of; "nil" and "" differ.
	Payload *string
	Info    taskInfo
}

// taskInfo is asynq.TaskInfo; durations and times in seconds, 0 for zero time.
type taskInfo struct {
	ID, Queue, Type, Payload        string
	Headers                         map[string]string
	MaxRetry, Retried               int
	LastErr, Group                  string
	LastFailedAt, Timeout, Deadline int64
	Retention, CompletedAt          int64
}

var farAway = time.Date(2100, 1, 2, 3, 4, 5, 0, time.UTC)

type taskCase struct {
	name    string
	task    *asynq.Task
	options []asynq.Option
}

func enqueueCases() []taskCase {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	headers := map[string]string{"traceparent": "00-4bf92f35-00f067aa-01", "empty": "", "": "no key", "__proto__": "é 😀"}
	options := func(options ...asynq.Option) []asynq.Option { return append(options, asynq.TaskID("id1")) }
	return []taskCase{
		{"defaults, no payload", asynq.NewTask("t", nil), options()},
		{"JSON payload", asynq.NewTask("email:send", []byte(`{"a":1}`)), options()},
		{"binary payload", asynq.NewTask("t", all), options()},
		{"headers", asynq.NewTaskWithHeaders("t", []byte("p"), headers), options()},
		{"every option", asynq.NewTask("email:send", []byte(`{"a":1}`)), options(asynq.Queue("critical"), asynq.MaxRetry(3),
			asynq.Timeout(90*time.Second), asynq.Deadline(farAway), asynq.Retention(time.Hour), asynq.Unique(time.Hour))},
		{"nothing but zeros", asynq.NewTask("t", nil), options(asynq.MaxRetry(0), asynq.Timeout(500*time.Millisecond))},
		{"deadline before 1970", asynq.NewTask("t", nil), options(asynq.Deadline(time.Unix(-100, 0)))},
		{"unique, nil payload", asynq.NewTask("t", nil), options(asynq.Unique(time.Hour))},
		{"unique, empty payload", asynq.NewTask("t", []byte{}), options(asynq.Unique(time.Hour))},
		{"unique, JSON payload", asynq.NewTask("email:send", []byte(`{"a":1}`)), options(asynq.Unique(time.Hour))},
		{"scheduled", asynq.NewTask("t", nil), options(asynq.ProcessAt(farAway))},
		{"group", asynq.NewTask("t", nil), options(asynq.Group("g:1"))},
		{"unique group", asynq.NewTask("t", []byte("p")), options(asynq.Group("é"), asynq.Unique(time.Hour))},
		{"scheduled group", asynq.NewTask("t", nil), options(asynq.Group("g1"), asynq.ProcessAt(farAway))},
		{"odd names", asynq.NewTask("a:b {c} 😀", []byte("p")), options(asynq.Queue(" q:{é} }"), asynq.Unique(time.Hour))},
		{"queue that begins with a brace", asynq.NewTask("t", nil), options(asynq.Queue("}{"))},
		{"long texts", asynq.NewTask(strings.Repeat("é", 100), []byte(strings.Repeat("x", 300))), options()},
	}
}

func captureTasks(address string, rdb *redis.Client) (captured []capturedTask) {
	client := asynq.NewClient(asynq.RedisClientOpt{Addr: address})
	defer client.Close()
	for _, c := range enqueueCases() {
		check(rdb.FlushAll(ctx).Err())
		client.Close()
		client = asynq.NewClient(asynq.RedisClientOpt{Addr: address})
		info, err := client.Enqueue(c.task, c.options...)
		check(err)
		captured = append(captured, capture(c.name, c.task, info.Queue, address, rdb))
	}
	return append(captured, captureProcessed(address, rdb)...)
}

// captureProcessed lets a Go server run tasks that fail, are given up and are retained.
func captureProcessed(address string, rdb *redis.Client) (captured []capturedTask) {
	handlers := map[string]func() error{
		"retry":     func() error { return errors.New("boom: é\n" + strings.Repeat("x", 200)) },
		"archived":  func() error { return asynq.SkipRetry },
		"completed": func() error { return nil },
	}
	for _, state := range []string{"retry", "archived", "completed"} {
		check(rdb.FlushAll(ctx).Err())
		client := asynq.NewClient(asynq.RedisClientOpt{Addr: address})
		task := asynq.NewTaskWithHeaders(state, []byte("p"), map[string]string{"k": "v"})
		_, err := client.Enqueue(task, asynq.TaskID("id1"), asynq.Retention(time.Hour))
		check(err)
		client.Close()
		server := asynq.NewServer(asynq.RedisClientOpt{Addr: address}, asynq.Config{LogLevel: asynq.FatalLevel})
		check(server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return handlers[state]() })))
		until(func() bool { return rdb.HGet(ctx, "asynq:{default}:t:id1", "state").Val() == state })
		server.Shutdown()
		captured = append(captured, capture("after a server: "+state, task, "default", address, rdb))
	}
	return captured
}

func capture(name string, task *asynq.Task, queue, address string, rdb *redis.Client) capturedTask {
	keys := rdb.Keys(ctx, "*").Val()
	sort.Strings(keys)
	fields := rdb.HGetAll(ctx, "asynq:{"+queue+"}:t:id1").Val()
	var payload *string
	if task.Payload() != nil {
		text := hex.EncodeToString(task.Payload())
		payload = &text
	}
	return capturedTask{
		Name: name, Keys: keys, Msg: hex.EncodeToString([]byte(fields["msg"])), State: fields["state"],
		Group: fields["group"], UniqueKey: fields["unique_key"], Payload: payload, Info: inspect(address, queue),
	}
}

func inspect(address, queue string) taskInfo {
	inspector := asynq.NewInspector(asynq.RedisClientOpt{Addr: address})
	defer inspector.Close()
	info, err := inspector.GetTaskInfo(queue, "id1")
	check(err)
	return taskInfo{
		ID: info.ID, Queue: info.Queue, Type: info.Type, Payload: hex.EncodeToString(info.Payload), Headers: info.Headers,
		MaxRetry: info.MaxRetry, Retried: info.Retried, LastErr: info.LastErr, Group: info.Group,
		LastFailedAt: unix(info.LastFailedAt), Timeout: int64(info.Timeout.Seconds()), Deadline: unix(info.Deadline),
		Retention: int64(info.Retention.Seconds()), CompletedAt: unix(info.CompletedAt),
	}
}

func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
