import {
  Controller,
  Delete,
  Get,
  Inject,
  Post,
  Req,
  Res,
  type Type,
  UseFilters,
  UseGuards,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Dashboard } from './dashboard.js';
import type { ResolvedStatics } from './dashboard.options.js';
import { servePage } from './page.js';
import { ApiErrorFilter } from './rest/api-error.filter.js';
import { dispatch } from './rest/dispatcher.js';
import type { HttpRequest } from './rest/http-request.js';
import { send } from './rest/responder.js';

/** One pair for each console: its path, version and guards are metadata of the classes. */
export interface DashboardControllers {
  readonly api: Type;
  readonly page: Type;
  /** Gives the routes their paths; Express and Fastify spell them differently. */
  readonly route: (platform: string) => void;
}

export function makeControllers({ path, version: given, guards }: ResolvedStatics): DashboardControllers {
  const version = given ?? VERSION_NEUTRAL;
  @UseGuards(...(guards as Type[]))
  @UseFilters(ApiErrorFilter)
  @Controller({ path: path === '/' ? 'api' : `${path}/api`, version })
  class AsynqDashboardApiController {
    constructor(
      @Inject(Dashboard) private readonly dashboard: Dashboard,
      private readonly host: HttpAdapterHost,
    ) {}

    async get(@Req() request: HttpRequest, @Res() response: unknown): Promise<void> {
      send(this.host, response, await dispatch(this.dashboard, 'GET', request));
    }

    async post(@Req() request: HttpRequest, @Res() response: unknown): Promise<void> {
      send(this.host, response, await dispatch(this.dashboard, 'POST', request));
    }

    async delete(@Req() request: HttpRequest, @Res() response: unknown): Promise<void> {
      send(this.host, response, await dispatch(this.dashboard, 'DELETE', request));
    }
  }

  @UseGuards(...(guards as Type[]))
  @Controller({ path, version })
  class AsynqDashboardPageController {
    constructor(
      @Inject(Dashboard) private readonly dashboard: Dashboard,
      private readonly host: HttpAdapterHost,
    ) {}

    async page(@Req() request: HttpRequest, @Res() response: unknown): Promise<void> {
      send(this.host, response, await servePage(this.dashboard, request));
    }
  }

  return {
    api: AsynqDashboardApiController,
    page: AsynqDashboardPageController,
    route: (platform) => {
      const rest = platform === 'fastify' ? '*' : '*path';
      decorate(AsynqDashboardApiController, 'get', Get(rest));
      decorate(AsynqDashboardApiController, 'post', Post(rest));
      decorate(AsynqDashboardApiController, 'delete', Delete(rest));
      decorate(AsynqDashboardPageController, 'page', Get(pagePaths(platform, path)));
    },
  };
}

/**
 * Below the path may be more than the console: probes, metrics, a second console. Express takes the first route that fits, so there must be
 * no more than the page has; Fastify takes the most precise one, and needs the wildcard for the slash at the end.
 */
function pagePaths(platform: string, path: string): string[] {
  if (platform === 'fastify') return ['', path === '/' ? 'assets/*' : '*'];
  return ['', '{/}', 'assets/*path'];
}

function decorate(target: Type, method: string, decorator: MethodDecorator): void {
  decorator(target.prototype as object, method, Object.getOwnPropertyDescriptor(target.prototype, method)!);
}
