import { Controller, Get, Inject, Res, UseGuards, VERSION_NEUTRAL, type CanActivate, type Type } from '@nestjs/common';
import type { ResolvedMetricsOptions } from './metrics.options.js';
import { RESOLVED_METRICS_OPTIONS } from './metrics.tokens.js';

/** What responses of Express and Fastify have in common. */
interface HttpResponse {
  header(name: string, value: string): unknown;
  send(body: string): unknown;
}

/**
 * The controller for one path. It sends the response itself, so that interceptors cannot wrap it.
 */
export function metricsController(path: string, guards: readonly (Type<CanActivate> | CanActivate)[]): Type {
  @Controller({ path, version: VERSION_NEUTRAL })
  @UseGuards(...guards)
  class AsynqMetricsController {
    constructor(@Inject(RESOLVED_METRICS_OPTIONS) private readonly options: ResolvedMetricsOptions) {}

    @Get()
    async metrics(@Res() response: HttpResponse): Promise<void> {
      const { registry } = this.options;
      const text = await registry.metrics();
      response.header('content-type', registry.contentType);
      response.send(text);
    }
  }
  return AsynqMetricsController;
}
