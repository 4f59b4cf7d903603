import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import type { TaskHandlerMetadata } from '../decorators/task-handler.decorator.js';
import type { PeriodicSourceMetadata } from '../decorators/periodic-task-source.decorator.js';
import { PERIODIC_SOURCE_METADATA, TASK_HANDLER_METADATA } from '../names/nest.constants.js';

@Injectable()
export class HandlerMetadataAccessor {
  /** The metadata of each `@TaskHandler` of a method. */
  handlersOf(method: object): readonly TaskHandlerMetadata[] {
    return (Reflect.getOwnMetadata(TASK_HANDLER_METADATA, method) ?? []) as TaskHandlerMetadata[];
  }

  /** The metadata of a method's `@PeriodicTaskSource`. */
  sourceOf(method: object): PeriodicSourceMetadata | undefined {
    return Reflect.getOwnMetadata(PERIODIC_SOURCE_METADATA, method) as PeriodicSourceMetadata | undefined;
  }
}
