const ONLY_SPACE = /^\p{White_Space}*$/u;

/**
 * Whether a queue name, task id, group or type is blank for asynq: empty, or only Unicode white
 * space. `trim()` differs: it keeps U+0085 and removes U+FEFF (wire-protocol section 3.1).
 */
export const isBlank = (text: string): boolean => ONLY_SPACE.test(text);
