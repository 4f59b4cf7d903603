package main

import (
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

type optionStrings struct {
	// String() of options.
	Written map[string]string
	// For each text in a scheduler entry's enqueue_options, what the Go inspector makes of it: String() of the option, "" when
	// it drops it.
	Read []readOption
}

type readOption struct{ Text, Read string }

var optionTexts = []string{
	`Queue("q")`, `Queue("a\"b\\\n\t\x00 é \u2028 \U0001f600")`, `Queue("\xc3\xa9 \xff \303\251 \a\b\f\r\v")`, `Queue("a)b")`, `Queue(")")`,
	`Queue("")`, `Queue()`, `Queue("`, `Queue(q)`, `Queue("a"`, `Queue("a"b")`, `Queue("\q")`, `Queue("\x1")`, `Queue("\ud800")`,
	`Queue("\U00110000")`, `Queue("\'")`, `Queue("\400")`, `Queue("\377")`, "Queue(\"a\nb\")", `queue("q")`, ` Queue("q")`, `Queue ("q")`, `Queue("q") tail`,
	`)Queue("q")`, `MaxRetry(3)`, `MaxRetry(-3)`, `MaxRetry(+3)`, `MaxRetry(03)`, `MaxRetry(3.0)`, `MaxRetry( 3)`, `MaxRetry()`, `MaxRetry(0x3)`, `MaxRetry(1_000)`,
	`MaxRetry(99999999999999999999)`, `Timeout(30m0s)`, `Timeout(1.5s)`, `Timeout(90s)`, `Timeout(0)`, `Timeout(0s)`, `Timeout(-1s)`, `Timeout(15ns)`, `Timeout(1)`, `Timeout(x)`,
	`Timeout(1d)`, `Unique(1h0m0s)`, `ProcessIn(1m0s)`, `Retention(24h0m0s)`,
	`Deadline(Tue Jan  2 03:04:05 UTC 2024)`, `Deadline(Mon Jan  1 22:04:05 EST 2024)`, `ProcessAt(Tue Jan  2 03:04:05 UTC 2024)`,
	`ProcessAt(Tue Jan 32 03:04:05 UTC 2024)`, `ProcessAt()`, `TaskID("x")`, `Group("g")`, `Nonsense("x")`, `()`, `(`, `(x)`,
}

func makeOptionStrings(address string, rdb *redis.Client) optionStrings {
	made := optionStrings{Written: map[string]string{}}
	newYork, err := time.LoadLocation("America/New_York")
	check(err)
	instant := time.Date(2024, 1, 2, 3, 4, 5, 678, time.UTC)
	for name, option := range map[string]asynq.Option{
		"MaxRetry 3": asynq.MaxRetry(3), "MaxRetry -3": asynq.MaxRetry(-3), "Queue default": asynq.Queue("default"),
		"Queue odd": asynq.Queue("a\"b\n é \x00 \u2028"), "Timeout 1.5s": asynq.Timeout(1500 * time.Millisecond),
		"Timeout 90s": asynq.Timeout(90 * time.Second), "Timeout 36h": asynq.Timeout(36 * time.Hour), "Timeout 15ns": asynq.Timeout(15),
		"Timeout -1s": asynq.Timeout(-time.Second), "Timeout 0": asynq.Timeout(0), "Deadline": asynq.Deadline(instant),
		"Deadline New York": asynq.Deadline(instant.In(newYork)), "Deadline never": asynq.Deadline(time.Time{}), "Unique 1h": asynq.Unique(time.Hour), "ProcessAt": asynq.ProcessAt(instant),
		"ProcessIn 1m": asynq.ProcessIn(time.Minute), "TaskID x": asynq.TaskID("x"), "Retention 24h": asynq.Retention(24 * time.Hour),
		"Group g": asynq.Group("g"),
	} {
		made.Written[name] = option.String()
	}
	inspector := asynq.NewInspector(asynq.RedisClientOpt{Addr: address})
	defer inspector.Close()
	for _, text := range optionTexts {
		made.Read = append(made.Read, readOption{text, readThroughInspector(text, rdb, inspector)})
	}
	return made
}

// readThroughInspector publishes a scheduler entry with one option and asks the inspector for it.
func readThroughInspector(text string, rdb *redis.Client, inspector *asynq.Inspector) string {
	check(rdb.FlushAll(ctx).Err())
	key := "asynq:schedulers:{h:1:" + uuid.NewString() + "}"
	check(rdb.ZAdd(ctx, "asynq:schedulers", redis.Z{Member: key, Score: float64(farAway.Unix())}).Err())
	descriptor := describe("proto3")("SchedulerEntry")
	entry := dynamicpb.NewMessage(descriptor)
	entry.Mutable(descriptor.Fields().ByName("enqueue_options")).List().Append(protoreflect.ValueOfString(text))
	bytes, err := proto.Marshal(entry)
	check(err)
	check(rdb.LPush(ctx, key, bytes).Err())
	read := readEntries(inspector)[0].Options
	if len(read) == 0 {
		return ""
	}
	return read[0]
}
