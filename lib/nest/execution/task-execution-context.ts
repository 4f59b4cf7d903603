import type { ExecutionContext, Type } from '@nestjs/common';
import type { TaskContext } from '../../task/context.js';
import { ASYNQ_CONTEXT_TYPE } from '../names/nest.constants.js';

/** The ArgumentsHost of exception filters; guards and interceptors get Nest's own, which returns the same. */
export class TaskExecutionContext implements ExecutionContext {
  constructor(
    private readonly args: readonly [payload: unknown, context: TaskContext | readonly TaskContext[]],
    private readonly classRef: Type,
    private readonly handler: (...args: never[]) => unknown,
  ) {}

  getClass<T>(): Type<T> {
    return this.classRef as Type<T>;
  }

  getHandler(): (...args: never[]) => unknown {
    return this.handler;
  }

  getArgs<T extends unknown[]>(): T {
    return this.args as unknown as T;
  }

  getArgByIndex<T>(index: number): T {
    return this.args[index] as T;
  }

  getType<T extends string>(): T {
    return ASYNQ_CONTEXT_TYPE as T;
  }

  switchToRpc() {
    return { getData: <T>() => this.getArgByIndex<T>(0), getContext: <T>() => this.getArgByIndex<T>(1) };
  }

  switchToHttp() {
    return {
      getRequest: <T>() => this.getArgByIndex<T>(0),
      getResponse: <T>() => this.getArgByIndex<T>(1),
      getNext: <T>() => this.getArgByIndex<T>(2),
    };
  }

  switchToWs() {
    return {
      getClient: <T>() => this.getArgByIndex<T>(0),
      getData: <T>() => this.getArgByIndex<T>(1),
      getPattern: () => '',
    };
  }
}
