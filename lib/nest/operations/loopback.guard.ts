import { Inject, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { ResolvedOperationsOptions } from './operations.options.js';
import { OPERATIONS_OPTIONS } from './operations.tokens.js';

/** What the requests of Express and Fastify have in common. */
interface HttpRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly socket: { readonly remoteAddress?: string };
}

/** Headers by which a request came through a proxy on this machine, or from a page in a browser on it. */
const NOT_DIRECT = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via', 'origin', 'sec-fetch-site'];

const LOOPBACK = /^(::ffff:)?127\.|^::1$/;

/** Lets programs of this machine in, or everyone, as the options say. */
@Injectable()
export class LoopbackGuard implements CanActivate {
  constructor(@Inject(OPERATIONS_OPTIONS) private readonly options: ResolvedOperationsOptions) {}

  canActivate(context: ExecutionContext): boolean {
    if (this.options.drainAccess === 'everyone') return true;
    const { headers, socket } = context.switchToHttp().getRequest<HttpRequest>();
    return LOOPBACK.test(socket.remoteAddress ?? '') && !NOT_DIRECT.some((name) => headers[name] !== undefined);
  }
}
