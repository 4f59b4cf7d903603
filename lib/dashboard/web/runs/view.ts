/** The part of a picture that is seen: its corner, and how large one unit is on the screen. */
export interface View {
  x: number;
  y: number;
  scale: number;
}

interface Size {
  width: number;
  height: number;
}

const SMALLEST = 0.05;
const LARGEST = 2.5;

/** All of the picture, in the middle; never larger than it is. */
export function fit(picture: Size, screen: Size): View {
  const scale = Math.max(SMALLEST, Math.min(1, screen.width / picture.width, screen.height / picture.height));
  const [width, height] = [screen.width / scale, screen.height / scale];
  return { x: (picture.width - width) / 2, y: (picture.height - height) / 2, scale };
}

/** @param at the point of the screen that stays where it is */
export function zoom({ x, y, scale }: View, by: number, at: { x: number; y: number }): View {
  const next = Math.max(SMALLEST, Math.min(LARGEST, scale * by));
  return { x: x + at.x / scale - at.x / next, y: y + at.y / scale - at.y / next, scale: next };
}

/** @param by in pixels of the screen */
export const pan = ({ x, y, scale }: View, by: { x: number; y: number }): View => ({
  x: x - by.x / scale,
  y: y - by.y / scale,
  scale,
});
