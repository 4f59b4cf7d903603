import { ConfigurableModuleBuilder, type DynamicModule } from '@nestjs/common';
import type { AsynqModuleExtras, AsynqModuleOptions } from './connection/asynq-module.options.js';
import { tasksProviders } from './calls/tasks.providers.js';
import { connectionProviders } from './connection.providers.js';
import { AsynqCoreModule } from './asynq-core.module.js';
import { RAW_MODULE_OPTIONS } from './connection/connection.tokens.js';
import { DEFAULT_CONNECTION } from './names/nest.constants.js';
import {
  getAsynqBrokerToken,
  getAsynqClientToken,
  getAsynqHealthIndicatorToken,
  getAsynqHealthToken,
  getAsynqInspectorToken,
  getAsynqSchedulerToken,
  getAsynqSemaphoresToken,
  getAsynqServerToken,
  getAsynqTaskEventsToken,
} from './nest.tokens.js';

const NO_EXTRAS: AsynqModuleExtras = { name: undefined, isGlobal: false, extraProviders: undefined };

export const { ConfigurableModuleClass, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<AsynqModuleOptions>({ optionsInjectionToken: RAW_MODULE_OPTIONS })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createAsynqOptions')
    .setExtras(NO_EXTRAS, withConnection)
    .build();

/** The tokens of what other modules inject. */
const EXPORTED = [
  getAsynqBrokerToken,
  getAsynqClientToken,
  getAsynqHealthToken,
  getAsynqHealthIndicatorToken,
  getAsynqInspectorToken,
  getAsynqSchedulerToken,
  getAsynqSemaphoresToken,
  getAsynqServerToken,
  getAsynqTaskEventsToken,
];

/** Adds the providers of one connection to the module that Nest's builder made. */
function withConnection(definition: DynamicModule, extras: AsynqModuleExtras): DynamicModule {
  const name = extras.name ?? DEFAULT_CONNECTION;
  return {
    ...definition,
    global: extras.isGlobal ?? false,
    imports: [...(definition.imports ?? []), AsynqCoreModule],
    // Read when Nest scans the modules: then the files that inject tasks are loaded.
    get providers() {
      const given = [...(definition.providers ?? []), ...(extras.extraProviders ?? [])];
      return [...given, ...connectionProviders(name), ...tasksProviders()];
    },
    get exports() {
      return [...EXPORTED.map((tokenOf) => tokenOf(name)), ...tasksProviders().map(({ provide }) => provide)];
    },
  };
}
