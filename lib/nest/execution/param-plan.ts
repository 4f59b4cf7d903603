import 'reflect-metadata';
import type { ParamsFactory } from '@nestjs/core';
import type { TaskContext } from '../../task/context.js';
import type { PipeLike } from '../decorators/handler-parameter.js';
import { NEST_METADATA, PARAM_TYPE, TASK_PARAMS_METADATA } from '../names/nest.constants.js';
import { paramMetadata, type ParamMetadata, paramTypes, typeOfKey } from './handler-params.js';
import type { HandlerMethod } from '../discovery/methods-of.js';
import { callOf, fieldOf } from './batch-call.js';

/** How the arguments of a handler are made, with or without Nest's pipeline. */
export interface ParamPlan {
  /** Whether to decode the payload: not for handlers that take its bytes, or only the context. */
  readonly decodes: boolean;
  /** Whether a parameter gets the stored bytes. */
  readonly takesBytes: boolean;
  /** Whether a parameter gets the steps of the task. */
  readonly takesSteps: boolean;
  /** The fields of the payload that parameters take by name. */
  readonly fields: readonly string[];
  /** The pipes of parameters. */
  readonly pipes: readonly PipeLike[];
  /** Whether there are parameter decorators of the application, which need an execution context. */
  readonly custom: boolean;
  /** How many parameters are ours. */
  readonly own: number;
  /**
   * Calls the method without a pipeline, with the payload and the context of a task, or with arrays of them. Reads it from the instance
   * at each call: a spy may have replaced it.
   */
  readonly call: (instance: object, payload: unknown, context: unknown) => unknown;
}

type Extract = (payload: unknown, context: unknown) => unknown;

/** Extracts the value of a parameter from the arguments `[payload, context]`. One object for all: Nest 11 keeps the first it sees. */
export const taskParamsFactory: ParamsFactory = {
  exchangeKeyForValue(type, data, args) {
    const [payload, context] = args as [unknown, unknown];
    const batch = callOf(context);
    return batch ? batch.param(type, data) : extractor(type, data)(payload, context);
  },
};

function extractor(type: number, data: unknown): Extract {
  if (type === PARAM_TYPE.task) return (_, task) => task;
  if (type === PARAM_TYPE.steps) return (_, task) => (task as TaskContext).steps;
  if (type === PARAM_TYPE.bytes) return (_, task) => (task as TaskContext).payload;
  if (type !== PARAM_TYPE.payload) return () => undefined;
  if (typeof data !== 'string') return (payload) => payload;
  return (payload) => fieldOf(payload, data);
}

/** The same for a batch handler, whose arguments are arrays. */
function batchExtractor(type: number, data: unknown): Extract {
  if (type !== PARAM_TYPE.payload || typeof data !== 'string') return extractor(type, data);
  return (payloads) => (payloads as readonly unknown[]).map((payload) => fieldOf(payload, data));
}

/**
 * Reads the parameters of a method and stores them in the form of Nest's pipeline under a key of our own. Without decorators they
 * are `(payload, context)`; payloads typed as bytes are marked as bytes.
 *
 * @param owner the prototype that declares the method
 */
export function planParams(owner: object, methodName: string, isBatch: boolean): ParamPlan {
  const types = paramTypes(owner, methodName);
  const declared = Object.entries(paramMetadata(owner, methodName));
  const params = Object.fromEntries(declared.map((entry) => markBytes(entry, types)));
  Reflect.defineMetadata(TASK_PARAMS_METADATA, params, owner.constructor, methodName);
  const keys = Object.keys(params);
  return {
    decodes: keys.some((key) => typeOfKey(key) === PARAM_TYPE.payload),
    takesBytes: keys.some((key) => typeOfKey(key) === PARAM_TYPE.bytes),
    takesSteps: keys.some((key) => typeOfKey(key) === PARAM_TYPE.steps),
    fields: Object.entries(params).flatMap(([key, { data }]) =>
      typeOfKey(key) === PARAM_TYPE.payload && typeof data === 'string' ? [data] : [],
    ),
    pipes: Object.values(params).flatMap(({ pipes }) => pipes ?? []),
    custom: keys.some(isCustom),
    own: keys.filter((key) => !isCustom(key)).length,
    call: caller(methodName, params, isBatch ? batchExtractor : extractor),
  };
}

const isCustom = (key: string): boolean => key.includes(NEST_METADATA.customRouteArgument);

function markBytes([key, param]: [string, ParamMetadata], types: readonly unknown[]): [string, ParamMetadata] {
  const type = types[param.index];
  if (typeOfKey(key) !== PARAM_TYPE.payload || param.data !== undefined || !isBytesType(type)) return [key, param];
  return [`${PARAM_TYPE.bytes}:${param.index}`, param];
}

const isBytesType = (type: unknown): boolean =>
  type === Uint8Array || (typeof type === 'function' && type.prototype instanceof Uint8Array);

/** Calls with one or two parameters need no array: this is the hot path. */
function caller(
  methodName: string,
  params: Readonly<Record<string, ParamMetadata>>,
  extract: typeof extractor,
): ParamPlan['call'] {
  const extracts: Extract[] = [];
  for (const [key, { index, data }] of Object.entries(params)) extracts[index] = extract(typeOfKey(key), data);
  const all = Array.from(extracts, (extract) => extract ?? (() => undefined));
  const [first, second] = all;
  const methodOf = (instance: object) => instance as Record<string, HandlerMethod>;
  if (all.length === 1) return (instance, payload, task) => methodOf(instance)[methodName]!(first!(payload, task));
  if (all.length === 2) {
    return (instance, payload, task) => methodOf(instance)[methodName]!(first!(payload, task), second!(payload, task));
  }
  return (instance, payload, task) => methodOf(instance)[methodName]!(...all.map((extract) => extract(payload, task)));
}
