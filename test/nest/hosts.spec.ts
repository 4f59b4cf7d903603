import {
  Catch,
  Controller,
  ForbiddenException,
  Injectable,
  UseFilters,
  UseGuards,
  UseInterceptors,
  type CallHandler,
  type CanActivate,
  type ExceptionFilter,
  type ExecutionContext,
  type NestInterceptor,
  type PipeTransform,
  type Type,
} from '@nestjs/common';
import { ExternalContextCreator } from '@nestjs/core';
import { Payload, TaskCtx, TaskHandler, type TaskContext } from 'nestjs-asynq';
import { map } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { testApp } from './support.js';

@Injectable()
class Words {
  readonly closed = new Set<string>();
  readonly caught: unknown[] = [];
}

@Injectable()
class Open implements CanActivate {
  constructor(private readonly words: Words) {}
  canActivate(context: ExecutionContext) {
    return !this.words.closed.has(context.getClass().name);
  }
}

@Injectable()
class Loud implements NestInterceptor {
  constructor(readonly words: Words) {}
  intercept(_: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(map((value: string) => `${value}!`));
  }
}

@Injectable()
class Upper implements PipeTransform {
  constructor(readonly words: Words) {}
  transform = (value: string) => value.toUpperCase();
}

@Catch()
@Injectable()
class Catching implements ExceptionFilter {
  constructor(private readonly words: Words) {}
  catch = (error: unknown) => void this.words.caught.push(error);
}

@Controller()
@UseGuards(Open)
@UseFilters(Catching)
class Host {
  @TaskHandler('say')
  @UseInterceptors(Loud)
  say(@Payload(Upper) word: string) {
    return word;
  }
}

/** Nest looks for the instances of enhancer classes in the module of the provider that it finds for the handler. */
describe('guards, interceptors, pipes and filters that are classes', () => {
  const own = [Words, Open, Loud, Upper, Catching];
  class Replaced extends Host {}
  test.each<[string, Parameters<typeof testApp>[0]]>([
    ['a provider', { providers: [Words, Host] }],
    ['a controller', { controllers: [Host], providers: [Words] }],
    ['a class behind another token', { providers: [Words, { provide: 'host', useClass: Host }] }],
    ['a subclass in place of a class', { providers: [Words, { provide: Host, useClass: Replaced }] }],
    ['a controller whose module provides them too', { controllers: [Host], providers: own }],
  ])('wrap the handlers of %s', async (_, metadata) => {
    const { app, tasks } = await testApp(metadata);
    expect(await tasks.work('say', 'hi')).toMatchObject({ result: 'HI!' });
    const words = app.get(Words);
    for (const { name } of [Host, Replaced] as Type[]) words.closed.add(name);
    const { error } = await tasks.work('say', 'hi');
    expect(error).toBeInstanceOf(ForbiddenException);
    expect(words.caught).toEqual([error]);
  });
});

test('handlers of two classes with one name have separate parameters, though Nest 11 caches them by name', async () => {
  const first = () => {
    @Injectable()
    class Tasks {
      @TaskHandler('first')
      @UseGuards({ canActivate: () => true })
      run(@TaskCtx() task: TaskContext) {
        return task.type;
      }
    }
    return Tasks;
  };
  const second = () => {
    @Injectable()
    class Tasks {
      @TaskHandler('second')
      @UseGuards({ canActivate: () => true })
      run(@Payload('word') word: string, @TaskCtx() task: TaskContext) {
        return [word, task.type];
      }
    }
    return Tasks;
  };
  const { app, tasks } = await testApp({ providers: [first(), second()] });
  const kept = new Map<string, unknown>();
  const nameOf = (instance: object, key: string) => instance.constructor.name + key;
  Object.assign(app.get(ExternalContextCreator), {
    handlerMetadataStorage: {
      get: (instance: object, key: string) => kept.get(nameOf(instance, key)),
      set: (instance: object, key: string, metadata: unknown) => kept.set(nameOf(instance, key), metadata),
    },
  });
  expect(await tasks.work('first', { word: 'hi' })).toMatchObject({ result: 'first' });
  expect(await tasks.work('second', { word: 'hi' })).toMatchObject({ result: ['hi', 'second'] });
});
