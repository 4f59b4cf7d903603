import type { PipeTransform, Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { InvalidHandlerError } from '../../errors.js';
import { jsonCodec, type PayloadCodec } from '../../task/codec.js';
import type { PipeLike } from '../decorators/handler-parameter.js';
import { boundEnhancers } from '../execution/enhancers.js';
import { handlerParams, type HandlerParam } from '../execution/handler-params.js';
import { refusalOf } from '../execution/invalid-payload.js';
import { noPipe, pipeNotMade } from '../names/nest.messages.js';
import type { CalledHandler } from './called-handlers.js';
import type { TasksClass } from './tasks-of.js';

interface CheckedParam extends HandlerParam {
  readonly transforms: readonly PipeTransform[];
}

/**
 * Runs the pipes of a handler where it is called (`validate: 'both'`): those of its class, its method and its payload, not those of the
 * application, which may be another one there.
 */
export class CallerCheck {
  private params: Promise<readonly CheckedParam[]> | undefined;

  constructor(
    private readonly handler: CalledHandler,
    private readonly tasks: TasksClass,
    private readonly moduleRef: ModuleRef,
  ) {}

  /** Makes the pipes, once. @throws InvalidHandlerError when there are none, or one cannot be made here */
  prepare(): Promise<readonly CheckedParam[]> {
    this.params ??= this.make();
    return this.params;
  }

  /**
   * Checks what the handler would get, which is not what the caller has: JSON may change it.
   *
   * @param moduleCodec the codec of the connection, if it has one
   * @throws InvalidPayloadError when a pipe refuses the payload; else what a pipe throws
   */
  async of(payload: unknown, moduleCodec: PayloadCodec = jsonCodec): Promise<void> {
    const { metadata } = this.handler;
    const params = await this.prepare();
    const received = this.received(payload, metadata.codec ?? moduleCodec);
    if (!received) return; // the enqueue says why
    for (const param of params) {
      try {
        await run(param, received.payload);
      } catch (error) {
        throw refusalOf(error, metadata.pattern);
      }
    }
  }

  private received(payload: unknown, codec: PayloadCodec): { payload: unknown } | undefined {
    try {
      return { payload: codec.decode(Buffer.from(codec.encode(payload) ?? [])) };
    } catch {
      return undefined;
    }
  }

  private async make(): Promise<CheckedParam[]> {
    const { owner, methodName, method } = this.handler;
    const bound = boundEnhancers({ owner, method, instanceClass: this.tasks }, 'pipes') as PipeLike[];
    const params = handlerParams(owner, methodName).filter(({ kind }) => kind === 'whole' || kind === 'field');
    if (params.every(({ pipes }) => bound.length + pipes.length === 0)) {
      throw new InvalidHandlerError(noPipe(this.handler.label));
    }
    return Promise.all(
      params.map(async (param) => {
        const transforms = await Promise.all([...bound, ...param.pipes].map((pipe) => this.instanceOf(pipe)));
        return { ...param, transforms };
      }),
    );
  }

  /** The one that the application has, or one made here. */
  private async instanceOf(pipe: PipeLike): Promise<PipeTransform> {
    if (typeof pipe !== 'function') return pipe;
    try {
      return this.moduleRef.get<PipeTransform>(pipe, { strict: false });
    } catch {
      return this.create(pipe);
    }
  }

  private async create(pipe: Type<PipeTransform>): Promise<PipeTransform> {
    try {
      return await this.moduleRef.create(pipe);
    } catch (error) {
      const reason = error instanceof Error ? error.message.split('\n', 1)[0]! : String(error);
      throw new InvalidHandlerError(pipeNotMade(this.handler.label, pipe.name, reason), { cause: error });
    }
  }
}

/** As Nest does it for the handler. */
async function run({ kind, data, metatype, transforms }: CheckedParam, payload: unknown): Promise<void> {
  let value = kind === 'whole' ? payload : (payload as Record<string, unknown> | null | undefined)?.[data!];
  for (const pipe of transforms)
    value = await pipe.transform(value, { type: 'body', metatype: metatype as Type, data });
}
