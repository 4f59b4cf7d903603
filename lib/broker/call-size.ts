/**
 * Payloads and results that one call of a script reads or writes, in bytes; a larger one goes alone.
 * Nobody else gets a reply of Redis meanwhile: a megabyte takes it some milliseconds.
 */
export const MAX_CALL_BYTES = 1024 * 1024;
