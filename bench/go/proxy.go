package main

import (
	"io"
	"net"
	"syscall"
	"time"
)

// A chunk that was read, and when it may be written.
type chunk struct {
	bytes []byte
	due   time.Time
}

// delayingProxy passes connections to `port` of this machine on to `target`, each byte half a round trip later in each direction.
// It never returns.
func delayingProxy(port, target string, roundTrip time.Duration) {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	must(err)
	for {
		client, err := listener.Accept()
		must(err)
		server, err := net.Dial("tcp", "127.0.0.1:"+target)
		if err != nil {
			client.Close()
			continue
		}
		go delay(client, server, roundTrip/2)
		go delay(server, client, roundTrip/2)
	}
}

// delay copies until either side closes.
func delay(from io.ReadCloser, to io.WriteCloser, by time.Duration) {
	chunks := make(chan chunk, 1024)
	go func() {
		defer close(chunks)
		for {
			bytes := make([]byte, 16<<10)
			n, err := from.Read(bytes)
			if n > 0 {
				chunks <- chunk{bytes[:n], time.Now().Add(by)}
			}
			if err != nil {
				return
			}
		}
	}()
	for next := range chunks {
		waitUntil(next.due)
		if _, err := to.Write(next.bytes); err != nil {
			break
		}
	}
	from.Close()
	to.Close()
	for range chunks { // lets the reader end
	}
}

// waitUntil is precise: Go's own timers are rounded up to a millisecond while a process has nothing else to do.
func waitUntil(due time.Time) {
	for left := time.Until(due); left > 0; left = time.Until(due) {
		duration := syscall.NsecToTimespec(int64(left))
		syscall.Nanosleep(&duration, nil)
	}
}
