import { Injectable, type Type } from '@nestjs/common';
import { ClsPluginTransactional, Propagation, Transactional } from '@nestjs-cls/transactional';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { ClsModule } from 'nestjs-cls';
import { DataSource } from 'typeorm';
import { Propagation as TypeormPropagation, Transactional as TypeormTransactional } from 'typeorm-transactional';
import type { Unit } from './suite.js';

/** @nestjs-cls/transactional on the DataSource that a module exports. */
export const clsOn = (database: Type) =>
  ClsModule.forRoot({
    plugins: [
      new ClsPluginTransactional({
        imports: [database],
        adapter: new TransactionalAdapterTypeOrm({ dataSourceToken: DataSource }),
      }),
    ],
  });

@Injectable()
export class ClsUnit implements Unit {
  @Transactional()
  required<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }

  @Transactional(Propagation.NotSupported)
  notSupported<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }

  @Transactional(Propagation.Nested)
  nested<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }
}

/** Units of work by typeorm-transactional on the DataSource of this name. */
export function typeormUnit(connectionName: string): Type<Unit> {
  @Injectable()
  class TypeormUnit implements Unit {
    @TypeormTransactional({ connectionName })
    required<T>(work: () => Promise<T>): Promise<T> {
      return work();
    }

    @TypeormTransactional({ connectionName, propagation: TypeormPropagation.NOT_SUPPORTED })
    notSupported<T>(work: () => Promise<T>): Promise<T> {
      return work();
    }
  }
  return TypeormUnit;
}
