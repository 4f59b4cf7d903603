/*
 * asynq's five protobuf messages, as bytes and as objects. The codec is our own: bench/codec measures it beside the
 * libraries. proto-reader.ts and proto-writer.ts know the format; the two *-codec.ts files know the messages.
 */
export * from './monitoring-codec.js';
export { decodeTaskMessage, encodeTaskMessage } from './task-message-codec.js';
