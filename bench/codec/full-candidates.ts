import { create, createFileRegistry, fromBinary, toBinary, type DescMessage, type Message } from '@bufbuild/protobuf';
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from '@bufbuild/protobuf/wkt';
import protobufjs from 'protobufjs';
import type { TaskMessage } from '../../lib/wire/message.js';
import { bufferOf, NO_BYTES, type Candidate } from './candidate.js';
import { SCALARS } from './fields.js';

/*
 * The libraries as their manuals describe them: with a schema and their own messages. Our object is converted
 * from theirs and back, as this package would have to (bytes to Buffer, bigint to number).
 */

const TYPES = {
  string: FieldDescriptorProto_Type.STRING,
  bytes: FieldDescriptorProto_Type.BYTES,
  int32: FieldDescriptorProto_Type.INT32,
  int64: FieldDescriptorProto_Type.INT64,
};

function bufbuildSchema(): DescMessage {
  const field = (name: string, number: number, type: FieldDescriptorProto_Type) => ({
    name,
    number,
    type,
    label: FieldDescriptorProto_Label.OPTIONAL,
  });
  const entry = {
    name: 'HeadersEntry',
    field: [field('key', 1, TYPES.string), field('value', 2, TYPES.string)],
    options: { mapEntry: true },
  };
  const headers = {
    ...field('headers', 15, FieldDescriptorProto_Type.MESSAGE),
    label: FieldDescriptorProto_Label.REPEATED,
    typeName: '.asynq.TaskMessage.HeadersEntry',
  };
  const scalars = SCALARS.map(([no, protoName, , kind]) => field(protoName, no, TYPES[kind]));
  const file = create(FileDescriptorProtoSchema, {
    name: 'asynq.proto',
    package: 'asynq',
    syntax: 'proto3',
    messageType: [{ name: 'TaskMessage', field: [...scalars, headers], nestedType: [entry] }],
  });
  return createFileRegistry(create(FileDescriptorSetSchema, { file: [file] })).getMessage('asynq.TaskMessage')!;
}

type BufbuildMessage = Message & {
  type: string;
  payload: Uint8Array;
  id: string;
  queue: string;
  retry: number;
  retried: number;
  errorMsg: string;
  timeout: bigint;
  deadline: bigint;
  uniqueKey: string;
  lastFailedAt: bigint;
  retention: bigint;
  completedAt: bigint;
  groupKey: string;
  headers: Record<string, string>;
};

const schema = bufbuildSchema();

export const bufbuildFull: Candidate = {
  name: '@bufbuild/protobuf, full messages',
  encode(message) {
    const theirs = create(schema, {
      type: message.type,
      payload: message.payload,
      id: message.id,
      queue: message.queue,
      retry: message.maxRetry,
      retried: message.retried,
      errorMsg: message.errorMsg,
      timeout: BigInt(message.timeout),
      deadline: BigInt(message.deadline),
      uniqueKey: message.uniqueKey,
      lastFailedAt: BigInt(message.lastFailedAt),
      retention: BigInt(message.retention),
      completedAt: BigInt(message.completedAt),
      groupKey: message.groupKey,
      headers: message.headers ?? {},
    } as Record<string, unknown>);
    return toBinary(schema, theirs);
  },
  decode(bytes) {
    const theirs = fromBinary(schema, bytes) as BufbuildMessage;
    return {
      type: theirs.type,
      payload: theirs.payload.length > 0 ? bufferOf(theirs.payload) : NO_BYTES,
      id: theirs.id,
      queue: theirs.queue,
      maxRetry: theirs.retry,
      retried: theirs.retried,
      errorMsg: theirs.errorMsg,
      timeout: Number(theirs.timeout),
      deadline: Number(theirs.deadline),
      uniqueKey: theirs.uniqueKey,
      lastFailedAt: Number(theirs.lastFailedAt),
      retention: Number(theirs.retention),
      completedAt: Number(theirs.completedAt),
      groupKey: theirs.groupKey,
      headers: Object.keys(theirs.headers).length > 0 ? theirs.headers : undefined,
      unknownFields: undefined,
    };
  },
};

function protobufjsType(): protobufjs.Type {
  const type = new protobufjs.Type('TaskMessage');
  for (const [no, , name, kind] of SCALARS) type.add(new protobufjs.Field(name, no, kind));
  type.add(new protobufjs.MapField('headers', 15, 'string', 'string'));
  new protobufjs.Root().define('asynq').add(type);
  return type;
}

const reflected = protobufjsType();

export const protobufjsFull: Candidate = {
  name: 'protobufjs, full messages (no unknown fields)',
  encode: (message) => reflected.encode(message).finish(),
  decode(bytes) {
    const theirs = reflected.decode(bytes) as unknown as TaskMessage;
    return {
      type: theirs.type,
      payload: theirs.payload.length > 0 ? bufferOf(theirs.payload) : NO_BYTES,
      id: theirs.id,
      queue: theirs.queue,
      maxRetry: theirs.maxRetry,
      retried: theirs.retried,
      errorMsg: theirs.errorMsg,
      timeout: Number(theirs.timeout),
      deadline: Number(theirs.deadline),
      uniqueKey: theirs.uniqueKey,
      lastFailedAt: Number(theirs.lastFailedAt),
      retention: Number(theirs.retention),
      completedAt: Number(theirs.completedAt),
      groupKey: theirs.groupKey,
      headers: theirs.headers,
      unknownFields: undefined,
    };
  },
};
