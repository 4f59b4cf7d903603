package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hibiken/asynq"
)

type request struct {
	ID   int             `json:"id"`
	Op   string          `json:"op"`
	Args json.RawMessage `json:"args"`
}

type failure struct {
	Message string `json:"message"`
	Kind    string `json:"kind"`
}

// operations maps the name of an operation to what it does with its arguments.
type operations map[string]func(json.RawMessage) (any, error)

// operation gives a typed function the common form. Missing arguments are the zero value, unknown ones stay unread.
func operation[A, R any](run func(A) (R, error)) func(json.RawMessage) (any, error) {
	return func(raw json.RawMessage) (any, error) {
		var args A
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &args); err != nil {
				return nil, fmt.Errorf("bad arguments %s: %w", raw, err)
			}
		}
		return run(args)
	}
}

// action is an operation without a result.
func action[A any](run func(A) error) func(json.RawMessage) (any, error) {
	return operation(func(args A) (any, error) { return nil, run(args) })
}

func (ops operations) serve(in io.Reader, out *output) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var req request
		if err := json.Unmarshal(lines.Bytes(), &req); err != nil {
			return fmt.Errorf("bad request %q: %w", lines.Text(), err)
		}
		go ops.answer(req, out)
	}
	return lines.Err()
}

func (ops operations) answer(req request, out *output) {
	run, known := ops[req.Op]
	if !known {
		run = func(json.RawMessage) (any, error) { return nil, fmt.Errorf("unknown operation %q", req.Op) }
	}
	result, err := run(req.Args)
	if err != nil {
		out.write(map[string]any{"id": req.ID, "error": failure{err.Error(), kindOf(err)}})
		return
	}
	out.write(map[string]any{"id": req.ID, "ok": result})
}

var kinds = map[string]error{
	"duplicate":       asynq.ErrDuplicateTask,
	"conflict":        asynq.ErrTaskIDConflict,
	"queue not found": asynq.ErrQueueNotFound,
	"task not found":  asynq.ErrTaskNotFound,
	"queue not empty": asynq.ErrQueueNotEmpty,
}

func kindOf(err error) string {
	for kind, sentinel := range kinds {
		if errors.Is(err, sentinel) {
			return kind
		}
	}
	return "other"
}

// output writes whole lines, whoever writes.
type output struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func newOutput(w io.Writer) *output {
	return &output{enc: json.NewEncoder(w)}
}

// A failing write means that the driver is gone; the end of stdin then ends the process.
func (o *output) write(line any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.enc.Encode(line)
}

func (o *output) event(name string, fields map[string]any) {
	fields["event"] = name
	o.write(fields)
}
