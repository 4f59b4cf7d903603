import { AsynqClient, typeormTransactions } from 'nestjs-asynq';
import { DataSource } from 'typeorm';
import {
  addTransactionalDataSource,
  deleteDataSourceByName,
  initializeTransactionalContext,
  StorageDriver,
} from 'typeorm-transactional';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { rejection, testApp } from '../nest/support.js';
import { describeTransactions } from './suite.js';
import { typeormUnit } from './units.js';

const TypeormUnit = typeormUnit('main');

beforeAll(() => void initializeTransactionalContext({ storageDriver: StorageDriver.ASYNC_LOCAL_STORAGE }));

/** A database of the test, by this name. */
async function database(name: string, { initialized = true, patch = true } = {}): Promise<DataSource> {
  const dataSource = new DataSource({ type: 'sqljs' });
  addTransactionalDataSource({ name, dataSource, patch });
  onTestFinished(() => void deleteDataSourceByName(name));
  if (initialized) await dataSource.initialize();
  return dataSource;
}

describeTransactions('typeormTransactions()', async () => {
  const source = await database('main');
  const transactions = typeormTransactions({ dataSource: 'main' });
  const { app, tasks } = await testApp({ providers: [TypeormUnit] }, { transactions });
  return {
    asynq: app.get(AsynqClient),
    tasks,
    unit: app.get(TypeormUnit),
    savepoint: (work) => source.manager.transaction(work),
  };
});

describe('typeormTransactions()', () => {
  const boot = (dataSource?: string) => rejection(testApp({}, { transactions: typeormTransactions({ dataSource }) }));

  it('fails at boot when its transactions cannot be seen', async () => {
    expect((await boot()).message).toBe(
      'AsynqModule option transactions is typeormTransactions(), but typeorm-transactional has no data source "default"; ' +
        'call addTransactionalDataSource before the application starts',
    );
    await database('late', { initialized: false });
    expect((await boot('late')).message).toContain('"late" is not initialized when the application starts');
    await database('unpatched', { patch: false });
    expect((await boot('unpatched')).message).toContain('"unpatched" was added with patch: false');
  });

  it('refuses wrong options at once', () => {
    expect(() => typeormTransactions({ datasource: 'x' } as never)).toThrow('did you mean "dataSource"');
    expect(() => typeormTransactions({ dataSource: '' })).toThrow('dataSource');
  });
});
