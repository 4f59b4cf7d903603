import { Inject, Module, Optional, type DynamicModule, type OnApplicationBootstrap } from '@nestjs/common';
import { InvalidOptionError } from '../../errors.js';
import { AsynqCoreModule } from '../asynq-core.module.js';
import { DrainGuard } from './drain.guard.js';
import { operationsController } from './operations.controller.js';
import { resolveOperationsOptions, type AsynqOperationsOptions } from './operations.options.js';
import { OperationsService } from './operations.service.js';
import { notForRoot } from '../names/nest.messages.js';
import { OPERATIONS_OPTIONS } from './operations.tokens.js';

/**
 * Routes for deployments, about all connections of the application: `GET asynq/live` and `GET asynq/ready` for probes (200 or 503), and
 * `POST asynq/drain`, which replies when no task runs any more.
 */
@Module({})
export class AsynqOperationsModule implements OnApplicationBootstrap {
  constructor(@Optional() @Inject(OperationsService) private readonly operations: OperationsService | null) {
    if (!operations) throw new InvalidOptionError(notForRoot('AsynqOperationsModule'));
  }

  /** @throws InvalidOptionError without any connection: probes would always be up */
  onApplicationBootstrap(): void {
    this.operations!.requireConnections();
  }

  /** @throws InvalidOptionError */
  static forRoot(options?: AsynqOperationsOptions): DynamicModule {
    const resolved = resolveOperationsOptions(options);
    return {
      module: AsynqOperationsModule,
      imports: [AsynqCoreModule, ...resolved.imports],
      providers: [{ provide: OPERATIONS_OPTIONS, useValue: resolved }, OperationsService, DrainGuard],
      controllers: [operationsController(resolved.path, resolved.guards)],
    };
  }
}
