package main

import (
	"time"

	"github.com/hibiken/asynq"
)

// unixMilli has a resolution of a microsecond; it is nil for the zero time.
func unixMilli(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	ms := float64(t.UnixMicro()) / 1000
	return &ms
}

type taskView struct {
	ID            string            `json:"id"`
	Queue         string            `json:"queue"`
	Type          string            `json:"type"`
	Payload       []byte            `json:"payload"`
	Headers       map[string]string `json:"headers"`
	State         string            `json:"state"`
	MaxRetry      int               `json:"maxRetry"`
	Retried       int               `json:"retried"`
	LastErr       string            `json:"lastErr"`
	LastFailedAt  *float64          `json:"lastFailedAt"`
	Timeout       int64             `json:"timeout"`
	Deadline      *float64          `json:"deadline"`
	Group         string            `json:"group"`
	NextProcessAt *float64          `json:"nextProcessAt"`
	IsOrphaned    bool              `json:"isOrphaned"`
	Retention     int64             `json:"retention"`
	CompletedAt   *float64          `json:"completedAt"`
	Result        []byte            `json:"result"`
}

func viewTask(t *asynq.TaskInfo) *taskView {
	return &taskView{
		ID: t.ID, Queue: t.Queue, Type: t.Type, Payload: t.Payload, Headers: t.Headers, State: t.State.String(),
		MaxRetry: t.MaxRetry, Retried: t.Retried, LastErr: t.LastErr, LastFailedAt: unixMilli(t.LastFailedAt),
		Timeout: t.Timeout.Milliseconds(), Deadline: unixMilli(t.Deadline), Group: t.Group,
		NextProcessAt: unixMilli(t.NextProcessAt), IsOrphaned: t.IsOrphaned, Retention: t.Retention.Milliseconds(),
		CompletedAt: unixMilli(t.CompletedAt), Result: t.Result,
	}
}

type queueView struct {
	Size           int   `json:"size"`
	MemoryUsage    int64 `json:"memoryUsage"`
	Latency        int64 `json:"latency"`
	Groups         int   `json:"groups"`
	Pending        int   `json:"pending"`
	Active         int   `json:"active"`
	Scheduled      int   `json:"scheduled"`
	Retry          int   `json:"retry"`
	Archived       int   `json:"archived"`
	Completed      int   `json:"completed"`
	Aggregating    int   `json:"aggregating"`
	Processed      int   `json:"processed"`
	Failed         int   `json:"failed"`
	ProcessedTotal int   `json:"processedTotal"`
	FailedTotal    int   `json:"failedTotal"`
	Paused         bool  `json:"paused"`
}

func viewQueue(q *asynq.QueueInfo) *queueView {
	return &queueView{
		Size: q.Size, MemoryUsage: q.MemoryUsage, Latency: q.Latency.Milliseconds(), Groups: q.Groups, Pending: q.Pending,
		Active: q.Active, Scheduled: q.Scheduled, Retry: q.Retry, Archived: q.Archived, Completed: q.Completed,
		Aggregating: q.Aggregating, Processed: q.Processed, Failed: q.Failed, ProcessedTotal: q.ProcessedTotal,
		FailedTotal: q.FailedTotal, Paused: q.Paused,
	}
}

type serverView struct {
	ID             string         `json:"id"`
	Host           string         `json:"host"`
	PID            int            `json:"pid"`
	Concurrency    int            `json:"concurrency"`
	Queues         map[string]int `json:"queues"`
	StrictPriority bool           `json:"strictPriority"`
	Status         string         `json:"status"`
	Started        *float64       `json:"started"`
	Workers        []workerView   `json:"workers"`
}

type workerView struct {
	TaskID      string   `json:"taskId"`
	TaskType    string   `json:"taskType"`
	TaskPayload []byte   `json:"taskPayload"`
	Queue       string   `json:"queue"`
	Started     *float64 `json:"started"`
	Deadline    *float64 `json:"deadline"`
}

func viewServer(s *asynq.ServerInfo) serverView {
	view := serverView{
		ID: s.ID, Host: s.Host, PID: s.PID, Concurrency: s.Concurrency, Queues: s.Queues, StrictPriority: s.StrictPriority,
		Status: s.Status, Started: unixMilli(s.Started), Workers: []workerView{},
	}
	for _, w := range s.ActiveWorkers {
		view.Workers = append(view.Workers, workerView{
			TaskID: w.TaskID, TaskType: w.TaskType, TaskPayload: w.TaskPayload, Queue: w.Queue,
			Started: unixMilli(w.Started), Deadline: unixMilli(w.Deadline),
		})
	}
	return view
}

type dayView struct {
	Date      string `json:"date"`
	Processed int    `json:"processed"`
	Failed    int    `json:"failed"`
}
