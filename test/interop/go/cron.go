package main

import (
	"time"

	"github.com/robfig/cron/v3"
)

type cronArgs struct {
	Spec     string `json:"spec"`
	Location string `json:"location"`
	From     int64  `json:"from"`
	Count    int    `json:"count"`
}

// cronView is what became of one spec: the error of the parser, or firings until there are no more.
type cronView struct {
	Error string  `json:"error"`
	Next  []int64 `json:"next"`
}

type cronBatch struct {
	Specs []cronArgs `json:"specs"`
}

func addCronOperations(ops operations) {
	ops["cron"] = operation(func(a cronBatch) ([]cronView, error) {
		views := make([]cronView, len(a.Specs))
		for i, spec := range a.Specs {
			views[i] = viewCron(spec)
		}
		return views, nil
	})
}

func viewCron(a cronArgs) cronView {
	location, err := time.LoadLocation(a.Location)
	if err != nil {
		return cronView{Error: err.Error()}
	}
	schedule, err := cron.ParseStandard(a.Spec)
	if err != nil {
		return cronView{Error: err.Error()}
	}
	view := cronView{Next: []int64{}}
	for at := time.UnixMilli(a.From).In(location); len(view.Next) < a.Count; {
		at = schedule.Next(at)
		if at.IsZero() {
			break
		}
		view.Next = append(view.Next, at.UnixMilli())
	}
	return view
}
