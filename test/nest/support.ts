import type { LoggerService, ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule, type TestingModuleBuilder } from '@nestjs/testing';
import { ASYNQ_BROKER, AsynqModule, type AsynqModuleOptions } from 'nestjs-asynq';
import { AsynqTester, InMemoryBroker } from 'nestjs-asynq/testing';
import { onTestFinished } from 'vitest';

/** Logs nothing: many tests here are about tasks that fail. */
export const quiet = { log() {}, error() {}, warn() {}, debug() {}, verbose() {}, fatal() {} };

/** A compiled module with one connection on an InMemoryBroker; closed when the test ends. */
export async function testApp(
  metadata: ModuleMetadata,
  options: Partial<AsynqModuleOptions> = {},
): Promise<{ app: TestingModule; tasks: AsynqTester }> {
  const imports = [AsynqModule.forRoot({ connection: { host: 'localhost' }, ...options }), ...(metadata.imports ?? [])];
  const app = await compile(Test.createTestingModule({ ...metadata, imports }));
  return { app, tasks: AsynqTester.from(app) };
}

/** Compiles on an InMemoryBroker, quietly unless the test reads the log. */
export async function compile(builder: TestingModuleBuilder, logger: LoggerService = quiet): Promise<TestingModule> {
  const app = await builder.setLogger(logger).overrideProvider(ASYNQ_BROKER).useClass(InMemoryBroker).compile();
  onTestFinished(() => app.close().catch(ignoreFailedInit));
  return app;
}

/** Nest 11 refuses to close what could not be initialized, with the same error. */
function ignoreFailedInit(error: Error & { code?: string }): void {
  if (!error.code?.startsWith('ASYNQ_INVALID')) throw error;
}

/** What a promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    () => {
      throw new Error('expected a rejection');
    },
    (error: Error) => error,
  );
}
