import {
  BadRequestException,
  Controller,
  Get,
  HttpCode,
  Inject,
  Post,
  Query,
  ServiceUnavailableException,
  UseGuards,
  VERSION_NEUTRAL,
  type CanActivate,
  type Type,
} from '@nestjs/common';
import { InvalidOptionError } from '../../errors.js';
import { DrainGuard } from './drain.guard.js';
import { OperationsService, type OperationsReport } from './operations.service.js';

/** The routes at one path. */
export function operationsController(path: string, guards: readonly (Type<CanActivate> | CanActivate)[]): Type {
  @Controller({ path, version: VERSION_NEUTRAL })
  class AsynqOperationsController {
    constructor(@Inject(OperationsService) private readonly operations: OperationsService) {}

    @Get('live')
    live(): OperationsReport {
      return orUnavailable(this.operations.live());
    }

    @Get('ready')
    async ready(): Promise<OperationsReport> {
      return orUnavailable(await this.operations.ready());
    }

    @Post('drain')
    @HttpCode(200)
    @UseGuards(DrainGuard, ...guards)
    async drain(@Query('timeout') timeout?: string) {
      return this.operations.drain(timeout).catch((error: unknown) => {
        if (error instanceof InvalidOptionError) throw new BadRequestException(error.message);
        throw error;
      });
    }
  }
  return AsynqOperationsController;
}

function orUnavailable(report: OperationsReport): OperationsReport {
  if (report.status === 'up') return report;
  throw new ServiceUnavailableException(report);
}
