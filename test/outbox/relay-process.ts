/*
 * A process with the relay of an outbox and nothing else, for kills.spec.ts. Arguments: `postgres` or `mysql`, the port of
 * the database, the port of Redis.
 */
import { createPool } from 'mysql2/promise';
import pg from 'pg';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { Relay } from '../../lib/links/relay.js';
import { OutboxRelay } from '../../lib/outbox/relay.js';
import { mysqlOutbox } from '../../lib/outbox/stores/mysql.js';
import { pgOutbox } from '../../lib/outbox/stores/pg.js';

const [dialect, database, redis] = process.argv.slice(-3) as [string, string, string];
const [host, port] = ['127.0.0.1', Number(database)];

function postgres() {
  const pool = new pg.Pool({ host, port, user: 'postgres', database: 'postgres', max: 4 });
  pool.on('error', () => undefined);
  pool.on('connect', (client) => void client.on('error', () => undefined));
  return pgOutbox(pool);
}

const mysql = () => mysqlOutbox(createPool({ host, port, user: 'root', database: 'test', connectionLimit: 4 }));

const broker = new RedisBroker(new RedisConnections({ host, port: Number(redis) }));
const deps = { broker, relay: new Relay(broker.links), events: new AsynqEvents() };
const relay = new OutboxRelay(
  dialect === 'mysql' ? mysql() : postgres(),
  deps,
  { pollInterval: 50, retention: 3_600_000 },
  { batchSize: 20, lease: 500, renewEvery: 100, adoptEvery: 200 },
);
relay.start();
process.stdout.write('ready\n');
// It does not outlive its driver.
process.stdin.resume().on('end', () => process.exit(0));
