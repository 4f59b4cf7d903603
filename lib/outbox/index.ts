/** @module nestjs-asynq/outbox */
export { AsynqOutboxModule } from './outbox.module.js';
export type { AsynqOutboxExtras } from './outbox.module.definition.js';
export type { AsynqOutboxOptions } from './options.js';
export { AsynqOutbox, type OutboxOfModule } from './outbox.js';
export type {
  EndedRow,
  EndState,
  ExchangeRequest,
  NewRow,
  OutboxCounts,
  OutboxSender,
  OutboxStore,
  OwnedSender,
  PoisonedPage,
  PoisonedRow,
  RowNotices,
  TakenRow,
} from './store.js';
export type { StoreOptions } from './stores/store-options.js';
export type { ListeningClient, PgClient, PgPool, PgPoolClient } from './stores/listen.js';
export { pgOutbox } from './stores/pg.js';
export { type DrizzleLike, drizzleOutbox, type DrizzleRunner } from './stores/drizzle.js';
export { type KnexLike, knexOutbox, type KnexRunner } from './stores/knex.js';
export { type KyselyLike, kyselyOutbox, type KyselyRunner, type KyselyTransactionBuilder } from './stores/kysely.js';
export { type MysqlConnection, mysqlOutbox, type MysqlPool, type MysqlPoolConnection } from './stores/mysql.js';
export { type PrismaLike, prismaOutbox, type PrismaRunner } from './stores/prisma.js';
export {
  type SequelizeConnectionManager,
  type SequelizeLike,
  sequelizeOutbox,
  type SequelizeTransaction,
} from './stores/sequelize.js';
export { type SqliteConnection, sqliteOutbox } from './stores/sqlite.js';
export { type TypeormDataSource, typeormOutbox, type TypeormQueryRunner } from './stores/typeorm.js';
export { outboxSchema, type OutboxDialect } from './sql/schema.js';
