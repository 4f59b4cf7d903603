package main

import (
	"time"

	"github.com/hibiken/asynq"
)

// enqueueArgs names a task and the options to give; an absent option is not given to asynq at all.
type enqueueArgs struct {
	Type        string            `json:"type"`
	Payload     []byte            `json:"payload"`
	Headers     map[string]string `json:"headers"`
	Queue       *string           `json:"queue"`
	MaxRetry    *int              `json:"maxRetry"`
	TimeoutMs   *int64            `json:"timeout"`
	DeadlineMs  *int64            `json:"deadline"`
	UniqueMs    *int64            `json:"unique"`
	ProcessInMs *int64            `json:"processIn"`
	ProcessAtMs *int64            `json:"processAt"`
	TaskID      *string           `json:"taskId"`
	RetentionMs *int64            `json:"retention"`
	Group       *string           `json:"group"`
}

func (a enqueueArgs) options() []asynq.Option {
	var opts []asynq.Option
	opts = given(opts, a.Queue, asynq.Queue)
	opts = given(opts, a.MaxRetry, asynq.MaxRetry)
	opts = given(opts, a.TimeoutMs, durationOption(asynq.Timeout))
	opts = given(opts, a.DeadlineMs, timeOption(asynq.Deadline))
	opts = given(opts, a.UniqueMs, durationOption(asynq.Unique))
	opts = given(opts, a.ProcessInMs, durationOption(asynq.ProcessIn))
	opts = given(opts, a.ProcessAtMs, timeOption(asynq.ProcessAt))
	opts = given(opts, a.TaskID, asynq.TaskID)
	opts = given(opts, a.RetentionMs, durationOption(asynq.Retention))
	return given(opts, a.Group, asynq.Group)
}

func given[T any](opts []asynq.Option, value *T, option func(T) asynq.Option) []asynq.Option {
	if value == nil {
		return opts
	}
	return append(opts, option(*value))
}

func durationOption(option func(time.Duration) asynq.Option) func(int64) asynq.Option {
	return func(ms int64) asynq.Option { return option(milliseconds(ms)) }
}

func timeOption(option func(time.Time) asynq.Option) func(int64) asynq.Option {
	return func(ms int64) asynq.Option { return option(time.UnixMilli(ms)) }
}

func milliseconds(ms int64) time.Duration {
	return time.Duration(ms) * time.Millisecond
}

func addClientOperations(ops operations, client *asynq.Client) {
	ops["enqueue"] = operation(func(args enqueueArgs) (*taskView, error) {
		task := asynq.NewTaskWithHeaders(args.Type, args.Payload, args.Headers)
		info, err := client.Enqueue(task, args.options()...)
		if err != nil {
			return nil, err
		}
		return viewTask(info), nil
	})
}
