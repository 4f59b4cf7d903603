/*
 * asynq's five protobuf messages, as bytes and as objects. The codec is our own: bench/codec
 * compares it with libraries. proto-reader.ts and proto-writer.ts implement the format; the two
 * *-codec.ts files the messages.
 */
export * from './monitoring-codec.js';
export { decodeTaskMessage, encodeTaskMessage } from './task-message-codec.js';
