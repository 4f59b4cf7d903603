import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import type { TaskHandlerMetadata } from '../decorators/task-handler.decorator.js';
import type { PeriodicSourceMetadata } from '../decorators/periodic-task-source.decorator.js';
import { PERIODIC_SOURCE_METADATA, TASK_HANDLER_METADATA } from '../nest.constants.js';

@Injectable()
export class HandlerMetadataAccessor {
  /** What the `@TaskHandler`s of a method say; empty when it has none. */
  handlersOf(method: object): readonly TaskHandlerMetadata[] {
    return (Reflect.getOwnMetadata(TASK_HANDLER_METADATA, method) ?? []) as TaskHandlerMetadata[];
  }

  /** What the `@PeriodicTaskSource` of a method says, if it has one. */
  sourceOf(method: object): PeriodicSourceMetadata | undefined {
    return Reflect.getOwnMetadata(PERIODIC_SOURCE_METADATA, method) as PeriodicSourceMetadata | undefined;
  }
}
