import { ConfigurableModuleBuilder, type DynamicModule } from '@nestjs/common';
import { AsynqCoreModule } from '../nest/asynq-core.module.js';
import { RAW_OUTBOX_OPTIONS, RESOLVED_OUTBOX_OPTIONS } from './outbox.tokens.js';
import { type AsynqOutboxOptions, resolveOutboxOptions } from './options.js';

export interface AsynqOutboxExtras {
  /** Whether other modules can inject AsynqOutbox without importing this one. Default false. */
  isGlobal?: boolean;
}

export const { ConfigurableModuleClass, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<AsynqOutboxOptions>({ optionsInjectionToken: RAW_OUTBOX_OPTIONS })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createAsynqOutboxOptions')
    .setExtras<AsynqOutboxExtras>({ isGlobal: false }, withOptions)
    .build();

function withOptions(definition: DynamicModule, { isGlobal = false }: AsynqOutboxExtras): DynamicModule {
  const resolved = {
    provide: RESOLVED_OUTBOX_OPTIONS,
    useFactory: resolveOutboxOptions,
    inject: [RAW_OUTBOX_OPTIONS],
  };
  return {
    ...definition,
    global: isGlobal,
    imports: [...(definition.imports ?? []), AsynqCoreModule],
    providers: [...(definition.providers ?? []), resolved],
  };
}
