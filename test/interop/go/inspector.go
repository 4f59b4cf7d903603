package main

import (
	"fmt"
	"time"

	"github.com/hibiken/asynq"
)

type queueArgs struct {
	Queue string `json:"queue"`
}

type taskArgs struct {
	Queue string `json:"queue"`
	ID    string `json:"id"`
}

type listArgs struct {
	Queue string `json:"queue"`
	State string `json:"state"`
	Group string `json:"group"`
}

type historyArgs struct {
	Queue string `json:"queue"`
	Days  int    `json:"days"`
}

// listSize is more than any test stores, so that a list is whole.
const listSize = 20_000

func addInspectorOperations(ops operations, inspector *asynq.Inspector) {
	addReadOperations(ops, inspector)
	ops["pause"] = action(func(a queueArgs) error { return inspector.PauseQueue(a.Queue) })
	ops["unpause"] = action(func(a queueArgs) error { return inspector.UnpauseQueue(a.Queue) })
	ops["cancel"] = action(func(a taskArgs) error { return inspector.CancelProcessing(a.ID) })
	ops["runTask"] = action(func(a taskArgs) error { return inspector.RunTask(a.Queue, a.ID) })
	ops["archiveTask"] = action(func(a taskArgs) error { return inspector.ArchiveTask(a.Queue, a.ID) })
	ops["deleteTask"] = action(func(a taskArgs) error { return inspector.DeleteTask(a.Queue, a.ID) })
}

func addReadOperations(ops operations, inspector *asynq.Inspector) {
	ops["queues"] = operation(func(struct{}) ([]string, error) { return inspector.Queues() })
	ops["queueInfo"] = operation(func(a queueArgs) (*queueView, error) {
		info, err := inspector.GetQueueInfo(a.Queue)
		if err != nil {
			return nil, err
		}
		return viewQueue(info), nil
	})
	// As asynq's own command answers it in JSON: the struct as it is.
	ops["queueInfoAsIs"] = operation(func(a queueArgs) (*asynq.QueueInfo, error) { return inspector.GetQueueInfo(a.Queue) })
	ops["groups"] = operation(func(a queueArgs) ([]*asynq.GroupInfo, error) { return inspector.Groups(a.Queue) })
	ops["taskInfo"] = operation(func(a taskArgs) (*taskView, error) {
		info, err := inspector.GetTaskInfo(a.Queue, a.ID)
		if err != nil {
			return nil, err
		}
		return viewTask(info), nil
	})
	ops["list"] = operation(func(a listArgs) ([]*taskView, error) {
		tasks, err := list(inspector, a)
		views := make([]*taskView, 0, len(tasks))
		for _, task := range tasks {
			views = append(views, viewTask(task))
		}
		return views, err
	})
	ops["servers"] = operation(func(struct{}) ([]serverView, error) {
		views := []serverView{}
		servers, err := inspector.Servers()
		for _, server := range servers {
			views = append(views, viewServer(server))
		}
		return views, err
	})
	ops["history"] = operation(func(a historyArgs) ([]dayView, error) {
		views := []dayView{}
		days, err := inspector.History(a.Queue, a.Days)
		for _, day := range days {
			views = append(views, dayView{day.Date.Format(time.DateOnly), day.Processed, day.Failed})
		}
		return views, err
	})
}

func list(inspector *asynq.Inspector, a listArgs) ([]*asynq.TaskInfo, error) {
	all := asynq.PageSize(listSize)
	switch a.State {
	case "pending":
		return inspector.ListPendingTasks(a.Queue, all)
	case "active":
		return inspector.ListActiveTasks(a.Queue, all)
	case "scheduled":
		return inspector.ListScheduledTasks(a.Queue, all)
	case "retry":
		return inspector.ListRetryTasks(a.Queue, all)
	case "archived":
		return inspector.ListArchivedTasks(a.Queue, all)
	case "completed":
		return inspector.ListCompletedTasks(a.Queue, all)
	case "aggregating":
		return inspector.ListAggregatingTasks(a.Queue, a.Group, all)
	default:
		return nil, fmt.Errorf("no list of state %q", a.State)
	}
}
