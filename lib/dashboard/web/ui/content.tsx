import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { type JsonNode, parseJson, printJson } from '../json/parse.js';
import { asText, fromBase64, hexLines } from '../text/bytes.js';
import { bytes as sizeOf } from '../text/format.js';
import { Copy } from './copy.js';
import { LongText, Text } from './text.js';
import { Tree } from './tree.js';

export interface ContentProps {
  title: string;
  size: number;
  /** The bytes; null when they are not shown. */
  base64: string | null;
  /** What the server shows instead of the bytes. */
  text: string;
  /** The decoder's value, as it was sent. */
  decoded: { decoder: string; node: JsonNode } | undefined;
  redacted: boolean;
  /** Whether only the beginning was loaded. */
  tooLarge: boolean;
  /** The address of the bytes as a file; undefined if they may not be seen. */
  download: string | undefined;
}

type View = 'tree' | 'text' | 'hex';

interface Readable {
  tree: JsonNode | undefined;
  /** The decoder that made the tree. */
  decoder: string;
  text: string | undefined;
  bytes: Uint8Array | undefined;
}

/** JSON is parsed here, so that numbers keep their digits. Other decoders run on the server. */
function read({ base64, text, decoded }: ContentProps): Readable {
  const bytes = base64 === null ? undefined : fromBase64(base64);
  const own = bytes ? asText(bytes) : text;
  const foreign = decoded !== undefined && decoded.decoder !== 'json';
  const json = foreign || own === undefined ? undefined : parseJson(own);
  return {
    tree: json ?? decoded?.node,
    decoder: json ? 'json' : (decoded?.decoder ?? ''),
    text: own,
    bytes,
  };
}

const HEX_BYTES_PER_CHUNK = 4096;

function Hex({ bytes }: { bytes: Uint8Array }) {
  const [most, setMost] = useState(HEX_BYTES_PER_CHUNK);
  return (
    <>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Bytes">
        <pre class="hex">
          {hexLines(bytes, most).map(({ offset, hex, text }) => (
            <span key={offset}>
              <span class="faint">{offset}</span> {hex.padEnd(47)} {text}
              {'\n'}
            </span>
          ))}
        </pre>
      </div>
      {bytes.length > most && (
        <button type="button" class="button plain small" onClick={() => setMost(most + HEX_BYTES_PER_CHUNK)}>
          More of {sizeOf(bytes.length)}
        </button>
      )}
    </>
  );
}

function Body({ readable, view }: { readable: Readable; view: View }) {
  if (view === 'tree' && readable.tree) return <Tree node={readable.tree} />;
  if (view === 'hex' && readable.bytes) return <Hex bytes={readable.bytes} />;
  if (readable.text === undefined) return <p class="faint">These bytes are not text.</p>;
  return (
    <pre class="raw">
      <LongText value={readable.text} lines />
    </pre>
  );
}

const NAMES: Readonly<Record<View, string>> = { tree: 'Tree', text: 'Text', hex: 'Hex' };

function Notes({ props, readable }: { props: ContentProps; readable: Readable }) {
  const notes: ComponentChildren[] = [<span key="size">{sizeOf(props.size)}</span>];
  if (readable.decoder)
    notes.push(<span key="decoder">{readable.decoder === 'json' ? 'JSON' : <Text value={readable.decoder} />}</span>);
  if (props.redacted) {
    notes.push(
      <span key="redacted" class="flag">
        redacted
      </span>,
    );
  }
  if (props.tooLarge) {
    notes.push(
      <span key="large" class="flag">
        too large, only its beginning is shown
      </span>,
    );
  }
  return <span class="content-notes faint">{notes}</span>;
}

/** A payload or a result: as a tree, as text, as bytes. */
export function Content(props: ContentProps) {
  const { title, base64, text } = props;
  const readable = useMemo(() => read(props), [base64, text, JSON.stringify(props.decoded)]);
  const views: View[] = [
    ...(readable.tree ? (['tree'] as const) : []),
    'text',
    ...(readable.bytes ? (['hex'] as const) : []),
  ];
  const [chosen, setChosen] = useState<View>();
  const fitting = readable.tree ? 'tree' : readable.text === undefined && readable.bytes ? 'hex' : 'text';
  const view = chosen !== undefined && views.includes(chosen) ? chosen : fitting;
  // A text that was not loaded whole cannot be copied: nobody would notice that the end is missing.
  const copied = props.tooLarge
    ? undefined
    : view === 'tree' && readable.tree
      ? printJson(readable.tree)
      : readable.text;
  return (
    <section class="card content" aria-label={title}>
      <header>
        <h2>{title}</h2>
        <Notes props={props} readable={readable} />
        <div class="segments" role="group" aria-label={`${title} as`}>
          {views.map((one) => (
            <button key={one} type="button" aria-pressed={one === view} onClick={() => setChosen(one)}>
              {NAMES[one]}
            </button>
          ))}
        </div>
        {props.download !== undefined && (
          <a class="button plain small" href={props.download} download>
            Download<span class="sr-only"> the {title.toLowerCase()}</span>
          </a>
        )}
        {copied !== undefined && <Copy text={copied} what={title.toLowerCase()} />}
      </header>
      <div class="content-body">
        {props.size === 0 ? <p class="faint">Empty.</p> : <Body readable={readable} view={view} />}
      </div>
    </section>
  );
}
