package main

import (
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// capturedMonitoring is what a Go server and a Go scheduler publish, and how the Go inspector reads it.
type capturedMonitoring struct {
	Servers   []capturedServer
	Scheduler capturedScheduler
}

type capturedServer struct {
	// Key and value; the value in hexadecimal.
	Key, ServerInfo string
	WorkersKey      string
	// Values of the workers' hash, in hexadecimal, by task id.
	Workers map[string]string
	Read    *asynq.ServerInfo
}

type capturedScheduler struct {
	Key string
	// In the order of the list, in hexadecimal.
	Entries []string
	// The inspector's view; options as text.
	Read []readEntry
	// Members of the history of each entry, in hexadecimal.
	History map[string][]string
	Events  map[string][]*asynq.SchedulerEnqueueEvent
}

type readEntry struct {
	ID, Spec, TaskType, TaskPayload string
	Options                         []string
	Next, Prev                      time.Time
}

func captureMonitoring(address string, rdb *redis.Client) capturedMonitoring {
	check(rdb.FlushAll(ctx).Err())
	inspector := asynq.NewInspector(asynq.RedisClientOpt{Addr: address})
	defer inspector.Close()
	return capturedMonitoring{Servers: captureServers(address, rdb, inspector), Scheduler: captureScheduler(address, rdb, inspector)}
}

func captureServers(address string, rdb *redis.Client, inspector *asynq.Inspector) []capturedServer {
	client := asynq.NewClient(asynq.RedisClientOpt{Addr: address})
	defer client.Close()
	for id, payload := range map[string][]byte{"id1": []byte(`{"a":1}`), "id2": nil} {
		_, err := client.Enqueue(asynq.NewTask("t", payload), asynq.TaskID(id), asynq.Queue("critical"))
		check(err)
	}
	server := asynq.NewServer(asynq.RedisClientOpt{Addr: address}, asynq.Config{
		LogLevel: asynq.FatalLevel, Concurrency: 3, StrictPriority: true, Queues: map[string]int{"critical": 6, "é:{1}": 1},
	})
	release := make(chan struct{})
	check(server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { <-release; return nil })))
	working := func() bool { return len(rdb.Keys(ctx, "asynq:workers:*").Val()) == 1 }
	until(working)
	active := captureServer(rdb, inspector)
	server.Stop()
	until(func() bool { return captureServer(rdb, inspector).Read.Status == "stopped" })
	stopped := captureServer(rdb, inspector)
	close(release)
	server.Shutdown()
	return []capturedServer{active, stopped}
}

func captureServer(rdb *redis.Client, inspector *asynq.Inspector) capturedServer {
	servers, err := inspector.Servers()
	check(err)
	captured := capturedServer{Read: servers[0], Workers: map[string]string{}}
	captured.Key = rdb.ZRange(ctx, "asynq:servers", 0, -1).Val()[0]
	captured.WorkersKey = rdb.ZRange(ctx, "asynq:workers", 0, -1).Val()[0]
	captured.ServerInfo = hex.EncodeToString([]byte(rdb.Get(ctx, captured.Key).Val()))
	for id, value := range rdb.HGetAll(ctx, captured.WorkersKey).Val() {
		captured.Workers[id] = hex.EncodeToString([]byte(value))
	}
	return captured
}

func captureScheduler(address string, rdb *redis.Client, inspector *asynq.Inspector) capturedScheduler {
	scheduler := asynq.NewScheduler(asynq.RedisClientOpt{Addr: address}, &asynq.SchedulerOpts{
		LogLevel: asynq.FatalLevel, HeartbeatInterval: time.Second,
	})
	often, err := scheduler.Register("@every 1s", asynq.NewTask("t", []byte("p")), asynq.Queue("q"), asynq.MaxRetry(3),
		asynq.Timeout(90*time.Second), asynq.Deadline(farAway), asynq.Unique(time.Hour), asynq.TaskID("i d"), asynq.Group("g"),
		asynq.Retention(36*time.Hour), asynq.ProcessIn(1500*time.Millisecond), asynq.ProcessAt(farAway))
	check(err)
	_, err = scheduler.Register("0 0 30 2 *", asynq.NewTask("never", nil))
	check(err)
	check(scheduler.Start())
	history := "asynq:scheduler_history:" + often
	captured := capturedScheduler{History: map[string][]string{}, Events: map[string][]*asynq.SchedulerEnqueueEvent{}}
	until(func() bool {
		captured.Key, captured.Entries = readList(rdb)
		if captured.Key == "" {
			return false
		}
		captured.Read = readEntries(inspector)
		fired := slices.ContainsFunc(captured.Read, func(entry readEntry) bool { return !entry.Prev.IsZero() })
		_, again := readList(rdb)
		return fired && slices.Equal(captured.Entries, again)
	})
	captured.Events[often], err = inspector.ListSchedulerEnqueueEvents(often)
	check(err)
	for _, value := range rdb.ZRevRange(ctx, history, 0, int64(len(captured.Events[often])-1)).Val() {
		captured.History[often] = append(captured.History[often], hex.EncodeToString([]byte(value)))
	}
	scheduler.Shutdown()
	return captured
}

func readList(rdb *redis.Client) (key string, entries []string) {
	keys := rdb.ZRange(ctx, "asynq:schedulers", 0, -1).Val()
	if len(keys) == 0 {
		return "", nil
	}
	for _, value := range rdb.LRange(ctx, keys[0], 0, -1).Val() {
		entries = append(entries, hex.EncodeToString([]byte(value)))
	}
	return keys[0], entries
}

func readEntries(inspector *asynq.Inspector) (read []readEntry) {
	entries, err := inspector.SchedulerEntries()
	check(err)
	for _, entry := range entries {
		options := []string{}
		for _, option := range entry.Opts {
			options = append(options, option.String())
		}
		read = append(read, readEntry{
			ID: entry.ID, Spec: entry.Spec, TaskType: entry.Task.Type(), TaskPayload: hex.EncodeToString(entry.Task.Payload()),
			Options: options, Next: entry.Next.UTC(), Prev: entry.Prev.UTC(),
		})
	}
	return read
}
