import { readdirSync, readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { launch } from './chromium.js';

/*
 * A browser silently skips a declaration that it does not understand, so each one is tried alone.
 */

const FOLDER = new URL('../../lib/dashboard/web/style/', import.meta.url);
const SOURCES = readdirSync(FOLDER).map((name) => [name, readFileSync(new URL(name, FOLDER), 'utf8')] as const);

interface Declaration {
  readonly file: string;
  readonly line: number;
  readonly property: string;
  readonly value: string;
}

/** The declarations between the braces of rules; at-rules and selectors separately. */
function read(file: string, source: string) {
  const text = source.replaceAll(/\/\*[^]*?\*\//g, (comment) => comment.replaceAll(/[^\n]/g, ' '));
  const declarations: Declaration[] = [];
  const selectors: string[] = [];
  const medias: string[] = [];
  for (const { 1: part = '', 2: end, index } of text.matchAll(/([^;{}]*)([;{}])/g)) {
    const line = text.slice(0, index + part.length).split('\n').length;
    const words = part.trim().replaceAll(/\s+/g, ' ');
    if (end === '{' && words.startsWith('@media')) medias.push(words.slice(7));
    else if (end === '{' && !words.startsWith('@')) selectors.push(words);
    else if (end !== '{' && words !== '') {
      const [, property = '', value = ''] = /^([\w-]+): ?(.*)$/s.exec(words) ?? [];
      declarations.push({ file, line, property, value });
    }
  }
  return { declarations, selectors: selectors.filter((one) => !/^(from|to|\d+%)$/.test(one)), medias };
}

const sheets = SOURCES.map(([file, source]) => read(file, source));
const declarations = sheets.flatMap((sheet) => sheet.declarations);

/**
 * Custom properties by name, with any of their values. `--color` is one of the colours; the page
 * sets `--selection-bar`.
 */
const variables = new Map([
  ...declarations
    .filter(({ property }) => property.startsWith('--'))
    .map(({ property, value }) => [property, value] as const),
  ['--selection-bar', '0px'] as const,
]);

/** Replaces variables: a value with a variable always counts as valid. */
function resolve(value: string): string {
  const known = value.replaceAll(/var\((--[\w-]+)(?:, ?[^()]*)?\)/g, (all, name: string) => variables.get(name) ?? all);
  return known === value ? value : resolve(known);
}

let browser: Browser;
let page: Page;
beforeAll(async () => {
  browser = await launch();
  page = await browser.newPage();
});
afterAll(() => browser.close());

/** The declarations that a style sheet drops. */
const lost = (all: readonly Declaration[]): Promise<string[]> =>
  page.evaluate(
    (tried) => {
      const keeps = (property: string, value: string): boolean => {
        const sheet = new CSSStyleSheet();
        sheet.replaceSync(`x { ${property}: ${value} }`);
        return (sheet.cssRules[0] as CSSStyleRule).style.length > 0;
      };
      return tried.filter(({ property, value }) => !keeps(property, value)).map(({ name }) => name);
    },
    all.map(({ file, line, property, value }) => ({
      property,
      value: resolve(value),
      name: `${file}:${line} ${property}: ${value}`,
    })),
  );

it('understands every declaration', async () => {
  expect(declarations.length).toBeGreaterThan(700);
  expect(await lost(declarations.filter(({ property }) => !property.startsWith('--')))).toEqual([]);
  const broken = [
    { file: 'x', line: 1, property: 'columns', value: 'min(100%, 320px)' },
    { file: 'x', line: 2, property: 'colour', value: 'red' },
    { file: 'x', line: 3, property: 'color', value: 'var(--accent) 3px' },
  ];
  expect(await lost(broken)).toHaveLength(broken.length);
});

it('uses no undefined variable, and defines no unused one', () => {
  const used = new Set(
    declarations.flatMap(({ value }) => [...value.matchAll(/var\((--[\w-]+)/g)].map(([, name]) => name!)),
  );
  // Names made at run time: color-accent, and the states.
  expect([...used].filter((name) => !variables.has(name))).toEqual([]);
  expect([...variables.keys()].filter((name) => !used.has(name))).toEqual([]);
});

it('understands every selector and every media query', async () => {
  const [selectors, medias] = [sheets.flatMap((sheet) => sheet.selectors), sheets.flatMap((sheet) => sheet.medias)];
  const bad = await page.evaluate(
    ([selectors, medias]) => [
      ...selectors!.filter((one) => {
        const sheet = new CSSStyleSheet();
        sheet.replaceSync(`${one} { color: red }`);
        return sheet.cssRules.length === 0;
      }),
      ...medias!.filter((one) => matchMedia(one).media === 'not all'),
    ],
    [selectors, medias],
  );
  expect(selectors.length).toBeGreaterThan(200);
  expect(bad).toEqual([]);
});
