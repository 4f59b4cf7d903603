import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const LINK = /\s(?:href|src)="([^"]+)"/g;
const OUTSIDE = /^(?:[a-z]+:|\/\/)/i;
/** What a page may load from elsewhere: nothing. */
const LOADED = /<(?:script|img|link|iframe|source)\b[^>]*\s(?:src|href)="(?:https?:)?\/\/[^"]*"/g;

const anchors = new Map();
function anchorsOf(file) {
  let found = anchors.get(file);
  if (found === undefined) {
    found = new Set([...readFileSync(file, 'utf8').matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id));
    anchors.set(file, found);
  }
  return found;
}

function targetOf(folder, page, path) {
  const target = path.startsWith('/') ? join(folder, path) : resolve(dirname(page), path);
  for (const file of [target, `${target}.html`, join(target, 'index.html')]) {
    if (existsSync(file) && statSync(file).isFile()) return file;
  }
  return undefined;
}

/** Links of a built site that lead nowhere, also to an anchor that is not there, and what it would load from other hosts. */
export function deadLinks(folder) {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const pages = files.filter((file) => file.endsWith('.html') && file !== '404.html').map((file) => join(folder, file));
  const dead = new Set();
  for (const page of pages) {
    const html = readFileSync(page, 'utf8');
    const say = (what) => dead.add(`${relative(folder, page)}: ${what}`);
    for (const [tag] of html.matchAll(LOADED)) say(tag);
    for (const [, link] of html.matchAll(LINK)) {
      if (OUTSIDE.test(link)) continue;
      const [path, anchor] = link.replaceAll('&amp;', '&').split('#').map(decodeURIComponent);
      const target = path === '' ? page : targetOf(folder, page, path.replace(/\?.*$/, ''));
      if (target === undefined) say(link);
      else if (anchor && target.endsWith('.html') && !anchorsOf(target).has(anchor)) say(link);
    }
  }
  return [...dead];
}
