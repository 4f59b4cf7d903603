import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { Injectable } from '@nestjs/common';
import { ScaledObject, TriggerAuthentication } from '@kubernetes-models/keda/keda.sh/v1alpha1';
import { Deployment } from 'kubernetes-models/apps/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { AsynqModule, AsynqOperationsModule, AsynqServer, TaskHandler } from 'nestjs-asynq';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { parseDuration } from '../../lib/duration.js';
import { resolveServerOptions } from '../../lib/server/options.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { start } from '../metrics/support.js';
import { PromQl } from '../metrics/promql.js';

const folder = new URL('../../docs/kubernetes/', import.meta.url);
const MODELS = { Deployment, PodDisruptionBudget, ScaledObject, TriggerAuthentication };

interface Manifest {
  readonly spec: object;
  readonly apiVersion: string;
  readonly kind: keyof typeof MODELS;
}

const read = (file: string): Manifest[] =>
  parseAllDocuments(readFileSync(new URL(file, folder), 'utf8')).map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS() as Manifest;
  });

/** Throws if the schema of Kubernetes or KEDA refuses the manifest. */
function validate(manifest: Manifest): void {
  const Model = MODELS[manifest.kind] as unknown as new (manifest: Manifest) => Manifest & { validate(): void };
  const model = new Model(manifest);
  expect(model.apiVersion).toBe(manifest.apiVersion);
  model.validate();
}

const files = readdirSync(folder);

describe.each(files)('docs/kubernetes/%s', (file) => {
  it('is valid by its schema', () => {
    const manifests = read(file);
    expect(manifests.length).toBeGreaterThan(0);
    for (const manifest of manifests) validate(manifest);
  });
});

it('is refused with a mistake', () => {
  const [deployment] = read('worker.yaml');
  const wrong = (change: object) => () => validate({ ...deployment!, spec: { ...deployment!.spec, ...change } });
  expect(wrong({})).not.toThrow();
  expect(wrong({ replicas: 'two' })).toThrow();
  expect(wrong({ selector: undefined })).toThrow();
  const [scaled] = read('keda-prometheus.yaml');
  expect(() => validate({ ...scaled!, spec: { triggers: [{ type: 'prometheus' }] } })).toThrow();
});

interface Trigger {
  readonly type: string;
  readonly metadata: Readonly<Record<string, string>>;
}

it('scales by metrics and keys that exist', () => {
  const triggers = ['keda-prometheus.yaml', 'keda-redis.yaml'].flatMap((file) =>
    read(file).flatMap((manifest) => (manifest as unknown as { spec: { triggers?: Trigger[] } }).spec.triggers ?? []),
  );
  const queried = triggers.flatMap(({ metadata: { query } }) => (query ? PromQl.parse(query).metrics : []));
  expect(queried).toEqual([
    { name: 'nestjs_asynq_queue_pending_tasks', labels: ['queue'] },
    { name: 'nestjs_asynq_queue_held_tasks', labels: ['queue'] },
    { name: 'nestjs_asynq_queue_oldest_pending_seconds', labels: ['queue'] },
    { name: 'nestjs_asynq_queue_oldest_held_seconds', labels: ['queue'] },
  ]);
  const keys = new Keyspace().queue('mail');
  const lists = triggers.flatMap(({ type, metadata }) => (type === 'redis' ? [metadata['listName']] : []));
  expect(lists).toEqual([keys.pending, keys.held, keys.fairRing]);
});

interface Probe {
  readonly httpGet: { readonly path: string };
}
interface Pod {
  readonly terminationGracePeriodSeconds: number;
  readonly containers: [
    {
      readonly startupProbe: Probe;
      readonly livenessProbe: Probe;
      readonly readinessProbe: Probe;
      readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: [string, ...string[]] } } };
    },
  ];
}

@Injectable()
class Tasks {
  @TaskHandler('mail')
  mail() {}
}

it('probes and drains a worker in time', async () => {
  const [deployment] = read('worker.yaml');
  const pod = (deployment as unknown as { spec: { template: { spec: Pod } } }).spec.template.spec;
  const [{ startupProbe, livenessProbe, readinessProbe, lifecycle }] = pod.containers;
  const app = await start({
    imports: [
      AsynqModule.forRoot({ connection: 'memory' }),
      AsynqOperationsModule.forRoot({ drainAccess: 'loopback' }),
    ],
    providers: [Tasks],
  });
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const probe = async ({ httpGet }: Probe) => (await fetch(url + httpGet.path)).status;
  for (const one of [startupProbe, livenessProbe, readinessProbe]) expect(await probe(one)).toBe(200);
  const [program, ...args] = lifecycle.preStop.exec.command;
  const there = args.map((text) => text.replace('http://127.0.0.1:3000', url));
  expect(there).not.toEqual(args);
  await promisify(execFile)(program, there);
  expect(app.get(AsynqServer).status).toBe('stopped');
  expect(await probe(readinessProbe)).toBe(503);
  expect(await probe(livenessProbe)).toBe(200);
  const draining = parseDuration(/timeout=(\w+)/.exec(args.at(-1)!)![1], 'timeout');
  const needed = (draining + resolveServerOptions().shutdownTimeout) / 1000;
  expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(needed + 9); // grace, last settlements, last words
});
