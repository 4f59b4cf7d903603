import { ForbiddenException, Inject, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { ResolvedOperationsOptions } from './operations.options.js';
import { OPERATIONS_OPTIONS } from './operations.tokens.js';

/** What the requests of Express and Fastify have in common. */
interface HttpRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly socket: { readonly remoteAddress?: string };
}

/** Headers of requests by a page of any site, in a browser on this machine. */
const BROWSER_HEADERS = ['origin', 'referer', 'sec-fetch-site'];

/** Headers that proxies add. One of them shows that the option is wrong; none proves nothing. */
const PROXY_HEADERS = /^(?:forwarded|via|x-forwarded-.*|x-real-ip|x-envoy-.*)$/;

/** Not all of 127.*: sidecars of service meshes forward remote requests from such addresses (Istio from 127.0.0.6). */
const LOOPBACK: readonly (string | undefined)[] = ['127.0.0.1', '::ffff:127.0.0.1', '::1'];

/** Allows draining for nobody, for programs on this machine, or for everyone, by the option `drainAccess`. */
@Injectable()
export class DrainGuard implements CanActivate {
  constructor(@Inject(OPERATIONS_OPTIONS) private readonly options: ResolvedOperationsOptions) {}

  canActivate(context: ExecutionContext): boolean {
    const { drainAccess } = this.options;
    if (drainAccess === 'everyone') return true;
    if (drainAccess === 'none') throw new ForbiddenException(CLOSED);
    const { headers, socket } = context.switchToHttp().getRequest<HttpRequest>();
    if (!LOOPBACK.includes(socket.remoteAddress)) throw new ForbiddenException(NOT_LOCAL);
    if (BROWSER_HEADERS.some((name) => name in headers)) throw new ForbiddenException(FROM_BROWSER);
    if (Object.keys(headers).some((name) => PROXY_HEADERS.test(name))) throw new ForbiddenException(FROM_PROXY);
    return true;
  }
}

const CLOSED =
  'nobody may drain over HTTP: give AsynqOperationsModule guards, or drainAccess: "loopback" where no proxy on this machine ' +
  'forwards requests to the application, or drain by the signal of server.drainSignal';
const NOT_LOCAL = 'only programs on the machine (in the pod) of the application may drain: drainAccess is "loopback"';
const FROM_BROWSER = `${NOT_LOCAL}, and not pages in a browser`;
const FROM_PROXY =
  'this request came through a proxy, and drainAccess "loopback" is for machines where no proxy forwards to the application: ' +
  'give AsynqOperationsModule guards instead';
