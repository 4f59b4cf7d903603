package main

import (
	"encoding/hex"
	"fmt"
	"math/rand"
	"sort"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// A verdict is how Go's protobuf library reads some bytes as a TaskMessage, without the check for UTF-8.
type verdict struct {
	Name string `json:",omitempty"`
	Hex  string
	// Whether it refuses them.
	Refused bool `json:",omitempty"`
	// Otherwise: non-zero fields by their names in the protocol; text and bytes in hexadecimal, integers as text, headers as
	// a list of key and value, sorted.
	Fields  map[string]string `json:",omitempty"`
	Headers [][2]string       `json:",omitempty"`
	// What it does not know, in hexadecimal.
	Unknown string `json:",omitempty"`
}

func makeVerdicts() (verdicts []verdict) {
	taskMessage := describe("proto2")("TaskMessage")
	for _, c := range handmade() {
		v := judge(taskMessage, c.bytes)
		v.Name = c.name
		verdicts = append(verdicts, v)
	}
	random := rand.New(rand.NewSource(1))
	for range 600 {
		verdicts = append(verdicts, judge(taskMessage, mutated(random)))
	}
	return verdicts
}

func judge(descriptor protoreflect.MessageDescriptor, bytes []byte) verdict {
	v := verdict{Hex: hex.EncodeToString(bytes)}
	read := dynamicpb.NewMessage(descriptor)
	if err := proto.Unmarshal(bytes, read); err != nil {
		v.Refused = true
		return v
	}
	v.Fields = map[string]string{}
	read.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
			v.Headers = headersOf(value.Map())
		case field.Kind() == protoreflect.StringKind:
			v.Fields[string(field.Name())] = hex.EncodeToString([]byte(value.String()))
		case field.Kind() == protoreflect.BytesKind:
			v.Fields[string(field.Name())] = hex.EncodeToString(value.Bytes())
		default:
			v.Fields[string(field.Name())] = fmt.Sprint(value.Int())
		}
		return true
	})
	v.Unknown = hex.EncodeToString(read.GetUnknown())
	return v
}

func headersOf(entries protoreflect.Map) (headers [][2]string) {
	entries.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		headers = append(headers, [2]string{hex.EncodeToString([]byte(key.String())), hex.EncodeToString([]byte(value.String()))})
		return true
	})
	sort.Slice(headers, func(i, j int) bool { return headers[i][0] < headers[j][0] })
	return headers
}

type handmadeCase struct {
	name  string
	bytes []byte
}

func handmade() (cases []handmadeCase) {
	add := func(name, text string) {
		bytes, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		check(err)
		cases = append(cases, handmadeCase{name, bytes})
	}
	add("no bytes", "")
	add("tag without value", "0a")
	add("text shorter than its length", "0a05 6161")
	add("length of 4 GiB", "0a ffffffff0f")
	add("length beyond 32 bits", "0a 808080808001")
	add("length of 2^64 - 1", "12 ffffffffffffffffff01")
	add("truncated tag", "80")
	add("field number 0", "00 01")
	add("field number 0, length-delimited", "02 00")
	add("highest field number", "f8ffffff0f 01")
	add("field number too high", "8080808010 01")
	add("wire type 6", "0e 01")
	add("wire type 7", "07")
	add("wire type 6 in an unknown field", "8601 01")
	add("end of a group never begun", "84 01")
	add("group", "8301 0801 8401 0a0174")
	add("group within a group", "8301 8b01 8c01 8401")
	add("groups closed in the wrong order", "8301 8b01 8401 8c01")
	add("group never closed", "8301 0801")
	add("truncated value in a group", "8301 0a05 8401")
	add("known field as a group", "0b 0c 1a0178")
	add("known field of another wire type: varint for text", "08 05")
	add("known field of another wire type: fixed64", "41 0102030405060708")
	add("known field of another wire type: fixed32", "2d 01020304")
	add("known field of another wire type: packed", "2a 03 010203")
	add("truncated fixed64", "41 0102")
	add("truncated fixed32", "2d 01")
	add("unknown fields of every wire type", "8001 7b 8101 0102030405060708 8201 03616263 8501 01020304")
	add("varint of 10 bytes", "40 ffffffffffffffffff01")
	add("varint of more than 64 bits", "40 ffffffffffffffffff02")
	add("varint of 11 bytes", "40 ffffffffffffffffffff01")
	add("varint longer than it need be", "28 998000")
	add("int32 from 64 bits", "28 ffffffffffffffff7f")
	add("int32 beyond 32 bits", "28 8180808010")
	add("tag longer than it need be", "8a00 0174")
	add("the last of several wins", "0a0161 0a0162 2801 2802 1a00")
	add("fields in no order", "2819 220764656661756c74 1a0178 0a0174")
	add("header without key", "7a03 120176")
	add("header without value", "7a03 0a016b")
	add("empty header", "7a00")
	add("header twice", "7a060a016b120176 7a060a016b120177")
	add("header with parts in reverse", "7a06 120176 0a016b")
	add("header with an unknown field", "7a08 0a016b 120176 1801")
	add("header with a part of another wire type", "7a05 0801 120176")
	add("header whose text passes its end", "7a03 0a0561 616161")
	add("header truncated", "7a09 0a016b 1201")
	add("header as varint", "78 01")
	for _, number := range extremeIntegers {
		add(fmt.Sprint("int64 ", number), "48"+hex.EncodeToString(protowire.AppendVarint(nil, uint64(number))))
	}
	return cases
}

// mutated is a message of random fields, most of them damaged in a few bytes.
func mutated(random *rand.Rand) []byte {
	var bytes []byte
	for range random.Intn(6) {
		number := protowire.Number(1 + random.Intn(18))
		switch random.Intn(4) {
		case 0:
			bytes = protowire.AppendVarint(protowire.AppendTag(bytes, number, protowire.VarintType), random.Uint64()>>random.Intn(64))
		case 1:
			bytes = protowire.AppendFixed32(protowire.AppendTag(bytes, number, protowire.Fixed32Type), random.Uint32())
		default:
			text := make([]byte, random.Intn(6))
			random.Read(text)
			bytes = protowire.AppendBytes(protowire.AppendTag(bytes, number, protowire.BytesType), text)
		}
	}
	for range random.Intn(3) {
		if len(bytes) > 0 {
			bytes[random.Intn(len(bytes))] = byte(random.Intn(256))
		}
	}
	if random.Intn(4) == 0 {
		bytes = bytes[:random.Intn(len(bytes)+1)]
	}
	return bytes
}
