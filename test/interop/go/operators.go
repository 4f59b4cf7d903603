package main

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"

	"github.com/hibiken/asynq"
	"github.com/hibiken/asynqmon"
)

type deleteQueueArgs struct {
	Queue string `json:"queue"`
	Force bool   `json:"force"`
}

// one runs an operation of asynq's inspector on a queue; grouped also has the group.
type one = func(queue string) (int, error)
type grouped = func(queue, group string) (int, error)

// addOperatorOperations adds what people do with asynq's command and with asynqmon: the command is asynq's inspector with flags.
func addOperatorOperations(ops operations, redis asynq.RedisConnOpt, i *asynq.Inspector) {
	ops["runAll"] = all(map[string]one{
		"scheduled": i.RunAllScheduledTasks, "retry": i.RunAllRetryTasks, "archived": i.RunAllArchivedTasks,
	}, i.RunAllAggregatingTasks)
	ops["archiveAll"] = all(map[string]one{
		"pending": i.ArchiveAllPendingTasks, "scheduled": i.ArchiveAllScheduledTasks, "retry": i.ArchiveAllRetryTasks,
	}, i.ArchiveAllAggregatingTasks)
	ops["deleteAll"] = all(map[string]one{
		"pending": i.DeleteAllPendingTasks, "scheduled": i.DeleteAllScheduledTasks, "retry": i.DeleteAllRetryTasks,
		"archived": i.DeleteAllArchivedTasks, "completed": i.DeleteAllCompletedTasks,
	}, i.DeleteAllAggregatingTasks)
	ops["deleteQueue"] = action(func(a deleteQueueArgs) error { return i.DeleteQueue(a.Queue, a.Force) })
	// asynqmon as it is, on a port of its own until the process ends.
	ops["asynqmon"] = operation(func(struct{}) (string, error) {
		return httptest.NewServer(asynqmon.New(asynqmon.Options{RedisConnOpt: redis})).URL, nil
	})
}

func all(byState map[string]one, aggregating grouped) func(json.RawMessage) (any, error) {
	return operation(func(a listArgs) (int, error) {
		if a.State == "aggregating" {
			return aggregating(a.Queue, a.Group)
		}
		run, known := byState[a.State]
		if !known {
			return 0, fmt.Errorf("unsupported state %q", a.State)
		}
		return run(a.Queue)
	})
}
