package main

import "github.com/hibiken/asynq"

type entryArgs struct {
	ID string `json:"id"`
}

type entryView struct {
	ID      string   `json:"id"`
	Spec    string   `json:"spec"`
	Type    string   `json:"type"`
	Payload []byte   `json:"payload"`
	Options []string `json:"options"`
	Next    *float64 `json:"next"`
	Prev    *float64 `json:"prev"`
}

type eventView struct {
	TaskID     string   `json:"taskId"`
	EnqueuedAt *float64 `json:"enqueuedAt"`
}

func addSchedulerOperations(ops operations, inspector *asynq.Inspector) {
	ops["schedulerEntries"] = operation(func(struct{}) ([]entryView, error) {
		views := []entryView{}
		entries, err := inspector.SchedulerEntries()
		for _, e := range entries {
			view := entryView{ID: e.ID, Spec: e.Spec, Type: e.Task.Type(), Payload: e.Task.Payload(), Next: unixMilli(e.Next), Prev: unixMilli(e.Prev)}
			for _, option := range e.Opts {
				view.Options = append(view.Options, option.String())
			}
			views = append(views, view)
		}
		return views, err
	})
	ops["enqueueEvents"] = operation(func(a entryArgs) ([]eventView, error) {
		views := []eventView{}
		events, err := inspector.ListSchedulerEnqueueEvents(a.ID, asynq.PageSize(listSize))
		for _, e := range events {
			views = append(views, eventView{TaskID: e.TaskID, EnqueuedAt: unixMilli(e.EnqueuedAt)})
		}
		return views, err
	})
}
