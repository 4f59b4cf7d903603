import { ConfigurableModuleBuilder, type DynamicModule } from '@nestjs/common';
import { AsynqCoreModule } from '../nest/asynq-core.module.js';
import { metricsController } from './metrics.controller.js';
import { resolveMetricsOptions, type AsynqMetricsExtras, type AsynqMetricsOptions } from './metrics.options.js';
import { RAW_METRICS_OPTIONS, RESOLVED_METRICS_OPTIONS } from './metrics.tokens.js';

const NO_EXTRAS: AsynqMetricsExtras = { path: undefined, guards: undefined, imports: undefined };

export const { ConfigurableModuleClass, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<AsynqMetricsOptions>({ optionsInjectionToken: RAW_METRICS_OPTIONS })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createAsynqMetricsOptions')
    .setExtras(NO_EXTRAS, withController)
    .build();

function withController(definition: DynamicModule, { path, guards = [], imports = [] }: AsynqMetricsExtras) {
  const resolved = {
    provide: RESOLVED_METRICS_OPTIONS,
    useFactory: resolveMetricsOptions,
    inject: [RAW_METRICS_OPTIONS],
  };
  return {
    ...definition,
    imports: [...(definition.imports ?? []), ...imports, AsynqCoreModule],
    providers: [...(definition.providers ?? []), resolved],
    controllers: path === undefined ? [] : [metricsController(path, guards)],
  };
}
