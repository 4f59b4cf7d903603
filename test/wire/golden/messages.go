package main

import (
	"encoding/hex"
	"math"

	"encoding/json"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
)

// A message is one message as Go's protobuf library encodes it: the value in protobuf's JSON form (int64 as text, bytes as
// base64, timestamps in RFC 3339), the bytes in hexadecimal.
type message struct {
	Name, Message string
	Value         json.RawMessage
	Hex           string
}

// The values are written in protobuf's JSON form.
var messageCases = []struct{ name, message, value string }{
	{"empty", "TaskMessage", `{}`},
	{"every field", "TaskMessage", `{"type":"email:send","payload":"eyJhIjoxfQ==","id":"id1","queue":"default","retry":25,"retried":2,
		"error_msg":"boom","timeout":"1800","deadline":"1700003600","unique_key":"asynq:{default}:unique:email:send:x",
		"last_failed_at":"1700000000","retention":"3600","completed_at":"1700000100","group_key":"g1","headers":{"empty":"","k":"v"}}`},
	{"negative", "TaskMessage", `{"retry":-1,"retried":-2147483648,"timeout":"-1","deadline":"-62135596800","retention":"-9007199254740991"}`},
	{"varint lengths", "TaskMessage", `{"retry":127,"retried":128,"timeout":"16383","deadline":"16384","last_failed_at":"2097151","retention":"2097152","completed_at":"268435456"}`},
	{"around 32 bits", "TaskMessage", `{"retry":2147483647,"timeout":"2147483647","deadline":"2147483648","last_failed_at":"4294967295","retention":"4294967296","completed_at":"34359738368"}`},
	{"largest safe integers", "TaskMessage", `{"timeout":"9007199254740990","deadline":"-9007199254740990","last_failed_at":"9007199254740991","retention":"-9007199254740991"}`},
	{"text in many scripts", "TaskMessage", `{"type":"héllo","id":"日本語","queue":"😀","error_msg":"\u0000\u0001\n","group_key":"\u2028\ufeff","unique_key":"\u00a0"}`},
	{"headers without key or value", "TaskMessage", `{"headers":{"":""}}`},
	{"headers with the names of an object's own", "TaskMessage", `{"headers":{"__proto__":"1","constructor":"2","toString":"3"}}`},
	{"every field", "ServerInfo", `{"host":"h","pid":42,"server_id":"sid","concurrency":10,"queues":{"default":1},"strict_priority":true,
		"status":"active","start_time":"2024-01-02T03:04:05.678Z","active_worker_count":3}`},
	{"empty", "ServerInfo", `{"start_time":"1970-01-01T00:00:00Z"}`},
	{"priorities", "ServerInfo", `{"queues":{"__proto__":1,"b":0,"c":-1},"start_time":"1969-12-31T23:59:59.999Z"}`},
	{"every field", "WorkerInfo", `{"host":"h","pid":42,"server_id":"sid","task_id":"id1","task_type":"t","task_payload":"cA==","queue":"default",
		"start_time":"2024-01-02T03:04:05.678Z","deadline":"2024-01-02T03:34:05.678Z"}`},
	{"extreme times", "WorkerInfo", `{"start_time":"0001-01-01T00:00:00Z","deadline":"9999-12-31T23:59:59.999Z"}`},
	{"every field", "SchedulerEntry", `{"id":"e1","spec":"@every 1h","task_type":"t","task_payload":"cA==","enqueue_options":["Queue(\"q\")","MaxRetry(3)"],
		"next_enqueue_time":"2024-01-02T03:04:05.678Z","prev_enqueue_time":"0001-01-01T00:00:00Z"}`},
	{"empty option, both never", "SchedulerEntry", `{"enqueue_options":["",""],"next_enqueue_time":"0001-01-01T00:00:00Z","prev_enqueue_time":"0001-01-01T00:00:00Z"}`},
	{"every field", "SchedulerEnqueueEvent", `{"task_id":"id1","enqueue_time":"2024-01-02T03:04:05.678Z"}`},
}

func makeMessages() (messages []message) {
	proto3 := describe("proto3")
	for _, c := range messageCases {
		built := dynamicpb.NewMessage(proto3(c.message))
		check(protojson.Unmarshal([]byte(c.value), built))
		bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(built)
		check(err)
		messages = append(messages, message{c.name, c.message, json.RawMessage(c.value), hex.EncodeToString(bytes)})
	}
	return messages
}

var extremeIntegers = []int64{math.MaxInt64, math.MinInt64, 1 << 53, -(1 << 53), 1<<53 - 1, -(1<<53 - 1), 1<<53 + 1}
