const ONLY_SPACE = /^\p{White_Space}*$/u;

/**
 * Whether asynq takes a queue name, task id, group or type for blank: empty, or nothing but Unicode white space. Differs from
 * `trim()`, which misses U+0085 and takes U+FEFF (wire-protocol section 3.1).
 */
export const isBlank = (text: string): boolean => ONLY_SPACE.test(text);
