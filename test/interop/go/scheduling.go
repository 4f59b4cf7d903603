package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

type registration struct {
	Spec string      `json:"spec"`
	Task enqueueArgs `json:"task"`
}

type schedulerArgs struct {
	Name     string         `json:"name"`
	Location string         `json:"location"`
	Entries  []registration `json:"entries"`
}

// schedulers are asynq's, by the name the driver has for them.
type schedulers struct {
	mu    sync.Mutex
	redis asynq.RedisConnOpt
	named map[string]*asynq.Scheduler
}

func newSchedulers(redis asynq.RedisConnOpt) *schedulers {
	return &schedulers{redis: redis, named: map[string]*asynq.Scheduler{}}
}

func (s *schedulers) start(args schedulerArgs) ([]string, error) {
	location, err := time.LoadLocation(args.Location)
	if err != nil {
		return nil, err
	}
	scheduler := asynq.NewScheduler(s.redis, &asynq.SchedulerOpts{
		Location: location, HeartbeatInterval: time.Second, LogLevel: asynq.ErrorLevel,
	})
	ids := []string{}
	for _, entry := range args.Entries {
		task := asynq.NewTaskWithHeaders(entry.Task.Type, entry.Task.Payload, entry.Task.Headers)
		id, err := scheduler.Register(entry.Spec, task, entry.Task.options()...)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if err := scheduler.Start(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named[args.Name] = scheduler
	return ids, nil
}

func (s *schedulers) stop(args schedulerArgs) error {
	s.mu.Lock()
	scheduler, known := s.named[args.Name]
	delete(s.named, args.Name)
	s.mu.Unlock()
	if !known {
		return fmt.Errorf("no scheduler is called %q", args.Name)
	}
	scheduler.Shutdown()
	return nil
}

func addSchedulingOperations(ops operations, all *schedulers) {
	ops["startScheduler"] = operation(all.start)
	ops["stopScheduler"] = action(all.stop)
}
