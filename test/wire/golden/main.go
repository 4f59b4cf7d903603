// Golden captures what Go asynq writes and how it reads, as JSON files that the specs of test/wire hold our code to.
//
//	cd test/wire/golden && TZ=UTC go run . && npx oxfmt .
//
// It needs redis-server on the PATH, takes about 15 seconds and rewrites the files beside it. Times, process ids and random
// identifiers change from run to run; everything else should not.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

func main() {
	address, stop := startRedis()
	defer stop()
	rdb := redis.NewClient(&redis.Options{Addr: address})
	write("tasks.json", captureTasks(address, rdb))
	write("monitoring.json", captureMonitoring(address, rdb))
	write("messages.json", makeMessages())
	write("verdicts.json", makeVerdicts())
	write("option-strings.json", makeOptionStrings(address, rdb))
	write("texts.json", makeTexts())
}

func write(name string, value any) {
	data, err := json.MarshalIndent(value, "", "  ")
	check(err)
	check(os.WriteFile(name, append(data, '\n'), 0o644))
	fmt.Println("wrote", name, len(data))
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

// startRedis runs a redis-server of its own on a free port.
func startRedis() (address string, stop func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	port := listener.Addr().(*net.TCPAddr).Port
	check(listener.Close())
	directory, err := os.MkdirTemp("", "golden")
	check(err)
	server := exec.Command("redis-server", "--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--save", "", "--dir", directory)
	check(server.Start())
	address = fmt.Sprintf("127.0.0.1:%d", port)
	rdb := redis.NewClient(&redis.Options{Addr: address})
	defer rdb.Close()
	until(func() bool { return rdb.Ping(ctx).Err() == nil })
	return address, func() {
		server.Process.Kill()
		server.Wait()
		os.RemoveAll(directory)
	}
}

// until waits for a condition, at most 20 seconds.
func until(done func() bool) {
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			log.Panic("a condition was not met in 20 seconds")
		}
	}
}
