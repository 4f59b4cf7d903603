import type { TaskDefinition } from './definition.js';

/** A task by its definition or its type. */
export type AnyTask = string | TaskDefinition;

/** The payload of a task; `unknown` for one that is given by its type. */
export type PayloadFor<T> = T extends TaskDefinition<infer P> ? P : unknown;

/** The result of a task; `unknown` for one that is given by its type. */
export type ResultFor<T> = T extends TaskDefinition<unknown, infer R> ? R : unknown;

/** What the compiler shows of a definition that is given without its payload. */
export interface MissingPayload<P> {
  readonly 'the payload is missing: give it after the definition': P;
}
