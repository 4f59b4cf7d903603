export interface WebAsset {
  readonly body: Buffer;
  /** For the Content-Type header. */
  readonly type: string;
  readonly etag: string;
}

/** A file of the page: `index.html`, or one of `assets/` by its name. */
export function webAsset(_name: string): WebAsset | undefined {
  return undefined;
}
