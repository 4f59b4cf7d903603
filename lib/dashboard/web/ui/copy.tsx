import { useState } from 'preact/hooks';
import { Button } from './button.js';

/** Copies a text to the clipboard, if the browser allows it (on https and on localhost). */
export function Copy({ text, what }: { text: string; what: string }) {
  const [done, setDone] = useState(false);
  if (!('clipboard' in navigator)) return null;
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text).then(
      () => setDone(true),
      () => setDone(false),
    );
  };
  return (
    <Button small onClick={copy} label={`Copy the ${what}`}>
      {done ? 'Copied' : 'Copy'}
    </Button>
  );
}
