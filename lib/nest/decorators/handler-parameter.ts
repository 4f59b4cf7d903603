import 'reflect-metadata';
import type { PipeTransform, Type } from '@nestjs/common';
import { InvalidHandlerError } from '../../errors.js';
import { NEST_METADATA } from '../names/nest.constants.js';
import { fieldOfAnother, notAParameter } from '../names/nest.messages.js';
import { nameOf } from './handler-method.js';

/** A pipe, or the class of one. */
export type PipeLike = PipeTransform | Type<PipeTransform>;

/**
 * Stores a parameter where `createParamDecorator` stores its own, so that an application's parameter decorators work on handlers
 * beside ours.
 *
 * @param task the task type whose field it is, where the decorator was given a definition
 */
export function handlerParameter(
  decorator: string,
  paramType: number,
  data: string | undefined,
  pipes: PipeLike[],
  task?: string,
): ParameterDecorator {
  return (target, key, index) => {
    if (key === undefined)
      throw new InvalidHandlerError(notAParameter(decorator, (target as { name?: string }).name ?? ''));
    // Own metadata only: a method that overrides another declares its own parameters.
    const others = ownParameters(target, key);
    const all = { ...others, [`${paramType}:${index}`]: { index, data, pipes, ...(task !== undefined && { task }) } };
    Reflect.defineMetadata(NEST_METADATA.routeArguments, all, target.constructor, key);
  };
}

interface Stored {
  readonly data?: unknown;
  readonly task?: string;
}

const ownParameters = (target: object, key: string | symbol) =>
  Reflect.getOwnMetadata(NEST_METADATA.routeArguments, target.constructor, key) as Record<string, Stored> | undefined;

/**
 * The decorators of parameters have run before that of their method.
 *
 * @param type of the tasks that the method handles
 * @throws InvalidHandlerError when a parameter takes a field of another task
 */
export function requireOwnFields(target: object, key: string | symbol, type: string): void {
  for (const { task, data } of Object.values(ownParameters(target, key) ?? {})) {
    if (task === undefined || task === type) continue;
    throw new InvalidHandlerError(fieldOfAnother(nameOf(target, key), String(data), task, type));
  }
}
