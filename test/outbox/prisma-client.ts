import { PrismaLibSql } from '@prisma/adapter-libsql';
import { PrismaMariaDb } from '@prisma/adapter-mariadb';
import { PrismaPg } from '@prisma/adapter-pg';
import { getPrismaClient } from '@prisma/client/runtime/client';

/** What the tests use of a PrismaClient. */
export interface TestPrisma extends TestPrismaTransaction {
  $transaction<T>(work: (tx: TestPrismaTransaction) => Promise<T>): Promise<T>;
  $connect(): Promise<void>;
  $disconnect(): Promise<void>;
}

export interface TestPrismaTransaction {
  $queryRawUnsafe(text: string, ...values: unknown[]): Promise<unknown>;
  $executeRawUnsafe(text: string, ...values: unknown[]): Promise<number>;
}

type Provider = 'postgresql' | 'mysql' | 'sqlite';

const WASM: Readonly<Record<Provider, readonly [runtime: () => Promise<unknown>, code: () => Promise<unknown>]>> = {
  postgresql: [
    () => import('@prisma/client/runtime/query_compiler_fast_bg.postgresql.mjs' as string),
    () => import('@prisma/client/runtime/query_compiler_fast_bg.postgresql.wasm-base64.mjs' as string),
  ],
  mysql: [
    () => import('@prisma/client/runtime/query_compiler_fast_bg.mysql.mjs' as string),
    () => import('@prisma/client/runtime/query_compiler_fast_bg.mysql.wasm-base64.mjs' as string),
  ],
  sqlite: [
    () => import('@prisma/client/runtime/query_compiler_fast_bg.sqlite.mjs' as string),
    () => import('@prisma/client/runtime/query_compiler_fast_bg.sqlite.wasm-base64.mjs' as string),
  ],
};

/**
 * The PrismaClient of a schema without models, on Prisma's own runtime. `prisma generate` would write the same, but its
 * package is 250 MB, and loads a program from a server that tests cannot reach.
 */
function prismaClient(provider: Provider, adapter: object): TestPrisma {
  const [getRuntime, code] = WASM[provider];
  const Client = getPrismaClient({
    previewFeatures: [],
    clientVersion: '7.10.0',
    engineVersion: '0',
    activeProvider: provider,
    inlineSchema: `datasource db {\n  provider = "${provider}"\n}\n`,
    runtimeDataModel: { models: {}, enums: {}, types: {} },
    parameterizationSchema: { strings: [], graph: 'AAAA' },
    compilerWasm: {
      getRuntime,
      getQueryCompilerWasmModule: async () => {
        const { wasm } = (await code()) as { wasm: string };
        return new WebAssembly.Module(Buffer.from(wasm, 'base64'));
      },
      importName: './query_compiler_fast_bg.js',
    },
  } as never) as unknown as new (options: object) => TestPrisma;
  return new Client({ adapter });
}

const host = '127.0.0.1';

export const prismaOnPostgres = (port: number): TestPrisma =>
  prismaClient('postgresql', new PrismaPg({ host, port, user: 'postgres', database: 'postgres' }));

// The pool opens idle connections by itself. One that is being opened when the server stops rejects where nobody can catch it.
export const prismaOnMariadb = (port: number): TestPrisma =>
  prismaClient(
    'mysql',
    new PrismaMariaDb({ host, port, user: 'root', database: 'test', connectionLimit: 4, minimumIdle: 1 }),
  );

export const prismaOnSqlite = (file: string): TestPrisma =>
  prismaClient('sqlite', new PrismaLibSql({ url: `file:${file}` }));
