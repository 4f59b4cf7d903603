import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { getTaskContext, isAsynqContext, SkipRetry } from 'nestjs-asynq';

const BLOCKED = new Set(['blocked']);

/** A guard as in HTTP, here for a task: mail for a blocked tenant is archived at once and not retried. */
@Injectable()
export class TenantGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    if (!isAsynqContext(context)) return true;
    const tenant = getTaskContext(context).headers['tenant'] ?? 'public';
    if (BLOCKED.has(tenant)) throw new SkipRetry(`tenant "${tenant}" is blocked`);
    return true;
  }
}
