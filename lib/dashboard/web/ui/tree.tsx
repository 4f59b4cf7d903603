import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { JsonNode } from '../json/parse.js';
import { plural } from '../text/format.js';
import { visible } from '../text/visible.js';
import { LongText, Text } from './text.js';

const MEMBERS_PER_CHUNK = 100;
/** Levels that are open at first, unless they have more members than a screen shows. */
const INITIALLY_OPEN_LEVELS = 2;
const MAX_OPEN_MEMBERS = 40;

type Parent = Extract<JsonNode, { kind: 'array' | 'object' }>;
type Member = [string | number, JsonNode];

const isParent = (node: JsonNode): node is Parent => node.kind === 'array' || node.kind === 'object';

const members = (node: Parent): readonly Member[] =>
  node.kind === 'array' ? node.items.map((item, index): Member => [index, item]) : node.entries;

function Leaf({ node }: { node: Exclude<JsonNode, Parent> }) {
  if (node.kind === 'string') {
    return (
      <span class="json-string">
        "<LongText value={node.value} />"
      </span>
    );
  }
  return <span class={`json-${node.kind}`}>{node.text}</span>;
}

const Key = ({ name }: { name: string | number }) =>
  typeof name === 'number' ? <span class="json-index">{name}</span> : <Text value={name} class="json-key" />;

function Branch({ name, node, level }: { name?: string | number; node: Parent; level: number }) {
  const all = members(node);
  const [open, setOpen] = useState(level < INITIALLY_OPEN_LEVELS && all.length <= MAX_OPEN_MEMBERS);
  const [shown, setShown] = useState(MEMBERS_PER_CHUNK);
  const [left, right] = node.kind === 'array' ? '[]' : '{}';
  if (all.length === 0) return <MemberLine name={name} value={<span class="faint">{`${left}${right}`}</span>} />;
  const what = node.kind === 'array' ? plural(all.length, 'item') : plural(all.length, 'key');
  return (
    <>
      <button type="button" class="json-fold" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class="json-arrow" aria-hidden="true">
          {open ? '▾' : '▸'}
        </span>
        {name === undefined ? <span class="sr-only">all of it: </span> : <Key name={name} />}
        <span class="faint">
          {' '}
          {left}
          {!open && '…'}
          {!open && right} {what}
        </span>
      </button>
      {open && (
        <ul>
          {all.slice(0, shown).map(([key, value], index) => (
            <li key={index}>
              <Node name={key} node={value} level={level + 1} />
            </li>
          ))}
        </ul>
      )}
      {open && all.length > shown && (
        <button type="button" class="button plain small" onClick={() => setShown(shown + MEMBERS_PER_CHUNK)}>
          {Math.min(MEMBERS_PER_CHUNK, all.length - shown)} more of {all.length - shown}
          {name !== undefined && <span class="sr-only"> in {visible(`${name}`)}</span>}
        </button>
      )}
    </>
  );
}

const MemberLine = ({ name, value }: { name?: string | number; value: ComponentChildren }) => (
  <span class="json-line">
    {name !== undefined && <Key name={name} />}
    {name !== undefined && <span class="faint">: </span>}
    {value}
  </span>
);

const Node = ({ name, node, level }: { name?: string | number; node: JsonNode; level: number }) =>
  isParent(node) ? (
    <Branch name={name} node={node} level={level} />
  ) : (
    <MemberLine name={name} value={<Leaf node={node} />} />
  );

/** JSON that can be folded and unfolded. */
export const Tree = ({ node }: { node: JsonNode }) => (
  <div class="json">
    <Node node={node} level={0} />
  </div>
);
