import {
  All,
  Controller,
  Delete,
  Get,
  Inject,
  Options,
  Patch,
  Post,
  Put,
  Req,
  Res,
  SetMetadata,
  type Type,
  UseFilters,
  UseGuards,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Dashboard } from './dashboard.js';
import type { ResolvedStatics } from './resolve-options.js';
import { servePage } from './page.js';
import { ApiErrorFilter, replyWithError } from './rest/api-error.filter.js';
import { keepBodyErrorsOfExpress, keepBodyErrorsOfFastify } from './rest/body-errors.js';
import { dispatch } from './rest/dispatcher.js';
import { API_WILDCARD, type HttpRequest } from './rest/http-request.js';
import { send } from './rest/responder.js';

/** One pair of classes per console, because path, version and guards are metadata of the class. */
export interface DashboardControllers {
  readonly api: Type;
  readonly page: Type;
  /**
   * Sets the paths of the routes, which differ between Express and Fastify, before Nest reads them.
   */
  readonly route: (host: HttpAdapterHost) => void;
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

    put(@Req() request: HttpRequest): Promise<void> {
      return this.other(request);
    }

    patch(@Req() request: HttpRequest): Promise<void> {
      return this.other(request);
    }

    options(@Req() request: HttpRequest): Promise<void> {
      return this.other(request);
    }

    /** The API replies with its own error for every other method. */
    async other(@Req() request: HttpRequest): Promise<void> {
      await dispatch(this.dashboard, undefined, request);
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
    route: (host) => {
      const platform = host.httpAdapter.getType();
      if (platform === 'fastify') routeOnFastify(AsynqDashboardApiController, host);
      else routeOnExpress(AsynqDashboardApiController, host);
      decorate(AsynqDashboardPageController, 'page', Get(pagePaths(platform, path)));
    },
  };
}

function routeOnExpress(api: Type, { httpAdapter }: HttpAdapterHost): void {
  const rest = `*${API_WILDCARD}`;
  decorate(api, 'get', Get(rest));
  decorate(api, 'post', Post(rest));
  decorate(api, 'delete', Delete(rest));
  decorate(api, 'other', All(rest));
  keepBodyErrorsOfExpress(httpAdapter.getInstance(), API_WILDCARD);
}

/** The key under which the adapter finds the `config` of a Fastify route. */
const FASTIFY_ROUTE_CONFIG = '__fastify_route_config__';

/** Not `All`: the adapter would ignore version and config. */
function routeOnFastify(api: Type, host: HttpAdapterHost): void {
  const decorators = { get: Get, post: Post, delete: Delete, put: Put, patch: Patch, options: Options };
  for (const [method, decorator] of Object.entries(decorators)) {
    decorate(api, method, decorator('*'));
    decorate(api, method, SetMetadata(FASTIFY_ROUTE_CONFIG, { [API_WILDCARD]: true }));
  }
  keepBodyErrorsOfFastify(host.httpAdapter.getInstance(), API_WILDCARD, (error, reply) =>
    replyWithError(host, reply, error),
  );
}

/**
 * Other routes may share the path: probes, metrics, a second console. Express takes the first route
 * that matches, so the page gets no more than it needs. Fastify takes the most specific route, and
 * needs the wildcard for the trailing slash.
 */
function pagePaths(platform: string, path: string): string[] {
  if (platform === 'fastify') return ['', path === '/' ? 'assets/*' : '*'];
  return ['', '{/}', 'assets/*path'];
}

function decorate(target: Type, method: string, decorator: MethodDecorator): void {
  decorator(target.prototype as object, method, Object.getOwnPropertyDescriptor(target.prototype, method)!);
}
