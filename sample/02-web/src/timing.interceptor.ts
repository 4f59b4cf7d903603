import { type CallHandler, type ExecutionContext, Injectable, Logger, type NestInterceptor } from '@nestjs/common';
import { getTaskContext } from 'nestjs-asynq';
import { finalize, type Observable } from 'rxjs';

/** Middleware for tasks: an interceptor of Nest around the handler. */
@Injectable()
export class TimingInterceptor implements NestInterceptor {
  private readonly logger = new Logger('Timing');

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { type, id } = getTaskContext(context);
    const started = performance.now();
    return next
      .handle()
      .pipe(finalize(() => this.logger.log(`${type} ${id} took ${(performance.now() - started).toFixed(1)} ms`)));
  }
}
