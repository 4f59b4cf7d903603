// Runs one measurement of Go asynq: bench-go KIND PORT COUNT AT_ONCE WARM. Prints one JSON line.
// Or delays what others say to Redis: bench-go proxy PORT TARGET_PORT ROUND_TRIP (as 1ms).
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

type measurement struct {
	Value float64 `json:"value"`
	CPU   float64 `json:"cpu,omitempty"`
	RSS   float64 `json:"rss,omitempty"`
	Bytes float64 `json:"bytes,omitempty"`
	P95   float64 `json:"p95,omitempty"`
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func payload(n int) []byte {
	digits := strconv.Itoa(n)
	bytes, err := json.Marshal(map[string]any{"n": n, "text": strings.Repeat("x", 82-len(digits))})
	must(err)
	return bytes
}

func cpuMillis() float64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	millis := func(t syscall.Timeval) float64 { return float64(t.Sec)*1000 + float64(t.Usec)/1000 }
	return millis(usage.Utime) + millis(usage.Stime)
}

func rssMegabytes() float64 {
	statm, err := os.ReadFile("/proc/self/statm")
	must(err)
	pages, err := strconv.ParseFloat(strings.Fields(string(statm))[1], 64)
	must(err)
	return pages * float64(os.Getpagesize()) / (1 << 20)
}

// timed measures work. work calls begin when the measured part begins.
func timed(count int, work func(begin func())) measurement {
	cpu, start := cpuMillis(), time.Now()
	work(func() { cpu, start = cpuMillis(), time.Now() })
	seconds := time.Since(start).Seconds()
	return measurement{Value: float64(count) / seconds, CPU: (cpuMillis() - cpu) * 1000 / float64(count), RSS: rssMegabytes()}
}

func enqueueOne(client *asynq.Client, n int) {
	_, err := client.Enqueue(asynq.NewTask("bench", payload(n)))
	must(err)
}

// enqueueConcurrently keeps `workers` goroutines busy. v0.26 has no batch call, so the bulk scenario uses it, too.
func enqueueConcurrently(client *asynq.Client, from, to, workers int) {
	var next atomic.Int64
	next.Store(int64(from))
	var group sync.WaitGroup
	for worker := 0; worker < workers; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := next.Add(1) - 1; n < int64(to); n = next.Add(1) - 1 {
				enqueueOne(client, int(n))
			}
		}()
	}
	group.Wait()
}

func usedMemory(rdb *redis.Client) float64 {
	info, err := rdb.Info(context.Background(), "memory").Result()
	must(err)
	for _, line := range strings.Split(info, "\r\n") {
		if value, found := strings.CutPrefix(line, "used_memory_dataset:"); found {
			bytes, err := strconv.ParseFloat(value, 64)
			must(err)
			return bytes
		}
	}
	return 0
}

func enqueue(client *asynq.Client, rdb *redis.Client, count, atOnce int) measurement {
	for n := 0; n < 200; n++ {
		enqueueOne(client, n)
	}
	must(rdb.FlushAll(context.Background()).Err())
	before := usedMemory(rdb)
	result := timed(count, func(func()) {
		if atOnce == 1 {
			for n := 0; n < count; n++ {
				enqueueOne(client, n)
			}
			return
		}
		enqueueConcurrently(client, 0, count, min(atOnce, 200))
	})
	result.Bytes = (usedMemory(rdb) - before) / float64(count)
	return result
}

type quiet struct{}

func (quiet) Debug(...any) {}
func (quiet) Info(...any)  {}
func (quiet) Warn(...any)  {}
func (quiet) Error(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
}
func (quiet) Fatal(args ...any) { fmt.Fprintln(os.Stderr, args...) }

func serve(redisOpt asynq.RedisClientOpt, concurrency int, handle func(*asynq.Task)) *asynq.Server {
	server := asynq.NewServer(redisOpt, asynq.Config{Concurrency: concurrency, Logger: quiet{}})
	must(server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		handle(task)
		return nil
	})))
	return server
}

// process measures from the first task after `warm` other tasks to the last one settled.
func process(client *asynq.Client, rdb *redis.Client, redisOpt asynq.RedisClientOpt, count, concurrency, warm int, slow bool) measurement {
	enqueueConcurrently(client, 0, warm+count, 200)
	return timed(count, func(begin func()) {
		var started, handled atomic.Int64
		done := make(chan struct{})
		serve(redisOpt, concurrency, func(task *asynq.Task) {
			if started.Add(1) == int64(warm+1) {
				begin()
			}
			var decoded struct {
				N    int    `json:"n"`
				Text string `json:"text"`
			}
			must(json.Unmarshal(task.Payload(), &decoded))
			if slow {
				time.Sleep(time.Millisecond + time.Duration(rand.Int63n(int64(4*time.Millisecond))))
			}
			if handled.Add(1) == int64(warm+count) {
				close(done)
			}
		})
		<-done
		for rdb.LLen(context.Background(), "asynq:{default}:active").Val() > 0 {
			time.Sleep(200 * time.Microsecond)
		}
	})
}

func latency(client *asynq.Client, redisOpt asynq.RedisClientOpt, count int) measurement {
	started := make(chan time.Time, 1)
	serve(redisOpt, 10, func(*asynq.Task) { started <- time.Now() })
	times := make([]float64, 0, count)
	for n := 0; n < count; n++ {
		time.Sleep(15*time.Millisecond + time.Duration(rand.Int63n(int64(30*time.Millisecond))))
		sent := time.Now()
		enqueueOne(client, n)
		times = append(times, float64((<-started).Sub(sent).Microseconds())/1000)
	}
	times = times[count/10:]
	sort.Float64s(times)
	return measurement{Value: times[len(times)/2], P95: times[len(times)*95/100]}
}

func main() {
	kind := os.Args[1]
	if kind == "proxy" {
		roundTrip, err := time.ParseDuration(os.Args[4])
		must(err)
		delayingProxy(os.Args[2], os.Args[3], roundTrip)
	}
	numbers := make([]int, 4)
	for i := range numbers {
		var err error
		numbers[i], err = strconv.Atoi(os.Args[2+i])
		must(err)
	}
	count, atOnce, warm := numbers[1], numbers[2], numbers[3]
	addr := fmt.Sprintf("127.0.0.1:%d", numbers[0])
	redisOpt := asynq.RedisClientOpt{Addr: addr, PoolSize: 200}
	client := asynq.NewClient(redisOpt)
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	var result measurement
	switch kind {
	case "enqueue":
		result = enqueue(client, rdb, count, atOnce)
	case "latency":
		result = latency(client, redisOpt, count)
	default:
		result = process(client, rdb, redisOpt, count, atOnce, warm, kind == "slow")
	}
	must(json.NewEncoder(os.Stdout).Encode(result))
}
