import { Inject, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { ResolvedOperationsOptions } from './operations.options.js';
import { OPERATIONS_OPTIONS } from './operations.tokens.js';

/** What the requests of Express and Fastify have in common. */
interface HttpRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly socket: { readonly remoteAddress?: string };
  /** Of Fastify's. */
  readonly raw?: { readonly httpVersion: string };
  readonly httpVersion?: string;
}

/** Headers by which a request came through a proxy on this machine, or from a page in a browser on it. */
const NOT_DIRECT =
  /^(?:forwarded|via|origin|referer|sec-fetch-site|x-forwarded-.*|x-real-ip|x-request-id|x-envoy-.*|x-client-ip|true-client-ip|cf-.*)$/;

/** Not all of 127.*: sidecars of service meshes (Istio's has 127.0.0.6) hand on from there what came from elsewhere. */
const LOOPBACK: readonly (string | undefined)[] = ['127.0.0.1', '::ffff:127.0.0.1', '::1'];

/** What nginx says to whom it hands on, unless it is told otherwise; no program of today speaks it by itself. */
const OLD_HTTP = '1.0';

/** Lets programs of this machine in, or everyone, as the options say. */
@Injectable()
export class LoopbackGuard implements CanActivate {
  constructor(@Inject(OPERATIONS_OPTIONS) private readonly options: ResolvedOperationsOptions) {}

  canActivate(context: ExecutionContext): boolean {
    if (this.options.drainAccess === 'everyone') return true;
    const request = context.switchToHttp().getRequest<HttpRequest>();
    if (!LOOPBACK.includes(request.socket.remoteAddress)) return false;
    const { httpVersion } = request.raw ?? request;
    return httpVersion !== OLD_HTTP && !Object.keys(request.headers).some((name) => NOT_DIRECT.test(name));
  }
}
