import {
  BadRequestException,
  Injectable,
  ParseIntPipe,
  UseInterceptors,
  UsePipes,
  ValidationPipe,
  type PipeTransform,
} from '@nestjs/common';
import { APP_GUARD, APP_PIPE } from '@nestjs/core';
import { IsEmail, IsInt, ValidateNested } from 'class-validator';
import { Type } from 'class-transformer';
import { InvalidPayloadError, Payload, TaskCtx, TaskHandler, type TaskContext } from 'nestjs-asynq';
import { catchError, throwError } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { testApp } from './support.js';

class Address {
  @IsEmail()
  email!: string;
}

class WelcomeDto {
  @IsInt()
  userId!: number;

  @ValidateNested()
  @Type(() => Address)
  address!: Address;
}

const handled: unknown[] = [];

@Injectable()
class Tasks {
  @TaskHandler('decorated')
  decorated(@Payload() dto: WelcomeDto, @TaskCtx() _task: TaskContext) {
    handled.push(dto);
    return dto instanceof WelcomeDto;
  }

  @TaskHandler('undecorated')
  undecorated(dto: WelcomeDto, _task: TaskContext) {
    return dto instanceof WelcomeDto;
  }

  @TaskHandler('bytes')
  bytes(@Payload() bytes: Uint8Array) {
    return bytes.length;
  }

  @TaskHandler('throws-400')
  throws(@Payload() _dto: object) {
    throw new BadRequestException(['the partner said 400']);
  }

  @TaskHandler('throws-invalid')
  throwsInvalid() {
    throw new InvalidPayloadError('user 7 is gone');
  }

  @TaskHandler('number')
  number(@Payload(ParseIntPipe) n: number) {
    return n;
  }
}

const pipe = { provide: APP_PIPE, useValue: new ValidationPipe({ transform: true, whitelist: true }) };
const valid = { userId: 1, address: { email: 'a@example.com' } };
const invalid = { userId: 'x', address: { email: 'y' } };
const messages = 'userId must be an integer number; address.email must be an email';

describe('ValidationPipe', () => {
  test.each(['decorated', 'undecorated'])('hands a valid DTO to a handler (%s)', async (type) => {
    const { tasks } = await testApp({ providers: [Tasks, pipe] });
    expect(await tasks.work(type, { ...valid, more: 1 })).toMatchObject({ outcome: 'done', result: true });
  });

  test.each(['decorated', 'undecorated'])('archives a task with an invalid one at once (%s)', async (type) => {
    handled.splice(0);
    const { tasks } = await testApp({ providers: [Tasks, pipe] });
    const { outcome, error } = await tasks.work(type, invalid);
    expect(outcome).toBe('archived');
    expect(error).toMatchObject({ code: 'ASYNQ_SKIP_RETRY', cause: { code: 'ASYNQ_INVALID_PAYLOAD' } });
    expect((error as { cause: Error }).cause.cause).toBeInstanceOf(BadRequestException);
    const text = `invalid payload of task "${type}": ${messages} (refused by the global pipe ValidationPipe)`;
    expect(tasks.archived(type)).toMatchObject([{ lastErr: text, retried: 0, state: 'archived' }]);
    expect(handled).toEqual([]);
  });

  test('works at method level, by its class', async () => {
    @Injectable()
    class Local {
      @TaskHandler('local')
      @UsePipes(ValidationPipe)
      run(@Payload() dto: WelcomeDto) {
        return dto.userId;
      }
    }
    const { tasks } = await testApp({ providers: [Local] });
    expect(await tasks.work('local', valid)).toMatchObject({ outcome: 'done', result: 1 });
    expect(await tasks.work('local', invalid)).toMatchObject({ outcome: 'archived' });
  });

  test('ignores bytes and the context', async () => {
    const validateCustomDecorators = {
      provide: APP_PIPE,
      useValue: new ValidationPipe({ validateCustomDecorators: true }),
    };
    const { tasks } = await testApp({ providers: [Tasks, validateCustomDecorators] });
    expect(await tasks.work('bytes', Buffer.from([1, 2, 3]))).toMatchObject({ outcome: 'done', result: 3 });
    expect(await tasks.work('decorated', valid)).toMatchObject({ outcome: 'done' });
  });
});

describe('an invalid payload', () => {
  test('is a payload that a pipe of a parameter refuses', async () => {
    const { tasks } = await testApp({ providers: [Tasks] });
    expect(await tasks.work('number', '12')).toMatchObject({ outcome: 'done', result: 12 });
    expect(await tasks.work('number', 'twelve')).toMatchObject({ outcome: 'archived' });
    expect(tasks.archived()[0]?.lastErr).toBe(
      'invalid payload of task "number": Validation failed (numeric string is expected)',
    );
  });

  test('is not the reason when the handler throws a BadRequestException', async () => {
    const { tasks } = await testApp({ providers: [Tasks, pipe] });
    expect(await tasks.work('throws-400', {})).toMatchObject({
      outcome: 'retry',
      error: new BadRequestException(['the partner said 400']),
    });
  });

  test('is not the reason when a pipe fails for another one', async () => {
    const broken: PipeTransform = {
      transform() {
        throw new Error('connection refused');
      },
    };
    const { tasks } = await testApp({ providers: [Tasks, { provide: APP_PIPE, useValue: broken }] });
    expect(await tasks.work('number', '1')).toMatchObject({
      outcome: 'retry',
      error: { message: 'connection refused' },
    });
  });

  test('is a payload that the handler refuses, with or without a pipeline', async () => {
    for (const providers of [[Tasks], [Tasks, pipe]]) {
      const { tasks } = await testApp({ providers });
      expect(await tasks.work('throws-invalid')).toMatchObject({ outcome: 'archived' });
      expect(tasks.archived()[0]?.lastErr).toBe('user 7 is gone');
    }
  });

  test.each([false, true])('is a payload that cannot be decoded (piped: %s)', async (piped) => {
    const guard = { provide: APP_GUARD, useValue: { canActivate: () => true } };
    const { tasks } = await testApp({ providers: piped ? [Tasks, guard] : [Tasks] });
    expect(await tasks.work('undecorated', Buffer.from('{"userId":'))).toMatchObject({ outcome: 'archived' });
    expect(tasks.archived()[0]?.lastErr).toMatch(/^payload of task "undecorated" cannot be decoded: .*JSON/);
  });

  test('can be retried instead', async () => {
    const { tasks } = await testApp({ providers: [Tasks, pipe] }, { invalidPayload: 'retry' });
    const refused = await tasks.work('decorated', invalid);
    expect(refused).toMatchObject({ outcome: 'retry', error: { code: 'ASYNQ_INVALID_PAYLOAD' } });
    expect(tasks.enqueued('decorated')[0]?.lastErr).toBe(
      `invalid payload of task "decorated": ${messages} (refused by the global pipe ValidationPipe)`,
    );
    expect(await tasks.work('undecorated', Buffer.from('{'))).toMatchObject({ outcome: 'retry' });
  });

  test('is still archived when an interceptor wraps the error with its cause', async () => {
    @Injectable()
    class Local {
      @TaskHandler('wrapped')
      @UseInterceptors({
        intercept: (_, next) =>
          next.handle().pipe(catchError((cause) => throwError(() => new InvalidPayloadError('wrapped', { cause })))),
      })
      run(@Payload(ParseIntPipe) n: number) {
        return n;
      }
    }
    const { tasks } = await testApp({ providers: [Local] });
    expect(await tasks.work('wrapped', 'x')).toMatchObject({ outcome: 'archived', error: { message: 'wrapped' } });
  });
});
