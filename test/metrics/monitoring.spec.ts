import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { parse } from 'yaml';
import { ASYNQ_METRICS } from '../../lib/metrics/asynq-metrics.js';
import { outboxMetrics, processMetrics, queueMetrics } from '../../lib/metrics/own-metrics.js';
import { PromQl } from './promql.js';

const read = (path: string): string => readFileSync(new URL(`../../docs/${path}`, import.meta.url), 'utf8');

const OURS = [queueMetrics, outboxMetrics, processMetrics].flatMap((metrics) => metrics('nestjs_asynq_', 5));
const definitions = [...ASYNQ_METRICS, ...OURS];
/** What Prometheus sees: name → labels. */
const exported = new Map(
  definitions.flatMap(({ name, type, labels: own }): [string, readonly string[]][] => {
    const labels = [...own, 'connection'];
    return type === 'histogram'
      ? [
          [`${name}_bucket`, [...labels, 'le']],
          [`${name}_sum`, labels],
          [`${name}_count`, labels],
        ]
      : [[name, labels]];
  }),
);

/** Fails for an expression that is none, or reads what nobody exports. */
function check(expr: string): string[] {
  const { metrics, groupedBy } = PromQl.parse(expr);
  expect(metrics, expr).not.toEqual([]);
  for (const { name, labels } of metrics) {
    expect(exported.has(name), `${name} in ${expr}`).toBe(true);
    expect(exported.get(name), expr).toEqual(expect.arrayContaining([...labels, ...groupedBy]));
  }
  return metrics.map(({ name }) => name);
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

describe('the Grafana board', () => {
  const board = JSON.parse(read('monitoring/grafana-board.json')) as {
    panels: Panel[];
    templating: { list: object[] };
  };
  const panels = board.panels.filter(({ type }) => type !== 'row');

  it('reads only what is exported, and shows labels it has kept', () => {
    for (const { title, targets = [] } of panels) {
      expect(targets, title).not.toEqual([]);
      for (const { expr, legendFormat } of targets) {
        check(expr);
        const { groupedBy } = PromQl.parse(expr);
        for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) expect(groupedBy, expr).toContain(label);
      }
    }
  });

  it('shows every metric', () => {
    const shown = new Set(panels.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => check(expr))));
    shown.add('asynq_queue_latency_seconds'); // is queue_oldest_pending_seconds by another name
    const missing = [...exported.keys()].filter((name) => !shown.has(name) && !/_(sum|count)$/.test(name));
    expect(missing).toEqual([]);
  });

  it('has panels that do not overlap', () => {
    const cells = board.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)}/${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(new Set(board.panels.map(({ id }) => id)).size).toBe(board.panels.length);
  });

  it('has the variables its expressions use', () => {
    expect(board.templating.list).toMatchObject([{ name: 'datasource' }, { name: 'queue' }]);
  });
});

describe('the Prometheus alerts', () => {
  interface Rule {
    readonly alert: string;
    readonly expr: string;
    readonly for?: string;
    readonly labels: { readonly severity: string };
    readonly annotations: { readonly summary: string; readonly description: string };
  }
  const { groups } = parse(read('monitoring/prometheus-alerts.yaml')) as { groups: { rules: Rule[] }[] };
  const rules = groups.flatMap((group) => group.rules);

  it('are about backlog, servers, archives, leases, Redis and pauses', () => {
    const wanted = ['BacklogOld', 'QueueWithoutServer', 'TasksArchived', 'LeasesLost', 'RedisErrors', 'QueuePaused'];
    expect(rules.map(({ alert }) => alert)).toEqual(expect.arrayContaining(wanted.map((name) => `Asynq${name}`)));
  });

  it.each(rules.map((rule) => [rule.alert, rule] as const))('%s reads only what is exported', (_, rule) => {
    check(rule.expr);
    const { groupedBy } = PromQl.parse(rule.expr);
    const texts = rule.annotations.summary + rule.annotations.description;
    for (const [, label] of texts.matchAll(/\$labels\.(\w+)/g)) expect(groupedBy).toContain(label);
    expect(rule.labels.severity).toMatch(/^(info|warning|critical)$/);
    expect(rule.for ?? '1m').toMatch(/^\d+[smh]$/);
  });
});

test('docs/metrics.md lists every metric, its type and its labels', () => {
  const page = read('metrics.md');
  for (const { name, type, labels } of definitions) {
    const short = name.replace(/^nestjs_asynq_/, '');
    const line = page
      .split('\n')
      .find((row) => [name, short].some((cell) => row.startsWith('|') && row.includes(`\`${cell}\``)));
    expect(line, name).toBeDefined();
    expect(line).toContain(`| ${type} `);
    for (const label of labels) expect(line).toContain(`\`${label}\``);
  }
});

test.each(['rate(x[5m)', 'sum by (queue (x)', 'x{queue="a"', 'x >', '', 'x y'])('the test refuses %o', (text) => {
  expect(() => PromQl.parse(text)).toThrow();
});
