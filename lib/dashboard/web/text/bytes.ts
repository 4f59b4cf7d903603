export function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/** The bytes as text; undefined if they are not UTF-8. */
export function asText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

export interface HexLine {
  offset: string;
  hex: string;
  text: string;
}

const BYTES_PER_LINE = 16;

/** Lines of sixteen bytes: `00000010`, `7b 22 61 …`, and their ASCII characters. */
export function hexLines(bytes: Uint8Array, most: number): HexLine[] {
  const lines: HexLine[] = [];
  for (let at = 0; at < Math.min(bytes.length, most); at += BYTES_PER_LINE) {
    const part = [...bytes.subarray(at, Math.min(at + BYTES_PER_LINE, most))];
    lines.push({
      offset: at.toString(16).padStart(8, '0'),
      hex: part.map((byte) => byte.toString(16).padStart(2, '0')).join(' '),
      text: part.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '·')).join(''),
    });
  }
  return lines;
}
