import 'reflect-metadata';
import type { PipeTransform, Type } from '@nestjs/common';
import { InvalidHandlerError } from '../../errors.js';
import { NEST_METADATA } from '../names/nest.constants.js';
import { notAParameter } from '../names/nest.messages.js';

/** A pipe, or the class of one. */
export type PipeLike = PipeTransform | Type<PipeTransform>;

/**
 * Stores a parameter where `createParamDecorator` stores its own, so that an application's parameter decorators work on handlers
 * beside ours.
 */
export function handlerParameter(
  decorator: string,
  paramType: number,
  data: string | undefined,
  pipes: PipeLike[],
): ParameterDecorator {
  return (target, key, index) => {
    if (key === undefined)
      throw new InvalidHandlerError(notAParameter(decorator, (target as { name?: string }).name ?? ''));
    // Own metadata only: a method that overrides another declares its own parameters.
    const others = Reflect.getOwnMetadata(NEST_METADATA.routeArguments, target.constructor, key) as object | undefined;
    const all = { ...others, [`${paramType}:${index}`]: { index, data, pipes } };
    Reflect.defineMetadata(NEST_METADATA.routeArguments, all, target.constructor, key);
  };
}
