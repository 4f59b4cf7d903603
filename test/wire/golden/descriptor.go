package main

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
)

// asynq's own messages cannot be imported, so they are described once more here, from section 2 of the protocol.

type field struct {
	name   string
	number int32
	kind   descriptorpb.FieldDescriptorProto_Type
	label  descriptorpb.FieldDescriptorProto_Label
	of     string
}

const (
	textType  = descriptorpb.FieldDescriptorProto_TYPE_STRING
	bytesType = descriptorpb.FieldDescriptorProto_TYPE_BYTES
	int32Type = descriptorpb.FieldDescriptorProto_TYPE_INT32
	int64Type = descriptorpb.FieldDescriptorProto_TYPE_INT64
	boolType  = descriptorpb.FieldDescriptorProto_TYPE_BOOL
	nested    = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	one       = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
	many      = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	timestamp = ".google.protobuf.Timestamp"
)

var messageFields = map[string][]field{
	"TaskMessage": {
		{"type", 1, textType, one, ""}, {"payload", 2, bytesType, one, ""}, {"id", 3, textType, one, ""},
		{"queue", 4, textType, one, ""}, {"retry", 5, int32Type, one, ""}, {"retried", 6, int32Type, one, ""},
		{"error_msg", 7, textType, one, ""}, {"timeout", 8, int64Type, one, ""}, {"deadline", 9, int64Type, one, ""},
		{"unique_key", 10, textType, one, ""}, {"last_failed_at", 11, int64Type, one, ""},
		{"retention", 12, int64Type, one, ""}, {"completed_at", 13, int64Type, one, ""},
		{"group_key", 14, textType, one, ""}, {"headers", 15, nested, many, "HeadersEntry"},
	},
	"ServerInfo": {
		{"host", 1, textType, one, ""}, {"pid", 2, int32Type, one, ""}, {"server_id", 3, textType, one, ""},
		{"concurrency", 4, int32Type, one, ""}, {"queues", 5, nested, many, "QueuesEntry"},
		{"strict_priority", 6, boolType, one, ""}, {"status", 7, textType, one, ""},
		{"start_time", 8, nested, one, timestamp}, {"active_worker_count", 9, int32Type, one, ""},
	},
	"WorkerInfo": {
		{"host", 1, textType, one, ""}, {"pid", 2, int32Type, one, ""}, {"server_id", 3, textType, one, ""},
		{"task_id", 4, textType, one, ""}, {"task_type", 5, textType, one, ""}, {"task_payload", 6, bytesType, one, ""},
		{"queue", 7, textType, one, ""}, {"start_time", 8, nested, one, timestamp}, {"deadline", 9, nested, one, timestamp},
	},
	"SchedulerEntry": {
		{"id", 1, textType, one, ""}, {"spec", 2, textType, one, ""}, {"task_type", 3, textType, one, ""},
		{"task_payload", 4, bytesType, one, ""}, {"enqueue_options", 5, textType, many, ""},
		{"next_enqueue_time", 6, nested, one, timestamp}, {"prev_enqueue_time", 7, nested, one, timestamp},
	},
	"SchedulerEnqueueEvent": {{"task_id", 1, textType, one, ""}, {"enqueue_time", 2, nested, one, timestamp}},
}

var entryFields = map[string][]field{
	"HeadersEntry": {{"key", 1, textType, one, ""}, {"value", 2, textType, one, ""}},
	"QueuesEntry":  {{"key", 1, textType, one, ""}, {"value", 2, int32Type, one, ""}},
}

// describe builds the messages in a syntax: proto3 as asynq has them, proto2 to read without the check for UTF-8.
func describe(syntax string) func(message string) protoreflect.MessageDescriptor {
	prefix := "." + syntax + "."
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String(syntax + ".proto"), Package: proto.String(syntax), Syntax: proto.String(syntax),
		Dependency: []string{"google/protobuf/timestamp.proto"},
	}
	for name, fields := range messageFields {
		message := &descriptorpb.DescriptorProto{Name: proto.String(name)}
		for _, f := range fields {
			of := f.of
			if entry, isEntry := entryFields[of]; isEntry {
				message.NestedType = append(message.NestedType, describeMessage(of, entry))
				of = prefix + name + "." + of
			}
			message.Field = append(message.Field, describeField(f, of))
		}
		file.MessageType = append(file.MessageType, message)
	}
	built, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
	check(err)
	return func(message string) protoreflect.MessageDescriptor {
		return built.Messages().ByName(protoreflect.Name(message))
	}
}

func describeMessage(name string, fields []field) *descriptorpb.DescriptorProto {
	message := &descriptorpb.DescriptorProto{
		Name: proto.String(name), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
	}
	for _, f := range fields {
		message.Field = append(message.Field, describeField(f, ""))
	}
	return message
}

func describeField(f field, of string) *descriptorpb.FieldDescriptorProto {
	described := &descriptorpb.FieldDescriptorProto{
		Name: proto.String(f.name), Number: proto.Int32(f.number), Type: f.kind.Enum(), Label: f.label.Enum(),
	}
	if of != "" {
		described.TypeName = proto.String(of)
	}
	return described
}
