import { Text } from './text.js';

interface ProgressBarProps {
  /** From 0 to 1. */
  progress: { fraction: number; text: string };
  /** Whether a long text is cut, and a tooltip has it. */
  cut?: boolean;
}

/** What a handler has said of how far it is. */
export const ProgressBar = ({ progress: { fraction, text }, cut = false }: ProgressBarProps) => (
  <>
    <progress max={1} value={fraction} aria-label="Progress" />
    <b>{Math.floor(fraction * 100)} %</b>
    <Text value={text} titled={cut} class={cut ? 'cut' : 'wrap'} />
  </>
);
